"""Gradient systems: is there a loss that the rule descends, and what its Hessian says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import sympy as sp
from flint import fmpq

from fixedpoints.near.balls import Number, as_rational, dot, matmul, radius, sign, to_rational, transposed
from fixedpoints.near.centre_manifold import Kernel, along, on_kernel
from fixedpoints.near.jets import monomials
from fixedpoints.near.local import Local
from fixedpoints.near.spectrum import Spectrum
from symbolic.field import IteratedMap, VectorField
from symbolic.normal_form import vanishes
from symbolic.roots import real_roots
from symbolic.zero import exact, is_zero

__all__ = ["LossNear", "check_loss", "hessian_index", "is_gradient", "loss_near"]

#: The most states for which the symmetry of a Jacobian is proven, and for which a kernel is searched.
_MOST_STATES = 40
#: Degree of the velocity up to which a degenerate minimum is looked for.
_MOST_TERMS = 7


def hessian_index(spectrum: Spectrum, is_map: bool) -> tuple[int, int, int]:
    """(negative, zero, positive) eigenvalues of the Hessian, whose negatives the flow's Jacobian has.

    A descent map has the multipliers 1 - step * h.
    """
    if not is_map:
        return spectrum.dims
    zero = spectrum.count("zero")
    negative = sum(e.side != 0 and e.value.real > 1 for e in spectrum.eigenvalues)
    return negative, zero, len(spectrum.eigenvalues) - zero - negative


@lru_cache(maxsize=256)
def is_gradient(rule: VectorField | IteratedMap) -> bool:
    """Whether the Jacobian is proven to be symmetric everywhere: then the rule descends some loss."""
    n = len(rule.state)
    if n == 1 or n > _MOST_STATES:
        return False
    jacobian = rule.jacobian
    gaps = (jacobian[i, j] - jacobian[j, i] for i in range(n) for j in range(i))
    # Sums of several softmaxes: as polynomials in letters a hundred times sooner than expanded.
    return all(vanishes(gap) or is_zero(gap) is True for gap in gaps)


def check_loss(rule: VectorField | IteratedMap, values: Mapping[sp.Symbol, float], loss: sp.Expr) -> None:
    """Prove that the rule descends the loss,  phi = -c grad L  with one constant c > 0.

    Raises:
        ValueError: it does not, or that could not be shown.
    """
    loss = sp.sympify(loss)
    foreign = sorted(str(s) for s in loss.free_symbols - {*rule.state, *rule.parameters})
    if foreign:
        raise ValueError(
            f"The loss uses {foreign}, which the rule does not have. Write it in "
            f"{[s.name for s in (*rule.state, *rule.parameters)]}."
        )
    numbers = {p: sp.Rational(v) for p, v in values.items()}
    phi = [exact(f.xreplace(numbers)) for f in rule.rhs]
    if isinstance(rule, IteratedMap):
        phi = [f - x for f, x in zip(phi, rule.state, strict=True)]
    gradient = [exact(loss.xreplace(numbers)).diff(x) for x in rule.state]
    factor = next(
        (sp.cancel(sp.together(-f / g)) for f, g in zip(phi, gradient, strict=True) if g != 0), None
    )
    if factor is not None and not factor.free_symbols & set(rule.state):
        descends = all(is_zero(f + factor * g) is True for f, g in zip(phi, gradient, strict=True))
        if descends and factor.is_positive is not False and not factor.is_zero:
            return
    raise ValueError(
        f"The rule does not descend the loss {loss}: its right-hand sides are not one positive constant "
        f"times the negative gradient {gradient}. Leave `loss` out, or give the loss that generates the rule."
    )


@dataclass(frozen=True)
class LossNear:
    """Whether the loss is seen to fall and to rise from a point, and whether a strict minimum is proven."""

    falls: bool
    rises: bool
    minimum: bool = False


def loss_near(local: Local, null: Kernel) -> LossNear:
    """What the loss does on the degenerate directions.

    By the splitting lemma (Gromoll and Meyer 1969) the loss near a critical point is, in suitable
    coordinates, a quadratic form in the other directions plus a function r on the kernel. Along rays s a in
    the kernel r is found from the Lyapunov-Schmidt reduction; one ray on which it falls shows that the point
    is no minimum. In one or two dimensions a leading form that is positive in all directions shows a strict
    minimum.
    """
    if len(local.at) > _MOST_STATES:
        return LossNear(False, False)
    gram = matmul(null.right, transposed(null.right))
    falls, rises, orders = False, False, []
    for direction in _probes(len(null.right)):
        weights = [dot(row, direction) for row in gram]
        # The velocity along the ray, -dr/ds times a positive constant.
        terms = ((k, sign(dot(weights, g))) for k, g in along(local, null, direction, _MOST_TERMS))
        k, side = next((term for term in terms if term[1]), (0, 0))
        falls = falls or (k > 0 and (k % 2 == 0 or side > 0))
        rises = rises or (k > 0 and (k % 2 == 0 or side < 0))
        orders.append(k)
        if falls and rises:
            break
    if falls or 0 in orders or len(null.right) > 2:
        return LossNear(falls, rises)
    if len(null.right) == 1:
        return LossNear(False, True, minimum=True)
    form = _sign_of_form(local, null, min(orders))
    return LossNear(form < 0, True, minimum=form > 0)


def _probes(d: int) -> Iterator[list[fmpq]]:
    """Directions: the axes, and some in general position."""
    if d <= 12:
        for i in range(d):
            yield [fmpq(int(i == j)) for j in range(d)]
    if d > 1:
        for turn in range(1, 9 if d <= 12 else 4):
            yield [fmpq((-1) ** (turn * i // 2)) for i in range(d)]
            yield [fmpq((-1) ** (turn * i // 2) * ((turn + 3 * i) % 7 + 1)) for i in range(d)]


def _sign_of_form(local: Local, null: Kernel, order: int) -> int:
    """1: the leading form of r in two variables is positive everywhere but at 0; -1: somewhere negative."""
    form = _leading_form(local, null, order)
    if form is None:
        return 0
    # On the unit circle no monomial exceeds 1: a margin of all radii together makes midpoints decide.
    margin = as_rational(sum(radius(c) for c in form.values()))
    t, m = sp.Dummy("t"), order + 1
    middle = sp.Add(*(to_rational(c) * t ** p.count(1) for p, c in form.items()))
    lowered = middle - to_rational(margin) * sp.expand((1 + t**2) ** (m // 2))
    ends = (to_rational(form[(0,) * m]), to_rational(form[(1,) * m]))
    if min(ends) > to_rational(margin) and not real_roots(lowered, t):
        return 1
    cuts = [(a.upper + b.lower) / 2 for a, b in pairwise(real_roots(middle, t))]
    return -1 if any(_at(form, as_rational(cut)) < 0 for cut in cuts) else 0


def _at(form: dict, t: fmpq) -> Number:
    return sum((c * t ** p.count(1) for p, c in form.items()), fmpq(0))


def _leading_form(local: Local, null: Kernel, order: int) -> dict | None:
    """r's terms of degree order + 1, in u_0 and u_1; None if terms of lower degree do not vanish."""
    gram = matmul(null.right, transposed(null.right))
    for k, g in on_kernel(local, null, order):
        form: dict = {}
        for i, row in enumerate(gram):
            for powers in monomials(2, k):
                c = dot(row, [part[powers] for part in g])
                raised = tuple(sorted((*powers, i)))
                form[raised] = form.get(raised, fmpq(0)) - c / (k + 1)
        if k == order:
            return form
        if any(sign(c) for c in form.values()):
            return None
    return None
