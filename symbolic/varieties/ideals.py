"""Ideals: Groebner bases by FLINT, dimension, saturation, and membership in the radical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symbolic.varieties.deadline import Deadline, TooLargeError
from symbolic.varieties.polynomials import normal, ring, transported, unknowns_of

__all__ = [
    "contains",
    "free_places",
    "groebner",
    "is_everything",
    "leading_coefficients",
    "saturated",
    "smallest_meeting",
]

#: What a basis may hold, and how many terms and bits a member may have, where only short steps are allowed.
_SHORT = (60, 400, 6000)


def groebner(
    polynomials: Sequence[Any],
    deadline: Deadline,
    places: Sequence[int] | None = None,
    order: str = "degrevlex",
) -> list[Any]:
    """The reduced Groebner basis, in the ring of the polynomials.

    Args:
        polynomials: generators of the ideal, not all zero.
        places: all unknowns that may occur, the greatest first; by default in the ring's own order.
        order: FLINT's name of the monomial order. For a basis in another order than the ring's, leading terms
            must be asked of `ring(names in the order of places, order)`.
    Raises:
        TooLargeError: only short steps are allowed, and the basis grows.
    """
    from flint import fmpz_mpoly_vec

    deadline.check()
    home = polynomials[0].context()
    names = [home.name(i) for i in (places if places is not None else range(home.nvars()))]
    there = ring(names, order)
    moved = [p.project_to_context(there) for p in polynomials if not p.is_zero()]
    vector = fmpz_mpoly_vec(moved, there)
    if deadline.short:
        vector, complete = vector.buchberger_naive(limits=_SHORT)
        if not complete:
            raise TooLargeError
    else:
        vector = vector.buchberger_naive()
    reduced = [normal(p.project_to_context(home)) for p in vector.autoreduction()]
    return sorted(reduced, key=lambda p: (p.total_degree(), sorted(transported(p).items())))


def is_everything(basis: Sequence[Any]) -> bool:
    """Whether the ideal holds 1, so that there is no solution, not even a complex one."""
    return any(p.is_constant() and not p.is_zero() for p in basis)


def free_places(basis: Sequence[Any], places: Sequence[int]) -> tuple[int, ...]:
    """A largest set of unknowns of which no leading monomial is made: its size is the ideal's dimension."""
    supports = [frozenset(i for i, e in enumerate(p.monomial(0)) if e) for p in basis]
    met = smallest_meeting(supports)
    return tuple(i for i in places if i not in met)


def smallest_meeting(supports: Sequence[frozenset[int]]) -> frozenset[int]:
    """A smallest set that meets all the given ones, none of which is empty."""
    best = frozenset().union(*supports)

    def search(chosen: frozenset[int], left: list[frozenset[int]]) -> None:
        nonlocal best
        if not left:
            best = min(best, chosen, key=len)
        elif len(chosen) + 1 < len(best):
            for i in sorted(min(left, key=lambda s: (len(s), sorted(s)))):
                search(chosen | {i}, [s for s in left if i not in s])

    search(frozenset(), sorted(supports, key=sorted))
    return best


def leading_coefficients(basis: Sequence[Any], dependent: Sequence[int], free: Sequence[int]) -> list[Any]:
    """Leading coefficients, polynomials in the free unknowns, of a lexicographic basis with these last."""
    found = []
    for polynomial in basis:
        powers = [tuple(int(m[i]) for i in dependent) for m in polynomial.monoms()]
        top = max(powers)
        terms = {
            tuple(0 if i in dependent else int(e) for i, e in enumerate(m)): int(c)
            for (m, c), power in zip(polynomial.terms(), powers, strict=True)
            if power == top
        }
        coefficient = polynomial.context().from_dict(terms)
        if not coefficient.is_constant():
            found.append(normal(coefficient))
    return found


def saturated(polynomials: Sequence[Any], by: Any, places: Sequence[int], deadline: Deadline) -> list[Any]:
    """The ideal of what vanishes on the solutions where `by` does not: (I : by^infinity).

    The last unknown of the ring is spare: no polynomial holds it.
    """
    spare = by.context().nvars() - 1
    inverse = by.context().gens()[spare] * by - 1
    basis = groebner([*polynomials, inverse], deadline, (spare, *places), "lex")
    return [p for p in basis if spare not in unknowns_of(p)]


def contains(polynomials: Sequence[Any], polynomial: Any, deadline: Deadline) -> bool:
    """Whether a polynomial vanishes on all complex solutions of others; the ring's last unknown is spare."""
    spare = polynomial.context().gens()[-1]
    return is_everything(groebner([*polynomials, spare * polynomial - 1], deadline))
