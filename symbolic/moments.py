"""Exact expectations of polynomials in Gaussian variables, by Isserlis' theorem.

    E[x_1 x_2 ... x_2k] = sum over all pairings of prod E[x_i x_j]

The variables are plain symbols (`GaussianVector`) or tensors with symbolic indices (`GaussianTensor`): then
the result holds KroneckerDeltas, and `contract` carries out sums over indices whose ranges may be symbolic,
so that one derivation covers every dimension D and every sample size N.

Source: L. Isserlis, Biometrika 12 (1918) 134, for the theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

__all__ = ["GaussianTensor", "GaussianVector", "contract", "expectation"]


@dataclass(frozen=True)
class GaussianVector:
    """Centred jointly Gaussian symbols x_1 ... x_m with covariance matrix C, shape (m, m).

    Raises:
        ValueError: C is not a symmetric m x m matrix, or a symbol is repeated.
    """

    symbols: tuple[sp.Symbol, ...]
    covariance: sp.ImmutableMatrix

    def __post_init__(self):
        symbols, matrix = tuple(self.symbols), sp.ImmutableMatrix(self.covariance)
        if len(set(symbols)) != len(symbols):
            raise ValueError(f"`symbols` must be distinct; got {symbols}.")
        if matrix.shape != (len(symbols), len(symbols)) or not matrix.is_symmetric():
            raise ValueError(
                f"`covariance` must be a symmetric {len(symbols)} x {len(symbols)} matrix, a row per symbol; "
                f"got shape {matrix.shape}" + ("." if matrix.is_symmetric() else ", not symmetric.")
            )
        object.__setattr__(self, "symbols", symbols)
        object.__setattr__(self, "covariance", matrix)

    def contains(self, factor: sp.Expr) -> bool:
        return factor in self.symbols

    def pair(self, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        return self.covariance[self.symbols.index(left), self.symbols.index(right)]


@dataclass(frozen=True)
class GaussianTensor:
    """A centred Gaussian tensor x[i, j, ...] with covariance(i, j) = E[x[i] x[j]] for index tuples i, j.

    Example: N independent samples of a D-vector with covariance diag(lambda):
        GaussianTensor(x, lambda i, j: KroneckerDelta(i[0], j[0]) * KroneckerDelta(i[1], j[1]) * lam[i[1]])
    """

    base: sp.IndexedBase
    covariance: Callable[[tuple, tuple], sp.Expr]

    def contains(self, factor: sp.Expr) -> bool:
        return isinstance(factor, sp.Indexed) and factor.base == self.base

    def pair(self, left: sp.Indexed, right: sp.Indexed) -> sp.Expr:
        return sp.sympify(self.covariance(left.indices, right.indices))


def expectation(expression: sp.Expr, *gaussians: GaussianVector | GaussianTensor) -> sp.Expr:
    """E[expression] over centred Gaussians that are independent of each other.

    Args:
        expression: polynomial in the Gaussian variables; everything else in it is constant.
        gaussians: the distributions, independent of each other.
    Returns:
        The expectation, a polynomial in the entries of the covariances.
    Raises:
        ValueError: the expression is not polynomial in the Gaussian variables.
    """
    total = []
    for term in sp.Add.make_args(sp.expand(expression)):
        constant, random = sp.Integer(1), []
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            owner = next((g for g in gaussians if g.contains(base)), None)
            if owner is not None and power.is_Integer and power > 0:
                random.extend([(owner, base)] * int(power))
            elif any(g.contains(part) for g in gaussians for part in sp.preorder_traversal(factor)):
                raise ValueError(
                    f"The expectation is for polynomials in the Gaussian variables; {factor} is not one. "
                    "Expand it into a polynomial, or estimate it by sampling."
                )
            else:
                constant *= factor
        total.append(constant * _isserlis(tuple(random)))
    return sp.Add(*total)


@lru_cache(maxsize=4096)
def _isserlis(random: tuple) -> sp.Expr:
    """Pair the first variable with each partner from its own distribution; the rest by recursion."""
    if not random:
        return sp.Integer(1)
    if len(random) % 2:
        return sp.Integer(0)
    (owner, first), rest = random[0], random[1:]
    terms = []
    for k, (other, partner) in enumerate(rest):
        covariance = owner.pair(first, partner) if other == owner else sp.Integer(0)
        if covariance != 0:
            terms.append(covariance * _isserlis(rest[:k] + rest[k + 1 :]))
    return sp.expand(sp.Add(*terms))


def contract(expression: sp.Expr, *ranges: tuple[sp.Symbol, sp.Expr, sp.Expr]) -> sp.Expr:
    """Sum an expression with KroneckerDeltas over indices,  sum_{i = low}^{high}, ranges symbolic or numbers.

    A delta that holds a summed index replaces it; an index on which a term does not depend gives a factor
    high - low + 1; what remains stays as a `Sum`. Indices that a delta equates must share one range, since
    otherwise the delta would not reach its whole range.

    Args:
        expression: sum of products of KroneckerDeltas and other factors.
        ranges: (index, low, high) as in `sympy.Sum`.
    Raises:
        ValueError: a delta equates two summed indices of different ranges.
    """
    bounds = {index: (sp.sympify(low), sp.sympify(high)) for index, low, high in ranges}
    terms = sp.Add.make_args(sp.expand(expression))
    return sp.Add(*(_contracted(term, dict(bounds)) for term in terms))


def _contracted(term, bounds: dict) -> sp.Expr:
    while (delta := _summed_delta(term, bounds)) is not None:
        first, second = delta.args
        index, other = (first, second) if first in bounds else (second, first)
        if other in bounds and bounds[other] != bounds[index]:
            raise ValueError(f"{delta} equates indices with the ranges {bounds[index]} and {bounds[other]}.")
        del bounds[index]
        term = term.subs(index, other)
    count = sp.Integer(1)
    for index, (low, high) in bounds.items():
        constant, dependent = term.as_independent(index, as_Add=False)
        if dependent == 1:
            count *= high - low + 1
        else:
            term = sp.Mul(constant, sp.Sum(dependent, (index, low, high)))
    return count * term


def _summed_delta(term: sp.Expr, bounds: dict) -> sp.KroneckerDelta | None:
    """A delta of the term that holds an index still to be summed (a power of a delta is the delta)."""
    bases = (factor.as_base_exp()[0] for factor in sp.Mul.make_args(term))
    deltas = (b for b in bases if isinstance(b, sp.KroneckerDelta) and not bounds.keys().isdisjoint(b.args))
    return next(deltas, None)
