"""Fixed points of bare rules: parameters stay symbols, and answers hold for all values that they may have.

Signs come from the assumptions of the symbols (positive, negative, real). What they leave open is stated as
conditions: Routh-Hurwitz for flows, Schur-Cohn (Jury) for maps of one and two states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from fixedpoints.arguments import coordinates
from fixedpoints.near.continuum import identities
from fixedpoints.near.gradient import check_loss, is_gradient
from fixedpoints.near.one_state import attraction_of_term, towards, word
from fixedpoints.nonhyperbolic import UNDECIDED
from fixedpoints.points import FixedPoint, NotAFixedPointError
from symbolic import conservation
from symbolic.conservation import FirstIntegral
from symbolic.field import IteratedMap, VectorField
from symbolic.zero import exact, is_zero, residual

__all__ = ["classify_for_all_parameters"]

#: Orders of derivatives that are tried for one state.
_MOST_TERMS = 6

_DEPENDS = "depends on the parameters"

Dims = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class _Factor:
    """An irreducible factor of the characteristic polynomial, with what is known of its roots.

    `dims` are (unstable, boundary, stable) or None; `stable` is the condition that all roots are stable, or
    None; `roots` is empty where radicals would not help.
    """

    roots: tuple[sp.Expr, ...]
    dims: Dims | None
    stable: sp.Basic | None


def classify_for_all_parameters(
    rule: VectorField | IteratedMap,
    point: Mapping,
    *,
    first_integrals: Sequence[FirstIntegral | sp.Expr] = (),
    loss: sp.Expr | None = None,
) -> FixedPoint:
    """As `fixedpoints.classify`, for a bare rule with parameters; coordinates are expressions in those.

    Raises:
        NotAFixedPointError: the right-hand sides do not vanish there for all parameters, or were not shown
            to; `residual` is what is left.
    """
    if loss is not None:
        check_loss(rule, {}, loss)
    place, is_map = _place(rule, point), isinstance(rule, IteratedMap)
    jacobian = sp.Matrix(rule.jacobian).subs(place).applyfunc(_tidy)
    factors = _factors(jacobian, is_map)
    dims = _total(factors)
    if dims is None:
        stability, evidence = _DEPENDS, _open(jacobian, factors)
    elif dims[1]:
        stability, evidence = _boundary(rule, place, jacobian, dims, first_integrals)
    else:
        stability, evidence = _named(jacobian, dims, is_map), ""
    roots = tuple(root for factor in factors for root in factor.roots)
    if not all(factor.roots for factor in factors):
        roots = ()
    descends = dims is not None and not is_map and (loss is not None or is_gradient(rule))
    return FixedPoint(
        {x.name: value for x, value in place.items()},
        roots,
        stability,
        dims=dims,
        evidence="; ".join(part for part in (_listed(roots, is_map), evidence) if part),
        index=dims if descends else None,
        stable_when=_condition(factors, dims, stability),
    )


def _place(rule: VectorField | IteratedMap, point: Mapping) -> dict[sp.Symbol, sp.Expr]:
    """The coordinates by state, at which the rule is proven to rest."""
    given = [exact(sp.sympify(value)) for value in coordinates(rule, point)]
    foreign = sorted({str(s) for value in given for s in value.free_symbols - set(rule.parameters)})
    if foreign:
        raise ValueError(
            f"Coordinates may use the parameters {[p.name for p in rule.parameters]} only; got {foreign}."
        )
    place = dict(zip(rule.state, given, strict=True))
    for x, f in zip(rule.state, rule.rhs, strict=True):
        moved = exact(f).subs(place) - (place[x] if isinstance(rule, IteratedMap) else 0)
        if moved.has(sp.nan, sp.zoo, sp.oo):
            raise NotAFixedPointError(f"The rule of {x} is not defined at {_shown(place)}.", float("nan"))
        verdict = is_zero(moved)
        if verdict is None:
            raise NotAFixedPointError(
                f"{_shown(place)} could not be shown to be a fixed point: {residual(moved)} is zero at every "
                "parameter tried, but not proven to vanish. Rewrite it in simpler functions.",
                residual(moved),
            )
        if not verdict:
            raise NotAFixedPointError(
                f"{_shown(place)} is not a fixed point: the rule of {x} leaves {residual(moved)} there. "
                "Give the coordinates as expressions in the parameters.",
                residual(moved),
            )
    return place


def _shown(place: Mapping[sp.Symbol, sp.Expr]) -> str:
    return "{" + ", ".join(f"{x}: {value}" for x, value in place.items()) + "}"


def _listed(roots: Sequence[sp.Expr], is_map: bool) -> str:
    sort = "multiplier" if is_map else "eigenvalue"
    return f"{sort}{'s' if len(roots) > 1 else ''} {', '.join(map(str, roots))}" if roots else ""


def _tidy(expression: sp.Expr) -> sp.Expr:
    return sp.factor(sp.radsimp(sp.together(exact(expression))))


def _sign(expression: sp.Expr) -> int | None:
    """1, 0 or -1 where the symbols' assumptions decide it."""
    factored = sp.factor(expression)
    if factored.is_positive:
        return 1
    if factored.is_negative:
        return -1
    return 0 if factored.is_zero or is_zero(factored) is True else None


