"""Linear attention with separate key and query of any rank, derived from its definition.

    ATTN_S(X) = X + sum_i (1/N) W^V_i X X^T W^K_i^T W^Q_i X,       prediction = entry (D+1, N+1)

With the blocks v_i (last entry of W^V_i) and k_ir, q_ir (rows of W^K_i and W^Q_i without their last entry) it reads
y_hat = beta^T M x_q, M = sum_{i,r} v_i k_ir q_ir^T, and everything below follows for every rank R >= 1: population
loss, gradient flow, conserved quantities, fixed points, the reduction to modes that learn independently of each
other, and the closed-form time course of one mode. All in the eigenbasis of the token covariance.

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265, sections 4 (R = 1) and 5 (any R).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, product

import sympy as sp

from symbolic import closed_form
from symbolic.closed_form import ClosedForm
from symbolic.conservation import FirstIntegral, verify
from symbolic.field import VectorField
from symbolic.linear_attention import fixed_points
from symbolic.linear_attention.fixed_points import FixedPoint
from symbolic.linear_attention.task import Moments, eigenbasis_moments, eigenvalues, predictor_flow, tau
from symbolic.reduction import Reduction, restrict
from symbolic.zero import residual

__all__ = ["SeparateAttention", "model"]

_SOURCE = "Zhang et al. 2025, arXiv:2501.16265, sections 4 and 5"

#: Value weight of one head, the eigenvalue of its mode, and that mode's a = 1 + (1 + tr/lambda)/N.
v = sp.Symbol("v")
lam, a = sp.symbols("lambda a", positive=True)


@lru_cache(maxsize=32, typed=True)
def model(*, dim: int, heads: int, rank: int = 1) -> SeparateAttention:
    """Linear attention with separate key and query, D = `dim`, H = `heads`, R = `rank`; kept per process.

    Raises:
        ValueError: a size is not a positive integer, or the rank exceeds D.
    """
    return SeparateAttention(dim, heads, rank)


@dataclass(frozen=True)
class SeparateAttention:
    """The model for integers D, H and R; every property is derived when first asked for, and proven.

    Weights: v_<head>, k_<head>_<r>_<d> and q_<head>_<r>_<d>, 1-based; parameters: lambda_1 ... lambda_D, N, tau.
    """

    dim: int
    heads: int
    rank: int = 1

    def __post_init__(self):
        for name in ("dim", "heads", "rank"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer; got {value!r}.")
        if self.rank > self.dim:
            raise ValueError(
                f"`rank` must be at most `dim` = {self.dim}; got {self.rank}. More rows of W^K and W^Q do not make "
                "K^T Q any richer: take `rank` = `dim`."
            )

    # --- definition
    # -------------------------------------------------------------------------------------------

    @cached_property
    def v(self) -> tuple[sp.Symbol, ...]:
        """The last entries of the last rows of W^V_i, one per head."""
        return sp.symbols(f"v_1:{self.heads + 1}")

    @cached_property
    def K(self) -> tuple[sp.ImmutableMatrix, ...]:
        """K_i, the first D columns of W^K_i, shape (R, D), one per head."""
        return self._rows("k")

    @cached_property
    def Q(self) -> tuple[sp.ImmutableMatrix, ...]:
        """Q_i, the first D columns of W^Q_i, shape (R, D), one per head."""
        return self._rows("q")

    def _rows(self, name: str) -> tuple[sp.ImmutableMatrix, ...]:
        return tuple(
            sp.ImmutableMatrix(
                self.rank, self.dim, lambda r, d, i=i: sp.Symbol(f"{name}_{i + 1}_{r + 1}_{d + 1}")
            )
            for i in range(self.heads)
        )

    @property
    def weights(self) -> tuple[sp.Symbol, ...]:
        """v_1 ... v_H, then K_1 ... K_H, then Q_1 ... Q_H, each row by row: H (2 R D + 1) coordinates."""
        return (*self.v, *(entry for block in (*self.K, *self.Q) for entry in block))

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
    def a(self) -> tuple[sp.Expr, ...]:
        """a_d = S_dd / lambda_d^2 = 1 + (1 + tr/lambda_d)/N, one per mode."""
        return tuple(
            sp.factor(s / x**2) for s, x in zip(self.moments.S.diagonal(), self.eigenvalues, strict=True)
        )

    @cached_property
    def M(self) -> sp.ImmutableMatrix:
        """M = sum_i v_i K_i^T Q_i, shape (D, D): what the network computes, y_hat = beta^T M x_q."""
        blocks = [x * K.T * Q for x, K, Q in zip(self.v, self.K, self.Q, strict=True)]
        return sp.ImmutableMatrix(sum(blocks[1:], blocks[0]))

    def token_contribution(self, token: sp.Matrix, label: sp.Expr, query: sp.Matrix) -> sp.Expr:
        """What one context token adds to N y_hat, by the definition with literal (D+1) x (D+1) and R x (D+1)
        weight matrices.

        The attention output's entry (D+1, N+1) is a sum over tokens t = (x, y), the query (x_q, 0) among
        them: sum_i W^V_i[-1, :] t t^T W^K_i^T W^Q_i t_q. The blocks that start at zero and stay there are zero.

        Args:
            token, query: x and x_q, shape (D, 1); label: y.
        """
        t, q = token.col_join(sp.Matrix([label])), query.col_join(sp.Matrix([0]))
        total, blank = sp.Integer(0), sp.zeros(self.rank, 1)
        for x, K, Q in zip(self.v, self.K, self.Q, strict=True):
            value = sp.zeros(self.dim + 1)
            value[-1, -1] = x
            key, query_weights = sp.Matrix(K).row_join(blank), sp.Matrix(Q).row_join(blank)
            total += (value[-1, :] * t * t.T * key.T * query_weights * q)[0, 0]
        return total

    # --- loss and flow
    # ----------------------------------------------------------------------------------------

    @cached_property
    def loss(self) -> sp.Expr:
        """L = E(y_q - y_hat)^2, no 1/2: the same function of M as for merged key and query."""
        return self.moments.loss(self.M)

    @cached_property
    def flow(self) -> VectorField:
        """tau dW/dt = -(1/2) dL/dW, all H (2 R D + 1) weights."""
        return predictor_flow(self.moments, self.M, self.weights, source=_SOURCE)

    @cached_property
    def residual(self) -> sp.ImmutableMatrix:
        """G(M) = -(1/2) dL/dM, shape (D, D): tau dv_i = tr(K_i G Q_i^T), tau dK_i = v_i Q_i G^T, tau dQ_i = v_i
        K_i G."""
        return self.moments.residual(self.M)

    @cached_property
    def conserved(self) -> tuple[FirstIntegral, ...]:
        """Per head v^2 - |K|_F^2 and the R (R + 1)/2 entries of K K^T - Q Q^T, each proven constant."""
        found = []
        for x, K, Q in zip(self.v, self.K, self.Q, strict=True):
            gap = K * K.T - Q * Q.T
            entries = (gap[r, s] for r, s in combinations_with_replacement(range(self.rank), 2))
            found += [x**2 - (K * K.T).trace(), *entries]
        return tuple(verify(self.flow, quantity, source=_SOURCE) for quantity in found)

    # --- fixed points
    # -----------------------------------------------------------------------------------------

    def point(self, modes: Sequence[int]) -> FixedPoint:
        """The fixed point that has learned the modes S:  M_S = sum_{d in S} e_d e_d^T / (lambda_d a_d), proven.

        Its weights are the structured representative: the modes fill the heads in order, R to a head, with
        v_i = (sum_r p_r)^(1/3), k_ir = q_ir = sqrt(p_r/v_i) e_d, p_d = 1/(lambda_d a_d); spare heads are zero.

        Args:
            modes: S, numbers from 1 to D, at most H R of them.
        Raises:
            ValueError: S is not such a set.
        """
        return fixed_points.point(self, modes)

    def conditions(self, modes: Sequence[int], active: Sequence[int]) -> tuple[sp.Expr, ...]:
        """Expressions in the weights that all vanish exactly at the fixed points with M = M_S whose heads `active`
        are those with v_i != 0.

        (C1) M = M_S; (C2) the rows of an active head have no component outside S; (C3') a head with v_i = 0 has
        sum_{d not in S} lambda_d^2 sum_r k_ird q_ird = 0. The paper's (C3), k_i or q_i in the span of S, is
        sufficient for (C3') and not necessary.

        Args:
            modes: S, as in `point`.
            active: numbers of heads, from 1 to H.
        Raises:
            ValueError: S or `active` is not such a set.
        """
        return fixed_points.conditions(self, modes, active)

    def predictor(self, count: int) -> sp.ImmutableMatrix:
        """M_m = sum_{d <= m} e_d e_d^T / (lambda_d a_d), principal component regression on m = `count` modes.

        Raises:
            ValueError: `count` is not an integer from 0 to D.
        """
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= self.dim:
            raise ValueError(f"`count` must be an integer from 0 to D = {self.dim}; got {count!r}.")
        return fixed_points.learned(self, range(1, count + 1))

    # --- reductions
    # -------------------------------------------------------------------------------------------

    @property
    def placement(self) -> tuple[tuple[int, ...], ...]:
        """The modes 1, 2, ..., D dealt to the heads in order, R to a head; spare heads have none."""
        return fixed_points.dealt(self, range(1, min(self.dim, self.heads * self.rank) + 1))

    def aligned(self, placement: Sequence[Sequence[int]] | None = None) -> dict[sp.Symbol, sp.Expr]:
        """The ansatz k_ir = q_ir = kappa_<i>_<r> e_d: row r of head i lies on the mode d = placement[i][r].

        Rows without a mode are zero, and so are heads without any. Heads are independent of each other only if the
        modes are distinct: two rows on one mode share its target.

        Args:
            placement: for each head the modes of its first rows, 1-based; `self.placement` when None.
        Raises:
            ValueError: more heads or rows than the model has, or a mode outside 1 ... D.
        """
        placement = self.placement if placement is None else placement
        if len(placement) > self.heads or any(len(modes) > self.rank for modes in placement):
            raise ValueError(f"`placement` must fit {self.heads} heads of {self.rank} rows; got {placement}.")
        if not all(1 <= d <= self.dim for modes in placement for d in modes):
            raise ValueError(f"Modes are numbered 1 ... {self.dim}; got {placement}.")
        embedding: dict[sp.Symbol, sp.Expr] = dict.fromkeys(self.weights, sp.Integer(0))
        for i, modes in enumerate(placement):
            if modes:
                embedding[self.v[i]] = self.v[i]
            for r, d in enumerate(modes):
                size = sp.Symbol(f"kappa_{i + 1}_{r + 1}")
                embedding |= dict.fromkeys((self.K[i][r, d - 1], self.Q[i][r, d - 1]), size)
        return embedding

    def balanced(self, modes: Sequence[int] | None = None) -> dict[sp.Symbol, sp.Expr]:
        """The ansatz k_i1 = q_i1 = v_i e_d, one mode d = modes[i] a head, all other rows zero.

        Args, Raises: as `aligned`; 1, 2, ... when None.
        """
        modes = range(1, min(self.dim, self.heads) + 1) if modes is None else modes
        equal = {sp.Symbol(f"kappa_{i + 1}_1"): x for i, x in enumerate(self.v)}
        return {w: e.xreplace(equal) for w, e in self.aligned([(d,) for d in modes]).items()}

    @cached_property
    def reductions(self) -> dict[str, Reduction]:
        """Proven reductions by name.

        "aligned": k_ir = q_ir = kappa_ir e_d with distinct modes d: heads do not interact, the rows of one head do
            through v_i only.
        "balanced": one mode a head and k_i = q_i = v_i e_i, spare heads zero: min(D, H) uncoupled equations.
        "scalar": the one equation that each of them is,  tau dv/dt = lambda^2 v^2 - lambda^3 a v^5, for every D.
        """
        balanced = self._reduced(self.balanced(), "k_i = q_i = v_i e_i, one mode a head, spare heads zero")
        return {
            "aligned": self._reduced(self.aligned(), "k_ir = q_ir = kappa_ir e_d, distinct modes d"),
            "balanced": balanced,
            "scalar": self._scalar(balanced),
        }

    @cached_property
    def closed_forms(self) -> dict[str, ClosedForm]:
        """The proven time course of "scalar", implicit:  t = F(v) - F(v_0)  on either side of v_star."""
        return {"scalar": closed_form.solve(self.reductions["scalar"].field)}

    @cached_property
    def equilibrium(self) -> dict[sp.Symbol, sp.Expr]:
        """Where "aligned" ends from a balanced start (v_i^2 = sum_r kappa_ir^2), proven to be a fixed point of it.

        v_i = (sum_r p_d)^(1/3), kappa_ir^2 = p_d/v_i, p_d = 1/(lambda_d a_d).
        """
        field = self.reductions["aligned"].field
        values = fixed_points.sizes(self, self.placement)
        for f in field.rhs:
            if residual(f.xreplace(values)) != 0:
                raise AssertionError(f"the aligned flow does not vanish at {values}")
        return values

    @property
    def v_star(self) -> sp.Expr:
        """v* = (lambda a)^(-1/3), where "scalar" ends from v_0 > 0."""
        return (lam * a) ** sp.Rational(-1, 3)

    @cached_property
    def relaxation_rate(self) -> sp.Expr:
        """The slope of "scalar" at v*:  -3 lambda^2 v*/tau."""
        (f,) = self.reductions["scalar"].field.rhs
        return sp.powsimp(sp.expand(f.diff(v).subs(v, self.v_star)))

    @cached_property
    def half_time(self) -> sp.Expr:
        """When a mode has made half of its loss drop (v^3 = (1 - 1/sqrt(2)) v*^3), from a start 0 < v_0 below it.

        (tau/(lambda^2 v*)) (F(u) - F(v_0/v*)), solved from the loss and the closed form.
        """
        law, share = self.closed_forms["scalar"], sp.Dummy("x", positive=True)
        drop = self.reductions["scalar"].observables["drop"].subs(v, sp.cbrt(share) * self.v_star)
        end = drop.subs(share, 1)
        half = min(sp.solve(sp.expand(sp.simplify(drop / end - sp.Rational(1, 2))), share))
        (start,) = law.initial.values()
        return law.primitive.subs(v, sp.cbrt(half) * self.v_star) - law.primitive.subs(v, start)

    def _reduced(self, embedding: dict[sp.Symbol, sp.Expr], exact_on: str) -> Reduction:
        state = tuple(dict.fromkeys(s for e in embedding.values() for s in sorted(e.free_symbols, key=str)))
        field = restrict(self.flow, embedding, state=state)
        learned = [m.xreplace(embedding) for m in self.M.diagonal()]
        drops = [_drop(x, b, p) for x, b, p in zip(self.eigenvalues, self.a, learned, strict=True)]
        loss = self.moments.power - sp.Add(*drops)
        left = residual(self.loss.xreplace(embedding) - loss)
        if left != 0:
            raise AssertionError(f"the reduced loss differs from the loss by {left}")
        observables = {"loss": loss, **{f"M_{d}_{d}": p for d, p in enumerate(learned, 1)}}
        return Reduction(field, observables, exact_on)

    def _scalar(self, balanced: Reduction) -> Reduction:
        """The one-mode field; proven from the moments for symbolic D, and head by head on "balanced"."""
        rate = (lam**2 * v**2 - lam**3 * a * v**5) / tau
        field = VectorField((v,), (rate,), (lam, a, tau), source=_SOURCE)
        gaps = [*_gaps_for_every_dimension(rate)]
        for x, f, value, b in zip(
            balanced.field.state, balanced.field.rhs, self.eigenvalues, self.a, strict=False
        ):
            gaps.append(f - rate.xreplace({v: x, lam: value, a: b}))
        if any(residual(gap) != 0 for gap in gaps):
            raise AssertionError("a head does not obey the scalar equation")
        observables = {"drop": _drop(lam, a, v**3), "M": v**3}
        return Reduction(field, observables, f"one head of {balanced.exact_on}; L = tr - sum of the drops")

    # --- what a run is watched by
    # -----------------------------------------------------------------------------

    @property
    def observables(self) -> dict[str, sp.Expr]:
        """loss, M_<row>_<col> and the head's own KQ_<head>_<row>_<col> = (K_i^T Q_i)[row, col].

        Rows of K_i and Q_i mean nothing by themselves for R > 1: (O K_i, O Q_i) is the same head for every
        orthogonal O. These do not change with O.
        """
        cells = list(product(range(self.dim), repeat=2))
        found = {"loss": self.loss} | {f"M_{b + 1}_{c + 1}": self.M[b, c] for b, c in cells}
        for i, (K, Q) in enumerate(zip(self.K, self.Q, strict=True), 1):
            inner = K.T * Q
            found |= {f"KQ_{i}_{b + 1}_{c + 1}": inner[b, c] for b, c in cells}
        return found

    @property
    def defaults(self) -> dict[str, object]:
        """The authors' numbers (Fig. 3, D=4, H=5, R=1): N=31, eigenvalues proportional to D..1 with trace 1."""
        spectrum = [sp.Rational(2 * (self.dim - d), self.dim * (self.dim + 1)) for d in range(self.dim)]
        return {
            "eigenvalues": tuple(float(x) for x in spectrum),
            "context": 31,
            "sequences": 80000,
            "init": 0.01,
            "rate": 0.02,
            "steps": 10001,
        }


def _drop(value: sp.Expr, size: sp.Expr, p: sp.Expr) -> sp.Expr:
    """What a mode with M_dd = p takes off the loss:  2 lambda^2 p - lambda^3 a p^2."""
    return 2 * value**2 * p - value**3 * size * p**2


def _gaps_for_every_dimension(rate: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """tau dv/dt = v^2 G_dd at M diagonal with M_dd = v^3, less the scalar equation, for symbolic D.

    tau dk_d is the same v^2 G_dd, and tau dk_c = v^2 G_cd vanishes for c != d with M_cd.
    """
    moments, M = eigenbasis_moments(), sp.IndexedBase("m")
    first, second, *_ = moments.indices
    value, G = sp.IndexedBase("lambda")[first], moments.residual(M)
    off = G.xreplace({sp.KroneckerDelta(first, second): sp.Integer(0), M[first, second]: sp.Integer(0)})
    along = G.subs(second, first).xreplace({M[first, first]: v**3})
    here = {lam: value, a: moments.eigenvalue() / value**2}
    return off, v**2 * along / tau - rate.xreplace(here)
