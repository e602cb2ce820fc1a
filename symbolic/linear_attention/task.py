"""In-context linear regression: the moments of the data that the population loss of linear attention needs.

A sequence holds N pairs (x_n, y_n) and a query x_q; x_n, x_q ~ N(0, Lambda) in R^D, task w ~ N(0, I_D),
y_n = w . x_n, y_q = w . x_q. What linear attention sees of it is

    beta = (1/N) sum_n y_n x_n,        z_ab = beta_a x_q,b   (D^2 cubic features, row-major).

Two derivations, both by Isserlis' theorem: in the eigenbasis of Lambda with symbolic D
(`eigenbasis_moments`), and for an explicit covariance matrix of any form (`explicit_moments`). N is symbolic
in both.

A network that predicts y_hat = beta^T M x_q has a loss that depends on its weights through M alone
(`Moments.loss`), hence a flow that does so too (`predictor_flow`).

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265, section 2 and appendix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import sympy as sp

from symbolic.field import VectorField
from symbolic.moments import GaussianTensor, contract, expectation

__all__ = [
    "D",
    "Moments",
    "N",
    "eigenbasis_moments",
    "eigenvalues",
    "explicit_moments",
    "predictor_flow",
    "pulled_back",
    "tau",
]

#: Number of context pairs (the query is not counted).
N = sp.Symbol("N", positive=True)
#: Dimension of the tokens, where it stays symbolic.
D = sp.Symbol("D", integer=True, positive=True)
#: Time constant of the flow, tau dW/dt = -(1/2) dL/dW.
tau = sp.Symbol("tau", positive=True)

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

    def loss(self, M: sp.Matrix) -> sp.Expr:
        """L(M) = E(y_q - y_hat)^2 = E[y_q^2] - 2 tr(E[y_q z] M^T) + vec(M)^T E[z z^T] vec(M), no 1/2.

        In modes: L = tr + sum_ab lambda_b S_a m_ab^2 - 2 sum_d lambda_d^2 m_dd; M has shape (D, D).
        """
        entries = list(M)
        cross = sp.Add(*(2 * c * m for c, m in zip(self.cross, entries, strict=True)))
        square = sp.Add(
            *(
                sp.factor(self.features[p, q]) * entries[p] * entries[q]
                for p, q in product(range(len(entries)), repeat=2)
                if self.features[p, q] != 0
            )
        )
        return self.power - cross + square

    def residual(self, M: sp.Matrix) -> sp.ImmutableMatrix:
        """G(M) = -(1/2) dL/dM = E[y_q z] - E[z z^T] vec(M) = Lambda^2 - S M Lambda, shape (D, D)."""
        return sp.ImmutableMatrix(
            *self.cross.shape, list(sp.Matrix(list(self.cross)) - self.features * sp.Matrix(list(M)))
        )


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

    def residual(self, M: sp.IndexedBase) -> sp.Expr:
        """G(M)_ab = -(1/2) dL/dm_ab for every D, as an expression in the first two indices."""
        _, _, c, d = self.indices
        return self.cross - contract(self.features * M[c, d], (c, 1, D), (d, 1, D))

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
        # Summed over f, as what is left of the trace in `features`, so that SymPy sees the two sums as one.
        S=mean(_X[_n, a] * _X[_n, f] * _X[_m, f] * _X[_m, b] / N**2, *samples, coordinates[1]),
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


def pulled_back(G: sp.Matrix, M: sp.Matrix, weights: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    """sum_ab G_ab dM_ab/dw for each weight w: the chain rule through M, never expanded.

    Args:
        G: any D x D matrix; for -(1/2) dL/dM the result is -(1/2) dL/dw.
        M: the D x D matrix that the network computes, in the weights.
    """
    terms: dict[sp.Symbol, list[sp.Expr]] = {w: [] for w in weights}
    for g, m in zip(G, M, strict=True):
        for w in m.free_symbols & terms.keys() if g != 0 else ():
            terms[w].append(g * m.diff(w))
    return {w: sp.Add(*parts) for w, parts in terms.items()}


def predictor_flow(
    moments: Moments, M: sp.Matrix, weights: Sequence[sp.Symbol], *, source: str = ""
) -> VectorField:
    """The flow  tau dW/dt = -(1/2) dL/dW  of a network that predicts y_hat = beta^T M(W) x_q.

    The chain rule through M gives the gradient of the loss a hundred times faster than the loss itself does.

    Args:
        moments: those of the task, which fix L(M).
        M: what the network computes, shape (D, D), in the weights.
        weights: the coordinates that descend, in the order arrays will use.
    """
    rates = pulled_back(moments.residual(M), M, weights)
    rhs = tuple(rates[w] / tau for w in weights)
    used = set().union(*(f.free_symbols for f in rhs)) - set(weights)
    return VectorField(tuple(weights), rhs, tuple(sorted(used, key=lambda p: p.name)), source=source)
