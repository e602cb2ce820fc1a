"""Is a fixed point one of a whole set of them? Proven from identities between the right-hand sides.

If  a_1(x) phi_1(x) + ... + a_n(x) phi_n(x) = 0  holds identically for k rows a(x) that are independent at x*,
then k of the equations phi_i = 0 follow from the others near x*. Where also the Jacobian's rank is n - k, the
implicit function theorem makes the fixed points near x* a manifold of dimension k, tangent to the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from fixedpoints.near.balls import rank
from fixedpoints.near.jets import constant, expand
from fixedpoints.near.local import Local
from symbolic.field import IteratedMap, VectorField
from symbolic.zero import exact

__all__ = ["is_on_a_set"]

#: The most unknown coefficients of a(x).
_MOST_UNKNOWNS = 320


def is_on_a_set(local: Local, dimension: int) -> bool:
    """Whether the fixed points near x* are proven to be a manifold of the kernel's dimension.

    False says only that no identity with coefficients of degree 0, 1 or 2 was found.
    """
    if len(local.at) > _MOST_UNKNOWNS // 4:
        return False
    values = {p: sp.Rational(v) for p, v in local.values.items()}
    place = {x: constant(c, 0) for x, c in zip(local.rule.state, local.at, strict=True)}
    for degree in range(3):
        rows = identities(local.rule, tuple(values.items()), degree)
        if rows and rank([[jet.value for jet in expand(list(row), place, 0)] for row in rows]) == dimension:
            return True
    return False


@lru_cache(maxsize=64)
def identities(
    rule: VectorField | IteratedMap, values: tuple[tuple[sp.Symbol, sp.Rational], ...], degree: int
) -> tuple[tuple[sp.Expr, ...], ...]:
    """A basis of the rows a(x) of polynomials up to a degree with  sum_i a_i phi_i = 0."""
    n = len(rule.state)
    if n * sp.binomial(n + degree, degree) > _MOST_UNKNOWNS:
        return ()
    monomials = sorted(sp.itermonomials(rule.state, degree), key=sp.default_sort_key)
    polynomials = _numerators(rule, dict(values))
    products = [[sp.Poly(m, *p.gens) * p for m in monomials] for p in polynomials]
    columns = [product.as_dict() for row in products for product in row]
    powers = sorted({key for column in columns for key in column})
    if not powers:
        return tuple(tuple(sp.Integer(int(i == j)) for j in range(n)) for i in range(n))
    matrix = sp.Matrix([[column.get(key, 0) for column in columns] for key in powers])
    basis = DomainMatrix.from_Matrix(matrix).to_field().nullspace().to_Matrix().tolist()
    m = len(monomials)
    return tuple(
        tuple(
            sp.Add(*(c * p for c, p in zip(row[i * m : (i + 1) * m], monomials, strict=True)))
            for i in range(n)
        )
        for row in basis
    )


def _numerators(rule: VectorField | IteratedMap, values: Mapping[sp.Symbol, sp.Rational]) -> list[sp.Poly]:
    """phi over a common denominator, as polynomials in the state and in whatever functions occur."""
    phi = [exact(f.xreplace(values)) for f in rule.rhs]
    if isinstance(rule, IteratedMap):
        phi = [f - x for f, x in zip(phi, rule.state, strict=True)]
    parts = [sp.fraction(sp.together(f)) for f in phi]
    common = sp.lcm_list([d for _, d in parts])
    cleared = [sp.expand(p * sp.cancel(common / d)) for p, d in parts]
    _, options = sp.parallel_poly_from_expr([*cleared, *rule.state])
    generators = [*rule.state, *(g for g in options.gens if g not in rule.state)]
    return [sp.Poly(p, *generators) for p in cleared]
