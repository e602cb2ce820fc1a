"""Is a fixed point one of a whole set of them? Proven from identities between the right-hand sides.

If  a_1(x) phi_1(x) + ... + a_n(x) phi_n(x) = 0  holds identically for k rows a(x) that are independent at x*,
then k of the equations phi_i = 0 follow from the others near x*. Where also the Jacobian's rank is n - k, the
implicit function theorem makes the fixed points near x* a manifold of dimension k, tangent to the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import sympy as sp
from sympy.polys.matrices import DomainMatrix

from fixedpoints.near.balls import rank
from fixedpoints.near.jets import constant, expand
from fixedpoints.near.local import Local
from odesys.lambdify import compile_expressions
from odesys.printers import UnsupportedExpressionError
from symbolic.field import IteratedMap, VectorField
from symbolic.zero import exact

__all__ = ["is_on_a_set"]

#: The most unknown coefficients of a(x).
_MOST_UNKNOWNS = 320

#: Singular values in a larger ratio than this show independence; rounding leaves some 1e-13 of a dependent column.
_INDEPENDENT = 1e-10


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
    if _denied(rule, dict(values), monomials):
        return ()
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


def _denied(
    rule: VectorField | IteratedMap, values: Mapping[sp.Symbol, sp.Rational], monomials: list[sp.Expr]
) -> bool:
    """Whether numbers show that no row a(x) exists: the products of monomials and phi_i are independent."""
    n, size = len(rule.state), len(monomials) * len(rule.state)
    draw = np.random.default_rng(0)
    # Half of the places have positive coordinates only, for the sake of logarithms and roots.
    places = draw.uniform(-1.0, 1.0, (n, 4 * size))
    places[:, ::2] = 0.3 + np.abs(places[:, ::2])
    numbers = [float(values.get(p, draw.uniform(0.5, 1.5))) for p in rule.parameters]
    symbols = (*rule.state, *rule.parameters)
    try:
        functions = compile_expressions((*rule.rhs, *monomials), symbols)
    except UnsupportedExpressionError:
        return False
    with np.errstate(all="ignore"):
        found = [np.broadcast_to(value, places.shape[1:]) for value in functions(*places, *numbers)]
    phi = np.array(found[:n]) - (places if isinstance(rule, IteratedMap) else 0.0)
    products = (phi[:, None] * np.array(found[n:])[None]).reshape(size, -1)
    products = products[:, np.isfinite(products).all(axis=0)]
    sizes = np.linalg.norm(products, axis=1, keepdims=True)
    if products.shape[1] < 2 * size or not sizes.all():
        return False
    spread = np.linalg.svd(products / sizes, compute_uv=False)
    return bool(spread[-1] > _INDEPENDENT * spread[0])


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
