"""In-context linear regression: the moments of the data that the population loss of linear attention needs.

A sequence holds N pairs (x_n, y_n) and a query x_q; x_n, x_q ~ N(0, Lambda) in R^D, task w ~ N(0, I_D),
y_n = w . x_n, y_q = w . x_q. What linear attention sees of it is

    beta = (1/N) sum_n y_n x_n,        z_ab = beta_a x_q,b   (D^2 cubic features, row-major).

Two derivations, both by Isserlis' theorem: in the eigenbasis of Lambda with symbolic D
(`eigenbasis_moments`), and for an explicit covariance matrix of any form (`explicit_moments`). N is symbolic
in both.

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265, section 2 and appendix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import sympy as sp

from symbolic.moments import GaussianTensor, contract, expectation

__all__ = ["D", "Moments", "N", "eigenbasis_moments", "eigenvalues", "explicit_moments"]

#: Number of context pairs (the query is not counted).
N = sp.Symbol("N", positive=True)
#: Dimension of the tokens, where it stays symbolic.
D = sp.Symbol("D", integer=True, positive=True)

_LAMBDA = sp.IndexedBase("lambda")
_X, _QUERY, _TASK = sp.IndexedBase("x"), sp.IndexedBase("q"), sp.IndexedBase("w")
_n, _m = sp.symbols("n m", integer=True)


def eigenvalues(dim: int) -> tuple[sp.Symbol, ...]:
    """The D positive eigenvalues lambda_1 ... lambda_D of the token covariance."""
    return sp.symbols(f"lambda_1:{dim + 1}", positive=True)


@dataclass(frozen=True)
class Moments:
    """The moments that fix the population loss, for D given.

    S[a, b] = E[(Lhat^2)_ab], Lhat = (1/N) sum_n x_n x_n^T, shape (D, D);
    cross[a, b] = E[y_q z_ab], shape (D, D);
    features[(a, b), (c, d)] = E[z_ab z_cd], shape (D^2, D^2), row-major;
    power = E[y_q^2].
    """

    S: sp.ImmutableMatrix
    cross: sp.ImmutableMatrix
    features: sp.ImmutableMatrix
    power: sp.Expr


@dataclass(frozen=True)
class EigenbasisMoments:
    """The same moments in the eigenbasis of Lambda for symbolic D: expressions in the indices a, b, c, d,
    with KroneckerDelta and Sum."""

    indices: tuple[sp.Symbol, ...]
    S: sp.Expr
    cross: sp.Expr
    features: sp.Expr
    power: sp.Expr

    def eigenvalue(self) -> sp.Expr:
        """S e_d = (this) e_d, as an expression in the first index."""
        a, b, *_ = self.indices
        return sp.expand(self.S.subs(b, a))

    def at(self, dim: int) -> Moments:
        """The moments for an integer D, in the symbols lambda_1 ... lambda_D."""
        named = {_LAMBDA[i + 1]: value for i, value in enumerate(eigenvalues(dim))}
        grid = [sp.Integer(i + 1) for i in range(dim)]
        pairs = list(product(grid, grid))

        def table(expression: sp.Expr, rows: list, columns: list) -> sp.ImmutableMatrix:
            summed = expression.subs(D, dim).doit()
            at = [
                [summed.xreplace(dict(zip(self.indices, (*r, *c), strict=False))) for c in columns]
                for r in rows
            ]
            return sp.ImmutableMatrix(at).xreplace(named)

        singles = [(i,) for i in grid]
        return Moments(
            S=table(self.S, singles, singles),
            cross=table(self.cross, singles, singles),
            features=table(self.features, pairs, pairs),
            power=table(self.power, [()], [()])[0, 0],
        )


@lru_cache(maxsize=1)
def eigenbasis_moments() -> EigenbasisMoments:
    """S, E[y_q z], E[z z^T], E[y_q^2] for symbolic D and N in the eigenbasis of Lambda."""
    a, b, c, d, e, f = sp.symbols("a b c d e f", integer=True)
    delta = sp.KroneckerDelta
    gaussians = (
        GaussianTensor(_X, lambda i, j: delta(i[0], j[0]) * delta(i[1], j[1]) * _LAMBDA[i[1]]),
        GaussianTensor(_QUERY, lambda i, j: delta(i[0], j[0]) * _LAMBDA[i[0]]),
        GaussianTensor(_TASK, lambda i, j: delta(i[0], j[0])),
    )

    def mean(expression: sp.Expr, *ranges) -> sp.Expr:
        return contract(expectation(expression, *gaussians), *ranges)

    def z(sample, first, second, inner) -> sp.Expr:
        # One summand (sample, inner) of z_ab = (1/N) sum_n sum_e w_e x_ne x_na x_qb.
        return _TASK[inner] * _X[sample, inner] * _X[sample, first] * _QUERY[second] / N

    samples, coordinates = ((_n, 1, N), (_m, 1, N)), ((e, 1, D), (f, 1, D))
    return EigenbasisMoments(
        indices=(a, b, c, d),
        S=mean(_X[_n, a] * _X[_n, e] * _X[_m, e] * _X[_m, b] / N**2, *samples, coordinates[0]),
        cross=mean(_TASK[f] * _QUERY[f] * z(_n, a, b, e), samples[0], *coordinates),
        features=mean(z(_n, a, b, e) * z(_m, c, d, f), *samples, *coordinates),
        power=mean(_TASK[e] * _QUERY[e] * _TASK[f] * _QUERY[f], *coordinates),
    )


def explicit_moments(covariance: sp.Matrix) -> Moments:
    """The moments for an explicit D x D covariance Lambda, not necessarily diagonal.

    Coordinates are summed one by one over numbers, so that this derivation shares neither the KroneckerDelta
    algebra over coordinates nor the eigenbasis with `eigenbasis_moments`.

    Raises:
        ValueError: the matrix is not square and symmetric.
    """
    if not covariance.is_square or not covariance.is_symmetric() or covariance.rows < 1:
        raise ValueError(f"`covariance` must be a symmetric D x D matrix; got shape {covariance.shape}.")
    grid = range(covariance.rows)
    samples = ((_n, 1, N), (_m, 1, N))
    x = GaussianTensor(_X, lambda i, j: sp.KroneckerDelta(i[0], j[0]) * covariance[i[1], j[1]])
    query = GaussianTensor(_QUERY, lambda i, j: covariance[i[0], j[0]])
    task = GaussianTensor(_TASK, lambda i, j: sp.Integer(1 if i == j else 0))

    def total(summand, ranges, *, over: int) -> sp.Expr:
        terms = (expectation(summand(*inner), x, query, task) for inner in product(grid, repeat=over))
        return sp.expand(contract(sp.Add(*terms), *ranges))

    def s(a, b):
        return total(lambda e: _X[_n, a] * _X[_n, e] * _X[_m, e] * _X[_m, b] / N**2, samples, over=1)

    def z(sample, a, b, e):
        return _TASK[e] * _X[sample, e] * _X[sample, a] * _QUERY[b] / N

    def cross(a, b):
        return total(lambda e, f: _TASK[f] * _QUERY[f] * z(_n, a, b, e), samples[:1], over=2)

    def feature(a, b, c, d):
        return total(lambda e, f: z(_n, a, b, e) * z(_m, c, d, f), samples, over=2)

    pairs = list(product(grid, grid))
    return Moments(
        S=sp.ImmutableMatrix(len(grid), len(grid), s),
        cross=sp.ImmutableMatrix(len(grid), len(grid), cross),
        features=sp.ImmutableMatrix([[feature(*p, *r) for r in pairs] for p in pairs]),
        power=total(lambda e, f: _TASK[e] * _QUERY[e] * _TASK[f] * _QUERY[f], (), over=2),
    )
