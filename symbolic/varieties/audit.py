"""Independent counts of what a complete answer must hold, by algorithms that the solver does not use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from symbolic.varieties import ideals
from symbolic.varieties.deadline import Deadline, TooLargeError
from symbolic.varieties.matching import Wanted, real_points
from symbolic.varieties.projections import QuotientProjections

__all__ = ["points_off", "solution_count", "sturm_count"]

#: Degree beyond which a Sturm sequence costs more than it proves.
_LONGEST = 64
#: Number of solutions beyond which they are not counted.
_MOST = 1500


def sturm_count(minimal: tuple[int, ...]) -> int | None:
    """The number of real roots of a squarefree polynomial, by Sturm's theorem; None if it would take long."""
    from flint import fmpq_poly

    if len(minimal) > _LONGEST:
        return None
    sequence = [fmpq_poly(list(minimal)), fmpq_poly(list(minimal)).derivative()]
    while sequence[-1].degree() > 0:
        remainder = -(sequence[-2] % sequence[-1])
        numerator = remainder.numer()
        sequence.append(fmpq_poly(numerator) / abs(numerator.content()))
    right = [p.leading_coefficient() > 0 for p in sequence]
    left = [(p.leading_coefficient() > 0) == (p.degree() % 2 == 0) for p in sequence]
    return _changes(left) - _changes(right)


def solution_count(equations: Sequence[Any], places: Sequence[int], deadline: Deadline) -> int | None:
    """The number of complex solutions with multiplicity: the monomials that no leading monomial divides.

    None if there are infinitely many, or if the count would take long.
    """
    try:
        basis = ideals.groebner(equations, deadline.brief())
    except TooLargeError:
        return None
    if ideals.is_everything(basis):
        return 0
    if ideals.free_places(basis, places):
        return None
    leading = [tuple(int(p.monomial(0)[i]) for i in places) for p in basis]
    found = [(0,) * len(places)]
    seen = set(found)
    for monomial in found:
        for k in range(len(places)):
            new = (*monomial[:k], monomial[k] + 1, *monomial[k + 1 :])
            if new not in seen and not any(
                all(x <= y for x, y in zip(lead, new, strict=True)) for lead in leading
            ):
                seen.add(new)
                found.append(new)
        if len(found) > _MOST:
            return None
    return len(found)


def points_off(
    equations: Sequence[Any], away: Sequence[Any], places: Sequence[int], wanted: Wanted, deadline: Deadline
) -> int | None:
    """The number of wanted real solutions at which no polynomial of `away` vanishes.

    None if there are infinitely many complex ones, or if the count would take long. One ideal is solved at once,
    without branches: that of the equations and of  z s = 1  for the product s of what must not vanish.
    """
    spare = equations[0].context().nvars() - 1
    product = equations[0].context().gens()[spare]
    for polynomial in away:
        product = product * polynomial
    try:
        basis = ideals.groebner([*equations, product - 1], deadline.brief())
        if ideals.is_everything(basis):
            return 0
        if ideals.free_places(basis, (*places, spare)):
            return None
        projections = QuotientProjections(basis, (*places, spare), deadline.brief())
        return len(real_points(projections, deadline, wanted).points)
    except TooLargeError:
        return None


def _changes(signs: list[bool]) -> int:
    return sum(a != b for a, b in pairwise(signs))