def _positive(expression: sp.Expr) -> sp.Basic:
    """The condition that an expression is positive, without factors whose sign is known."""
    sides = [(factor, _sign(factor)) for factor in sp.Mul.make_args(sp.factor(expression))]
    if 0 in (side for _, side in sides):
        return sp.false
    left = sp.expand(sp.Mul(*(factor if side is None else side for factor, side in sides)))
    if not left.free_symbols:
        return sp.Gt(left, 0)
    constant, moving = left.as_coeff_Add()
    scale, moving = moving.as_coeff_Mul()
    return sp.Gt(moving, -constant / scale) if scale > 0 else sp.Lt(moving, -constant / scale)


# The characteristic polynomial, factor by factor


def _factors(jacobian: sp.Matrix, is_map: bool) -> list[_Factor]:
    characteristic = jacobian.charpoly()
    mark, found = characteristic.gen, []
    for factor, multiplicity in sp.factor_list(characteristic.as_expr(), mark)[1]:
        c = [_tidy(x) for x in sp.Poly(factor, mark).monic().all_coeffs()]
        found += [_map_factor(c) if is_map else _flow_factor(c)] * multiplicity
    return found


def _flow_factor(c: Sequence[sp.Expr]) -> _Factor:
    """c are the coefficients of a monic polynomial, the leading one first."""
    if len(c) == 2:
        side = _sign(-c[1])
        dims = None if side is None else (int(side > 0), int(side == 0), int(side < 0))
        return _Factor((-c[1],), dims, _positive(c[1]))
    hurwitz = _hurwitz(c)
    stable = sp.And(*map(_positive, hurwitz)) if hurwitz else None
    if len(c) == 3:
        return _Factor(_quadratic_roots(c), _flow_pair(_sign(c[1]), _sign(c[2])), stable)
    return _Factor((), (0, 0, len(c) - 1) if stable == sp.true else None, stable)


def _flow_pair(b: int | None, c: int | None) -> Dims | None:
    """Sides of the roots of  lambda^2 + b lambda + c  from the signs of b and c."""
    if c == -1:
        return 1, 0, 1
    if c == 1 and b is not None:
        return {1: (0, 0, 2), 0: (0, 2, 0), -1: (2, 0, 0)}[b]
    return None


