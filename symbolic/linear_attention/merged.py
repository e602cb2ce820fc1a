"""Linear attention with merged key and query, derived from its definition.

    ATTN_M(X) = X + sum_i (1/N) W^V_i X X^T W^KQ_i X,       prediction = entry (D+1, N+1)

With the blocks v_i (last entry of W^V_i) and U_i (upper left D x D block of W^KQ_i) it reads
y_hat = beta^T M x_q, M = sum_i v_i U_i, and everything below follows: population loss, gradient flow,
conserved quantities, fixed points, the optimum, the equivalence with a two-layer linear network on the cubic
features, the reductions and the closed-form time course. All in the eigenbasis of the token covariance.

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, product

import sympy as sp

from symbolic import closed_form
from symbolic.closed_form import ClosedForm
from symbolic.conservation import FirstIntegral, verify
from symbolic.field import VectorField
from symbolic.linear_attention.task import (
    Moments,
    N,
    eigenbasis_moments,
    eigenvalues,
    predictor_flow,
    tau,
)
from symbolic.reduction import Reduction, project, restrict, specialise
from symbolic.zero import residual

__all__ = ["FixedPointSet", "MergedAttention", "model"]

_SOURCE = "Zhang et al. 2025, arXiv:2501.16265, section 3"

#: The one eigenvalue of a white covariance.
lam = sp.Symbol("lambda", positive=True)
s, u, y, sigma = (sp.Symbol(name, positive=True) for name in ("s", "u", "y", "sigma"))
P = sp.Symbol("P", positive=True)
Q, C = sp.Symbol("Q", nonnegative=True), sp.Symbol("C")


@lru_cache(maxsize=32, typed=True)
def model(*, dim: int, heads: int) -> MergedAttention:
    """Linear attention with merged key and query, D = `dim`, H = `heads`; what it derives is kept per process.

    Raises:
        ValueError: `dim` or `heads` is not a positive integer.
    """
    return MergedAttention(dim, heads)


@dataclass(frozen=True)
class FixedPointSet:
    """A manifold of fixed points: where the `equations` (expressions that vanish) hold.

    `dimension` is that of the manifold in parameter space, `loss` the loss everywhere on it.
    """

    name: str
    equations: tuple[sp.Expr, ...]
    dimension: int
    loss: sp.Expr


@dataclass(frozen=True)
class MergedAttention:
    """The model for integers D and H; every property is derived when first asked for, and proven.

    Weights: v_<head> and U_<head>_<row>_<col>, 1-based; parameters: lambda_1 ... lambda_D, N, tau.
    """

    dim: int
    heads: int

    def __post_init__(self):
        for name in ("dim", "heads"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer; got {value!r}.")

    # --- definition
    # -------------------------------------------------------------------------------------------

    @cached_property
    def v(self) -> tuple[sp.Symbol, ...]:
        """The last entries of the last rows of W^V_i, one per head."""
        return sp.symbols(f"v_1:{self.heads + 1}")

    @cached_property
    def U(self) -> tuple[sp.ImmutableMatrix, ...]:
        """The upper left D x D blocks of W^KQ_i, one per head."""
        return tuple(
            sp.ImmutableMatrix(self.dim, self.dim, lambda a, b, i=i: sp.Symbol(f"U_{i + 1}_{a + 1}_{b + 1}"))
            for i in range(self.heads)
        )

    @property
    def weights(self) -> tuple[sp.Symbol, ...]:
        """v_1 ... v_H, then U_1 ... U_H, each row by row: H (D^2 + 1) coordinates."""
        return (*self.v, *(entry for block in self.U for entry in block))

    @property
    def eigenvalues(self) -> tuple[sp.Symbol, ...]:
        return eigenvalues(self.dim)

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        return self.flow.parameters

    @cached_property
    def moments(self) -> Moments:
        return eigenbasis_moments().at(self.dim)

    @cached_property
    def M(self) -> sp.ImmutableMatrix:
        """M = sum_i v_i U_i, shape (D, D): what the network computes, y_hat = beta^T M x_q."""
        blocks = [v * block for v, block in zip(self.v, self.U, strict=True)]
        return sp.ImmutableMatrix(sum(blocks[1:], blocks[0]))

    def token_contribution(self, token: sp.Matrix, label: sp.Expr, query: sp.Matrix) -> sp.Expr:
        """What one context token adds to N y_hat, by the definition with literal (D+1) x (D+1) weight
        matrices.

        The attention output's entry (D+1, N+1) is a sum over tokens t = (x, y), the query (x_q, 0) among
        them: sum_i W^V_i[-1, :] t t^T W^KQ_i t_q. The blocks that start at zero and stay there are zero.

        Args:
            token, query: x and x_q, shape (D, 1); label: y.
        """
        t, q = token.col_join(sp.Matrix([label])), query.col_join(sp.Matrix([0]))
        total = sp.Integer(0)
        for v, block in zip(self.v, self.U, strict=True):
            value, key_query = sp.zeros(self.dim + 1), sp.zeros(self.dim + 1)
            value[-1, -1] = v
            key_query[: self.dim, : self.dim] = block
            total += (value[-1, :] * t * t.T * key_query * q)[0, 0]
        return total

    # --- loss and flow
    # ----------------------------------------------------------------------------------------

    @cached_property
    def loss(self) -> sp.Expr:
        """L = E(y_q - y_hat)^2, no 1/2; in modes tr + sum_ab lambda_b S_a m_ab^2 - 2 sum_d lambda_d^2 m_dd."""
        return self.moments.loss(self.M)

    @cached_property
    def flow(self) -> VectorField:
        """tau dW/dt = -(1/2) dL/dW, all H (D^2 + 1) weights."""
        return predictor_flow(self.moments, self.M, self.weights, source=_SOURCE)

    @cached_property
    def residual(self) -> sp.ImmutableMatrix:
        """G(M) = -(1/2) dL/dM, shape (D, D): tau dU_i = v_i G, tau dv_i = tr(U_i^T G)."""
        return self.moments.residual(self.M)

    def balance(self, i: int, j: int) -> FirstIntegral:
        """<U_i, U_j>_F - v_i v_j of heads i and j (from 1), proven constant along the flow.

        Raises:
            IndexError: there is no such head.
        """
        if not (1 <= i <= self.heads and 1 <= j <= self.heads):
            raise IndexError(f"Heads are numbered 1 ... {self.heads}; got {i} and {j}.")
        inner = sp.Add(*(p * q for p, q in zip(self.U[i - 1], self.U[j - 1], strict=True)))
        return verify(self.flow, inner - self.v[i - 1] * self.v[j - 1], source=_SOURCE)

    @cached_property
    def conserved(self) -> tuple[FirstIntegral, ...]:
        """The H x H matrix <U_i, U_j>_F - v_i v_j: its H (H + 1)/2 entries i <= j, each proven constant."""
        pairs = combinations_with_replacement(range(1, self.heads + 1), 2)
        return tuple(self.balance(i, j) for i, j in pairs)

    # --- optimum and fixed points
    # -----------------------------------------------------------------------------

    @cached_property
    def optimum(self) -> sp.ImmutableMatrix:
        """M* = (Lambda + (Lambda + tr I)/N)^{-1}, the unique zero of G, shape (D, D)."""
        cells = sp.symbols(f"m_0:{self.dim**2}")
        equations = list(sp.Matrix(list(self.moments.cross)) - self.moments.features * sp.Matrix(cells))
        # E[z z^T] is positive definite, so the linear system has exactly one solution.
        (solution,) = sp.linsolve(equations, cells)
        return sp.ImmutableMatrix(self.dim, self.dim, [sp.factor(entry) for entry in solution])

    @cached_property
    def optimal_loss(self) -> sp.Expr:
        """L* = tr(Lambda) - sum_d lambda_d / a_d."""
        return sp.Add(
            *(
                sp.factor(lam - lam**2 * m)
                for lam, m in zip(self.eigenvalues, self.optimum.diagonal(), strict=True)
            )
        )

    @cached_property
    def fixed_points(self) -> tuple[FixedPointSet, FixedPointSet]:
        """Both sets of fixed points, complete: (zero) v = 0 and tr(Lambda^2 U_i) = 0; (optimum) M = M*.

        Proof, carried out on the derived flow: tau dU_i = v_i G and tau dv_i = <U_i, G>, G affine in M.
        If some v_i is not zero then G = 0, that is M = M*. If all are zero then M = 0, G = E[y_q z], and
        <U_i, E[y_q z]> = tr(Lambda^2 U_i) must vanish. Both sets are fixed by the same two identities.
        """
        G, rates = list(self.residual), dict(zip(self.flow.state, self.flow.rhs, strict=True))
        for v, block in zip(self.v, self.U, strict=True):
            gaps = [tau * rates[entry] - v * g for entry, g in zip(block, G, strict=True)]
            gaps.append(tau * rates[v] - sp.Add(*(entry * g for entry, g in zip(block, G, strict=True))))
            if any(sp.expand(gap) != 0 for gap in gaps):
                raise AssertionError(f"the flow of head {v} does not have the form (v G, <U, G>)")
        cross, size = self.moments.cross, self.dim**2
        zero = (*self.v, *(sp.Add(*(c * e for c, e in zip(cross, block, strict=True))) for block in self.U))
        optimum = tuple(self.M - self.optimum)
        return (
            FixedPointSet("zero", zero, self.heads * (size - 1), self.moments.power),
            FixedPointSet("optimum", optimum, self.heads * (size + 1) - size, self.optimal_loss),
        )

    # --- the two-layer network
    # --------------------------------------------------------------------------------

    @cached_property
    def two_layer_loss(self) -> sp.Expr:
        """Loss of a width-H two-layer linear network w2^T W1 z on the cubic features z = vec(beta x_q^T).

        Its weights carry this model's names (w2 = v, row i of W1 = vec(U_i)), so that equality of the losses
        as polynomials is the equivalence.
        """
        hidden = sp.Matrix([list(block) for block in self.U])
        predictor = (sp.Matrix([self.v]) * hidden).T
        cross, features = sp.Matrix(list(self.moments.cross)), sp.Matrix(self.moments.features)
        return self.moments.power - 2 * (cross.T * predictor)[0] + (predictor.T * features * predictor)[0]

    # --- reductions
    # -------------------------------------------------------------------------------------------

    @cached_property
    def directions(self) -> tuple[sp.Symbol, ...]:
        """r_1 ... r_H, the constant unit vector along which the heads move on the aligned manifold."""
        return sp.symbols(f"r_1:{self.heads + 1}")

    @cached_property
    def reductions(self) -> dict[str, Reduction]:
        """Proven reductions by name.

        "aligned": any covariance, v_i = r_i s, U_i = r_i diag(u_d), |r| = 1: D + 1 equations.
        "white pair": Lambda = lambda I, all u_d = u: two equations.
        "white unbalanced": Lambda = lambda I, sigma = s u given C = s^2 - D u^2: one equation.
        "white": the same with C = 0, the logistic law.
        "white exact": Lambda = lambda I, any start W1 = A chat^T: one Riccati equation for y with P, Q.
        """
        aligned, pair = self._aligned(), self._white_pair()
        unbalanced, balanced = self._white(pair)
        return {
            "aligned": aligned,
            "white pair": pair,
            "white unbalanced": unbalanced,
            "white": balanced,
            "white exact": self._white_exact(),
        }

    @cached_property
    def closed_forms(self) -> dict[str, ClosedForm]:
        """Proven time courses of the scalar reductions "white" and "white exact"."""
        return {name: closed_form.solve(self.reductions[name].field) for name in ("white", "white exact")}

    @property
    def observables(self) -> dict[str, sp.Expr]:
        """loss and M_<row>_<col> as expressions in the weights."""
        entries = {f"M_{a + 1}_{b + 1}": self.M[a, b] for a, b in product(range(self.dim), repeat=2)}
        return {"loss": self.loss, **entries}

    @cached_property
    def half_time(self) -> sp.Expr:
        """When sigma has gone half way, from a start sigma_0 = w^2/sqrt(D) below half of its end 1/(a lambda).

        (tau/2c) ln(sqrt(D)/(w^2 a lambda) - 1) with c = sqrt(D) lambda^2, solved from the closed form.
        """
        law, t = self.closed_forms["white"], sp.Dummy("t", real=True)
        (path,) = (law.explicit or {}).values()
        course, target = path.subs(law.time, t), sp.Rational(1, 2) / (self.white_a * lam)
        growth, z = 2 * sp.sqrt(self.dim) * lam**2 / tau, sp.Dummy("z", positive=True)
        gap = sp.numer(sp.together((course - target).subs(t, sp.log(z) / growth)))
        (root,) = sp.solve(sp.expand(sp.simplify(gap)), z)
        return sp.log(sp.factor(root)) / growth

    @property
    def white_a(self) -> sp.Expr:
        """a = 1 + (1 + D)/N."""
        return 1 + sp.Integer(1 + self.dim) / N

    @property
    def defaults(self) -> dict[str, object]:
        """The authors' numbers (Fig. 1): D=4, N=31, H=8, eigenvalues proportional to D..1 with trace 1."""
        weights = [sp.Rational(2 * (self.dim - d), self.dim * (self.dim + 1)) for d in range(self.dim)]
        return {
            "eigenvalues": tuple(float(w) for w in weights),
            "context": 31,
            "init": 1e-6,
            "rate": 1e-3,
            "steps": 6001,
        }

    def aligned(self, block: sp.Matrix) -> dict[sp.Symbol, sp.Expr]:
        """The ansatz v_i = r_i s, U_i = r_i B for one D x D block B: all heads move along one direction r."""
        embedding = {v: r * s for v, r in zip(self.v, self.directions, strict=True)}
        for r, entries in zip(self.directions, self.U, strict=True):
            embedding |= dict(zip(entries, r * block, strict=True))
        return embedding

    @property
    def unit(self) -> sp.Expr:
        """|r|^2 - 1, the relation that the directions obey."""
        return sp.Add(*(r**2 for r in self.directions)) - 1

    def _aligned(self) -> Reduction:
        modes, unit = sp.symbols(f"u_1:{self.dim + 1}"), self.unit
        embedding = self.aligned(sp.diag(*modes))
        field = restrict(self.flow, embedding, state=(s, *modes), relations=(unit,))
        bracket = [
            c - f * s * x
            for c, f, x in zip(self._diagonal("cross"), self._diagonal("features"), modes, strict=True)
        ]
        loss = self.moments.power - sp.Add(
            *(s * x * (c + g) for x, c, g in zip(modes, self._diagonal("cross"), bracket, strict=True))
        )
        _agree(self.loss.xreplace(embedding), loss, unit)
        observables = {"loss": loss, **{f"M_{d + 1}_{d + 1}": s * x for d, x in enumerate(modes)}}
        return Reduction(field, observables, "v_i = r_i s, U_i = r_i diag(u_d), |r| = 1")

    def _diagonal(self, name: str) -> list[sp.Expr]:
        """The entries of a moment that belong to (d, d)."""
        if name == "cross":
            return list(self.moments.cross.diagonal())
        places = [d * (self.dim + 1) for d in range(self.dim)]
        return [sp.factor(self.moments.features[p, p]) for p in places]

    def _whitened(self, expression: sp.Expr) -> sp.Expr:
        return expression.xreplace(dict.fromkeys(self.eigenvalues, lam))

    def _white_loss(self, coefficient: sp.Expr) -> sp.Expr:
        """L as a function of the coefficient of the identity in M, for a white covariance."""
        loss = self._whitened(
            self.loss.xreplace(
                {**dict.fromkeys(self.v[1:], 0), self.v[0]: 1, **self._first_block(coefficient)}
            )
        )
        return sp.collect(sp.expand(loss), coefficient, sp.factor)

    def _first_block(self, coefficient: sp.Expr) -> dict[sp.Symbol, sp.Expr]:
        return dict(zip(self.U[0], coefficient * sp.eye(self.dim), strict=True))

    def _white_pair(self) -> Reduction:
        white = specialise(self._aligned().field, dict.fromkeys(self.eigenvalues, lam))
        field = restrict(white, dict.fromkeys(white.state[1:], u), state=(s, u))
        return Reduction(
            field,
            {"loss": self._white_loss(s * u), "sigma": s * u},
            "the aligned manifold with u_1 = ... = u_D",
        )

    def _white(self, pair: Reduction) -> tuple[Reduction, Reduction]:
        integral = verify(pair.field, s**2 - self.dim * u**2)
        field = project(pair.field, {sigma: s * u}, given={C: integral}, source=_SOURCE)
        balanced = specialise(field, {C: sp.Integer(0)})
        observables = {"loss": self._white_loss(sigma)}
        where = "the aligned manifold with u_1 = ... = u_D and s^2 - D u^2 = C, sigma > 0"
        return Reduction(field, observables, where), Reduction(
            balanced, observables, where.replace("= C", "= 0")
        )

    def _white_exact(self) -> Reduction:
        """w2 + A = f z and w2 - A = h/z keep their directions; P = |f|^2/4, Q = |h|^2/4, y = z^2."""
        z = sp.Symbol("z", positive=True)
        f, h = sp.symbols(f"f_1:{self.heads + 1}"), sp.symbols(f"h_1:{self.heads + 1}")
        root = sp.sqrt(self.dim)
        embedding = {v: (a * z + b / z) / 2 for v, a, b in zip(self.v, f, h, strict=True)}
        for a, b, entries in zip(f, h, self.U, strict=True):
            embedding |= dict(zip(entries, (a * z - b / z) / (2 * root) * sp.eye(self.dim), strict=True))
        sizes = (4 * P - sp.Add(*(x**2 for x in f)), 4 * Q - sp.Add(*(x**2 for x in h)))
        white = specialise(self.flow, dict.fromkeys(self.eigenvalues, lam))
        field = project(restrict(white, embedding, state=(z,), relations=sizes), {y: z**2}, source=_SOURCE)
        coefficient = (P * y - Q / y) / root
        observables = {"loss": self._white_loss(coefficient), "sigma": coefficient}
        return Reduction(
            field, observables, "white covariance, U_i = A_i I/sqrt(D): any v and A, balanced or not"
        )


def _agree(full: sp.Expr, reduced: sp.Expr, relation: sp.Expr) -> None:
    left = residual(full - reduced, (relation,))
    if left != 0:
        raise AssertionError(f"the reduced loss differs from the loss by {left}")
