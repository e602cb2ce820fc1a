"""How one head of separate attention leaves zero: the exact first plateau of the cubic flow G = Lambda^2, any start.

Near zero weights M is of third order, so that the residual is G(0) = Lambda^2 and heads do not interact:

    tau dv/dt = sum_rd lambda_d^2 k_rd q_rd,    tau dk_rd/dt = lambda_d^2 v q_rd,    tau dq_rd/dt = lambda_d^2 v k_rd

With s+- = k +- q and theta = (1/tau) int v dt it is solved:  s+- grow and shrink as exp(+-lambda_d^2 theta), and
v^2 = f(theta), where f is convex, so that v turns at most once. It blows up after  t* = tau int_0^oo dtheta/sqrt f
if v never turns; every other case is put together from such integrals (`odesys.studies.separate.escape`).
A learned mode d has G_dd = 0: its lambda_d counts as zero here, and its s+- stand still.

Source: derived here; the cubic flow is that of Zhang et al., arXiv:2501.16265, section 4, at small weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp

from symbolic import closed_form
from symbolic.closed_form import ClosedForm
from symbolic.conservation import FirstIntegral, verify
from symbolic.field import VectorField
from symbolic.linear_attention import separate
from symbolic.linear_attention.task import pulled_back, tau
from symbolic.reduction import restrict
from symbolic.zero import residual

__all__ = ["Escape", "model", "theta"]

#: The clock of the plateau, dtheta/dt = v/tau: it runs backwards while v < 0.
theta = sp.Symbol("theta")
#: v^2 as a coordinate, and the value of v at the start.
_square, _v_0 = sp.symbols("w v_0")


@lru_cache(maxsize=32, typed=True)
def model(*, dim: int, rank: int = 1) -> Escape:
    """The escape of one head of rank R = `rank` from zero in D = `dim` modes; what it derives is kept per process.

    Raises:
        ValueError: a size is not a positive integer, or the rank exceeds D.
    """
    return Escape(separate.model(dim=dim, heads=1, rank=rank))


@dataclass(frozen=True)
class Escape:
    """The cubic flow of one head; every property is derived from `attention`, a model of one head, and proven."""

    attention: separate.SeparateAttention

    def __post_init__(self):
        if self.attention.heads != 1:
            raise ValueError(
                f"`attention` must have one head; got {self.attention.heads}. Heads escape alone."
            )

    @property
    def v(self) -> sp.Symbol:
        return self.attention.v[0]

    @cached_property
    def plus(self) -> sp.ImmutableMatrix:
        """The symbols of s+ = k + q, shape (R, D)."""
        return self._grid("plus", "")

    @cached_property
    def minus(self) -> sp.ImmutableMatrix:
        """The symbols of s- = k - q, shape (R, D)."""
        return self._grid("minus", "")

    @cached_property
    def starts(self) -> tuple[sp.Symbol, sp.ImmutableMatrix, sp.ImmutableMatrix]:
        """The symbols of the start: v_0, and s+ and s- at theta = 0, each of shape (R, D)."""
        return _v_0, self._grid("plus", "_0"), self._grid("minus", "_0")

    def _grid(self, name: str, end: str) -> sp.ImmutableMatrix:
        shape = self.attention.rank, self.attention.dim
        return sp.ImmutableMatrix(*shape, lambda r, d: sp.Symbol(f"{name}_{r + 1}_{d + 1}{end}"))

    @cached_property
    def flow(self) -> VectorField:
        """The part of lowest order of the head's flow: the chain rule with the residual at M = 0."""
        head, D = self.attention, self.attention.dim
        rates = pulled_back(head.moments.residual(sp.zeros(D)), head.M, head.weights)
        rhs = tuple(rates[w] / tau for w in head.weights)
        return VectorField(head.weights, rhs, (*head.eigenvalues, tau), source=head.flow.source)

    @cached_property
    def modes(self) -> VectorField:
        """The same in v, s+ and s-:  tau ds+-/dt = +-lambda_d^2 v s+-,  tau dv/dt = (1/4) sum lambda_d^2 (s+^2 -
        s-^2)."""
        embedding = {}
        for k, q, p, m in zip(self.attention.K[0], self.attention.Q[0], self.plus, self.minus, strict=True):
            embedding |= {k: (p + m) / 2, q: (p - m) / 2}
        return restrict(self.flow, embedding, state=(self.v, *self.plus, *self.minus))

    @cached_property
    def speed_squared(self) -> sp.Expr:
        """f(theta) = v_0^2 + (1/4) sum_rd [s+_0^2 (e^{2 lambda_d^2 theta} - 1) + s-_0^2 (e^{-2 lambda_d^2 theta} - 1)],
        which v^2 is on every path, before and after a turn."""
        v_0, plus, minus = self.starts
        terms = [
            p**2 * (sp.exp(2 * rate) - 1) + m**2 * (sp.exp(-2 * rate) - 1)
            for p, m, rate in zip(plus, minus, self._exponents, strict=True)
        ]
        return v_0**2 + sp.Add(*terms) / 4

    @property
    def _exponents(self) -> list[sp.Expr]:
        """lambda_d^2 theta for each (r, d), row by row."""
        return [x**2 * theta for x in self.attention.eigenvalues] * self.attention.rank

    @cached_property
    def conserved(self) -> tuple[FirstIntegral, ...]:
        """s+ e^{-lambda_d^2 theta}, s- e^{lambda_d^2 theta} and v^2 - (1/4) sum (s+^2 + s-^2), proven constant in t.

        No step divides by v, so together they say that v^2 = f(theta) and where s+- are, whatever the sign of v:
        through the turn of a head that starts with v_0 < 0.
        """
        clocked = VectorField(
            (theta, *self.modes.state),
            (self.v / tau, *self.modes.rhs),
            self.modes.parameters,
            source=self.modes.source,
        )
        quantities = [p * sp.exp(-rate) for p, rate in zip(self.plus, self._exponents, strict=True)]
        quantities += [m * sp.exp(rate) for m, rate in zip(self.minus, self._exponents, strict=True)]
        quantities.append(self.v**2 - sp.Add(*(s**2 for s in (*self.plus, *self.minus))) / 4)
        return tuple(verify(clocked, quantity) for quantity in quantities)

    @cached_property
    def course(self) -> ClosedForm:
        """v^2 and s+- as functions of theta while v != 0, proven: the time of this closed form is theta."""
        rates = dict(zip(self.modes.state, self.modes.rhs, strict=True))
        state = (_square, *self.plus, *self.minus)
        # d/dtheta = (tau/v) d/dt, in which v cancels from every rate.
        rhs = (2 * tau * rates[self.v], *(sp.cancel(tau * rates[s] / self.v) for s in state[1:]))
        field = VectorField(state, rhs, self.attention.eigenvalues, source=self.modes.source)
        v_0, plus, minus = self.starts
        begin = sp.Symbol("w_0")
        initial = dict(zip(state, (begin, *plus, *minus), strict=True))
        paths = [self.speed_squared - v_0**2 + begin]
        paths += [p * sp.exp(rate) for p, rate in zip(plus, self._exponents, strict=True)]
        paths += [m * sp.exp(-rate) for m, rate in zip(minus, self._exponents, strict=True)]
        return closed_form.verify(field, dict(zip(state, paths, strict=True)), time=theta, initial=initial)

    @cached_property
    def bend(self) -> sp.Expr:
        """f''(theta), proven to be a sum of squares times positive factors: f is convex, v turns at most once.

        Where f vanishes its slope f' = 2 tau dv/dt tells what happens: if it is not zero, v changes sign and theta
        turns back; if it is, f has its minimum there and v approaches zero for ever.
        """
        rates = dict(zip(self.modes.state, self.modes.rhs, strict=True))
        paths = self.course.explicit or {}
        moved = (2 * tau * rates[self.v]).xreplace({s: paths[s] for s in (*self.plus, *self.minus)})
        if residual(self.speed_squared.diff(theta) - moved) != 0:
            raise AssertionError("the slope of v^2 = f(theta) is not 2 tau dv/dt")
        _, plus, minus = self.starts
        terms = [
            rate.diff(theta) ** 2 * (p**2 * sp.exp(2 * rate) + m**2 * sp.exp(-2 * rate))
            for p, m, rate in zip(plus, minus, self._exponents, strict=True)
        ]
        bend = sp.Add(*terms)
        if residual(self.speed_squared.diff(theta, 2) - bend) != 0:
            raise AssertionError("f is not convex by the terms claimed")
        return bend

    @property
    def waiting_time(self) -> sp.Integral:
        """t* = tau int_0^oo dtheta/sqrt f(theta), the end of the plateau from v_0 > 0 if f does not vanish on the way.

        From v_0 < 0 theta runs backwards, the same as (v, k) -> (-v, -k), that is s+ <-> -s-. If f vanishes at theta_1
        on the way, t* = tau (int from theta_1 back to 0 and int from theta_1 on, the other way, of dtheta/sqrt f).
        """
        return sp.Integral(tau / sp.sqrt(self.speed_squared), (theta, 0, sp.oo))