def _quadratic_roots(c: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    root = sp.sqrt(sp.factor(c[1] ** 2 - 4 * c[2]))
    return (-c[1] + root) / 2, (-c[1] - root) / 2


def _hurwitz(c: Sequence[sp.Expr]) -> list[sp.Expr] | None:
    """Expressions that are all positive exactly when all roots have negative real part, up to degree 4.

    Routh and Hurwitz, with the reduction of Lienard and Chipart (Gantmacher 1959, chapter XV).
    """
    if len(c) == 3:
        return [c[1], c[2]]
    if len(c) == 4:
        return [c[1], c[3], c[1] * c[2] - c[3]]
    if len(c) == 5:
        return [c[1], c[2], c[4], c[1] * c[2] * c[3] - c[3] ** 2 - c[1] ** 2 * c[4]]
    return None


def _map_factor(c: Sequence[sp.Expr]) -> _Factor:
    if len(c) == 2:
        root = -c[1]
        return _Factor(
            (root,),
            _map_one(_sign(1 - root), _sign(1 + root)),
            sp.And(_positive(1 - root), _positive(1 + root)),
        )
    if len(c) > 3:
        return _Factor((), None, None)
    jury = (1 + c[1] + c[2], 1 - c[1] + c[2], 1 - c[2])
    return _Factor(_quadratic_roots(c), _map_pair(*map(_sign, jury)), sp.And(*map(_positive, jury)))


def _map_one(below: int | None, above: int | None) -> Dims | None:
    """Side of a real multiplier from the signs of 1 - root and 1 + root."""
    if 0 in (below, above):
        return 0, 1, 0
    if -1 in (below, above):
        return 1, 0, 0
    return (0, 0, 1) if below == above == 1 else None


def _map_pair(at_one: int | None, at_minus: int | None, room: int | None) -> Dims | None:
    """Sides of two multipliers from the signs of p(1), of p(-1), and of 1 less their product (Jury)."""
    if at_one == at_minus == 1 and room is not None:
        return {1: (0, 0, 2), 0: (0, 2, 0), -1: (2, 0, 0)}[room]
    if at_one and at_minus:
        return (1, 0, 1) if at_one != at_minus else (2, 0, 0)
    return None


def _total(factors: Sequence[_Factor]) -> Dims | None:
    sides = [factor.dims for factor in factors if factor.dims is not None]
    if len(sides) < len(factors):
        return None
    unstable, boundary, stable = (sum(side) for side in zip(*sides, strict=True))
    return unstable, boundary, stable


# What follows for the point


def _condition(factors: Sequence[_Factor], dims: Dims | None, stability: str) -> sp.Basic | None:
    """When the point is asymptotically stable; None where that is not known."""
    if dims is None:
        conditions = [factor.stable for factor in factors]
        return None if None in conditions else sp.And(*conditions)
    if not dims[1]:
        return sp.false if dims[0] else sp.true
    return {"stable": sp.true, UNDECIDED: None}.get(stability, sp.false)


def _open(jacobian: sp.Matrix, factors: Sequence[_Factor]) -> str:
    condition = _condition(factors, None, _DEPENDS)
    if condition is None:
        polynomial = jacobian.charpoly(sp.Symbol("lambda")).as_expr()
        return f"the signs of the roots of {polynomial} are not decided; give numbers for the parameters"
    if condition == sp.false:
        return "not asymptotically stable for any of their values, as far as the eigenvalues tell"
    return f"asymptotically stable if {condition}"


def _named(jacobian: sp.Matrix, dims: Dims, is_map: bool) -> str:
    unstable, _, stable = dims
    if unstable and stable:
        return "saddle"
    side, n = "stable" if stable else "unstable", unstable + stable
    if n == 1:
        return side
    difference = _sign(jacobian.trace() ** 2 - 4 * jacobian.det()) if n == 2 and not is_map else None
    if difference is None:
        return "sink" if stable else "source"
    if difference == 0:
        scalar = jacobian.is_diagonal() and _sign(jacobian[0, 0] - jacobian[1, 1]) == 0
        return f"{side} {'star' if scalar else 'degenerate'} node"
    return f"{side} {'node' if difference > 0 else 'focus'}"


def _boundary(rule, place, jacobian: sp.Matrix, dims: Dims, first_integrals) -> tuple[str, str]:
    """Stability and evidence with eigenvalues on the boundary."""
    start = "the linearisation does not decide"
    found = _one_state(rule, place) if len(place) == 1 else None
    if found is not None:
        return found[0], f"{start}; {found[1]}"
    if dims[0]:
        return "unstable", f"{start}; an eigenvalue is unstable"
    kernel = (jacobian - int(isinstance(rule, IteratedMap)) * sp.eye(len(place))).nullspace()
    if len(kernel) == dims[1]:
        quantities = _conserved(rule, place, kernel, first_integrals)
        if quantities:
            noun = "conserved quantity" if len(quantities) == 1 else "conserved quantities"
            which = ", ".join(map(str, quantities))
            return (
                f"stable modulo the {noun}",
                f"{start}; asymptotically stable on each leaf of constant {which}",
            )
        if _on_a_set(rule, place, dims[1]):
            return (
                "stable, not asymptotically (normally attracting set)",
                f"{start}; the fixed points near it are a manifold of dimension {dims[1]}, which attracts",
            )
    return UNDECIDED, f"{start}; give numbers for the parameters to have higher terms computed"


def _one_state(rule, place) -> tuple[str, str] | None:
    (x,), (f,) = rule.state, rule.rhs
    if isinstance(rule, IteratedMap) and _sign(_tidy(f.diff(x).subs(place)) + 1) == 0:
        return None
    velocity = exact(f) - (x if isinstance(rule, IteratedMap) else 0)
    for order in range(1, _MOST_TERMS + 1):
        side = _sign(_tidy(velocity.diff(x, order).subs(place)))
        if side is None:
            return None
        if side:
            attracts = attraction_of_term(order, side)
            return word(attracts), f"by derivative {order} of the velocity, moves {towards(attracts)}"
    return None


def _conserved(rule, place, kernel: Sequence[sp.Matrix], given) -> tuple[sp.Expr, ...]:
    """Quantities on whose leaves no direction of the kernel is left open, or ()."""
    if isinstance(rule, IteratedMap):
        return ()
    known = [q if isinstance(q, FirstIntegral) else conservation.verify(rule, q) for q in given]
    known = [q if q.field == rule else conservation.verify(rule, q.expression) for q in known]
    if all(f.is_rational_function(*rule.state) for f in rule.rhs):
        known += conservation.find(rule, degree=1)
    expressions = tuple(q.expression for q in known)
    if not expressions:
        return ()
    gradients = sp.Matrix([[q.diff(x).subs(place) for x in rule.state] for q in expressions])
    inside = (gradients * sp.Matrix.hstack(*kernel)).applyfunc(_tidy)
    return expressions if inside.rank() == len(kernel) else ()


def _on_a_set(rule, place, dimension: int) -> bool:
    for degree in range(2):
        rows = identities(rule, (), degree)
        if rows and sp.Matrix(rows).subs(place).applyfunc(_tidy).rank() == dimension:
            return True
    return False
