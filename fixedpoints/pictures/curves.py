"""Where an expression vanishes in a window: every factor is a curve of its own, lines are exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy as sp
from sympy.printing.str import StrPrinter

from fixedpoints.pictures.factoring import factors
from fixedpoints.pictures.window import Window
from odesys.lambdify import compile_expressions, compile_field
from symbolic.field import VectorField
from symbolic.roots import real_roots

__all__ = ["Curve", "readable", "roots_between", "zero_curves"]

#: Nodes of the grid on one side of the window, even so that the window's middle is no node; curves are found
#: if they have no turn or loop smaller than a cell.
_NODES = 300
#: Nodes at which a factor of one state is looked at.
_FINE = 4_000
#: A node's neighbours on the grid, and steps of Newton's method from the lowest nodes (at a multiple zero, each
#: step is a third of the way or so).
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Curve:
    """Where an equation holds in a window.

    `equation` is the expression that vanishes, and `name` the equation as text; each of `pieces`, states of
    shape (2, k), is connected.
    """

    equation: sp.Expr
    name: str
    pieces: tuple[np.ndarray, ...]


def zero_curves(expression: sp.Expr, window: Window) -> tuple[Curve, ...]:
    """The curves in a window on which an expression without denominators vanishes, a curve for each factor.

    Factors of one state are lines at certified roots (polynomials) or at roots by bisection; factors that are
    linear are lines; for all others a grid is contoured, and each vertex moved on to the curve by bisection. Where
    a factor never changes sign, single points at which it touches zero are found, pieces of one point.
    """
    found = [curve for factor in factors(expression, window.state) for curve in _curves(factor, window)]
    return tuple(curve for curve in found if curve.pieces)


def readable(expression: sp.Basic) -> str:
    """Text with floats, and rationals too long to read, in six digits."""
    long = {r: sp.Float(r) for r in expression.atoms(sp.Rational) if r.q > 1000 or abs(r.p) > 10**6}
    return _SixDigits().doprint(expression.xreplace(long))


class _SixDigits(StrPrinter):
    def _print_Float(self, expr: sp.Float) -> str:
        return f"{float(expr):.6g}"


def _curves(factor: sp.Expr, window: Window) -> list[Curve]:
    met = [x for x in window.state if x in factor.free_symbols]
    if len(met) == 1:
        return [
            _parallel(root, met[0], window)
            for root in roots_between(factor, met[0], *window.bounds[met[0].name])
        ]
    x, y = met
    if factor.is_polynomial(x, y) and sp.Poly(factor, x, y).total_degree() == 1:
        pieces = _straight(factor, window)
    else:
        pieces = _contour(factor, window)
    return [Curve(factor, f"{readable(factor)} = 0", pieces)]


def _parallel(root: sp.Expr, symbol: sp.Symbol, window: Window) -> Curve:
    """The line on which one state has a value."""
    at = window.state.index(symbol)
    piece = np.array([window.low, window.high]).T
    piece[at] = float(root)
    return Curve(symbol - root, f"{symbol} = {readable(sp.sympify(root))}", (piece,))


def _straight(factor: sp.Expr, window: Window) -> tuple[np.ndarray, ...]:
    """The part of the line a x + b y + c = 0 that lies in the window."""
    x, y = window.state
    poly = sp.Poly(factor, x, y)
    size = max(abs(c) for c in poly.coeffs())
    a, b, c = (float(poly.coeff_monomial(m) / size) for m in (x, y, 1))
    normal = np.array([a, b]) * window.widths
    offset = c + np.dot([a, b], window.low)  # in unit coordinates: normal . z + offset = 0
    foot, along = -offset * normal / np.dot(normal, normal), np.array([-normal[1], normal[0]])
    with np.errstate(divide="ignore"):
        ends = np.sort([(0 - foot) / along, (1 - foot) / along], axis=0)
    first, last = np.max(ends[0]), np.min(ends[1])
    if first >= last:
        return ()
    return (window.to_state(foot[:, None] + along[:, None] * np.array([first, last])),)


def roots_between(factor: sp.Expr, symbol: sp.Symbol, low: float, high: float) -> list[sp.Expr]:
    """The zeros of a function of one state in an interval, in increasing order; rational or to 17 digits.

    Those of polynomials with rational coefficients are certified; others are found where the function changes
    sign, touches zero or ends, if these places are further apart than 1/4000 of the interval.
    """
    try:
        certified = real_roots(factor, symbol)
    except ValueError:  # no polynomial, or not with rational coefficients
        return [sp.Float(root) for root in _bisected_roots(factor, symbol, low, high)]
    values = [root.lower if root.lower == root.upper else root.value(17) for root in certified]
    return [value for value in values if low <= value <= high]


def _bisected_roots(factor: sp.Expr, symbol: sp.Symbol, low: float, high: float) -> list[float]:
    """Zeros between which the factor changes sign, or which it touches, or at an edge of its domain."""
    rule = compile_field(VectorField((symbol,), (factor,)))
    value, slope = (lambda x: rule.rhs(0.0, x, ())[0]), (lambda x: rule.jacobian(0.0, x, ())[0, 0])
    grid = np.linspace(low, high, _FINE)[None, :]
    heights = value(grid)
    finite = np.isfinite(heights)
    size = np.max(np.abs(heights), where=finite, initial=0.0)
    found = [grid[0, heights == 0]]
    for function, signs, bound in (
        (value, heights, 1e-6),
        (slope, slope(grid), 1e-12),
        (lambda x: np.where(np.isfinite(value(x)), 1.0, -1.0), np.where(finite, 1.0, -1.0), 1e-6),
    ):
        at = np.flatnonzero(signs[:-1] * signs[1:] < 0)
        for ends in _bisect(function, grid[:, at], grid[:, at + 1]):
            found.append(ends[0, np.abs(value(ends)) <= bound * size])
    return _distinct(np.concatenate(found), high - low)


def _distinct(values: np.ndarray, width: float) -> list[float]:
    """In increasing order, those apart by more than rounding; zero where only rounding is left."""
    ordered = np.sort(np.where(np.abs(values) < 1e-13 * width, 0.0, values))
    return ordered[np.diff(ordered, prepend=-np.inf) > 1e-9 * width].tolist()


def _contour(factor: sp.Expr, window: Window) -> tuple[np.ndarray, ...]:
    import contourpy

    compiled = compile_expressions([factor], window.state)
    xs, ys = window.grid(_NODES)
    (heights,) = compiled(xs[None, :], ys[:, None])
    heights = np.ma.masked_invalid(heights)
    lines = contourpy.contour_generator(xs, ys, heights, name="serial", line_type="Separate").lines(0.0)
    pieces = []
    for line in lines:
        points, good = _on_curve(lambda p: compiled(*p)[0], np.asarray(line).T, window)
        runs = np.flatnonzero(np.diff(good, prepend=False, append=False))
        pieces += [points[:, a:b] for a, b in zip(runs[::2], runs[1::2], strict=True) if b - a > 1]
    return tuple(pieces) or _lone_points(factor, np.abs(heights).filled(np.inf), window)


def _lone_points(factor: sp.Expr, heights: np.ndarray, window: Window) -> tuple[np.ndarray, ...]:
    """Points (2, 1) at which a function that never changes sign touches zero, for example x^2 + y^2.

    From the lowest nodes of the grid, by Newton's method for its gradient. All around, on a small ring, it must
    be far from zero.
    """
    inner = heights[1:-1, 1:-1]
    around = [np.roll(heights, shift, (0, 1))[1:-1, 1:-1] for shift in _NEIGHBOURS]
    rows, columns = np.nonzero(np.isfinite(inner) & (inner <= np.min(around, axis=0)))
    xs, ys = window.grid(_NODES)
    at = np.stack([xs[columns + 1], ys[rows + 1]])
    gradient = compile_field(VectorField(window.state, tuple(factor.diff(x) for x in window.state)))
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            (a, b), (c, d) = gradient.jacobian(0.0, at, ())
            g, h = gradient.rhs(0.0, at, ())
            at = at - np.stack([d * g - b * h, a * h - c * g]) / (a * d - b * c)
    at = at[:, np.all(np.isfinite(at), axis=0)]
    angles = np.linspace(0.0, 2 * np.pi, 720, endpoint=False)
    circle = 1e-3 * window.widths[:, None] * np.stack([np.cos(angles), np.sin(angles)])
    (ring,) = compile_expressions([factor], window.state)(*(at[:, :, None] + circle[:, None, :]))
    (value,) = compile_expressions([factor], window.state)(*at)
    low, high = np.min(np.abs(ring), axis=1), np.max(np.abs(ring), axis=1)
    inside = np.all((window.to_unit(at) >= 0) & (window.to_unit(at) <= 1), axis=0)
    found = at[:, inside & (low > 1e-3 * high) & (np.abs(value) <= 1e-9 * low)]
    return tuple(point[:, None] for point in _apart(found, window))


def _apart(points: np.ndarray, window: Window) -> list[np.ndarray]:
    """Points (2,) of which no two are one up to rounding."""
    kept: list[np.ndarray] = []
    for point in points.T:
        if all(np.max(np.abs(point - other) / window.widths) > 1e-6 for other in kept):
            kept.append(np.where(np.abs(point) < 1e-12 * window.widths, 0.0, point))
    return kept


def _on_curve(
    value: Callable[[np.ndarray], np.ndarray], vertices: np.ndarray, window: Window
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (2, k) of a contour moved along their edges of the grid to where the value is zero.

    Also which of them are zeros: between two values of different sign there may be a jump.
    """
    place = window.to_unit(vertices) * (_NODES - 1)
    nearest = np.rint(place)
    on_node = np.abs(place - nearest)
    fixed = on_node <= np.min(on_node, axis=0)  # the coordinate that the edge's two nodes share
    ends = (
        window.to_state(np.where(fixed, nearest, part(place)) / (_NODES - 1)) for part in (np.floor, np.ceil)
    )
    low, high = ends
    before = np.abs(value(low)) + np.abs(value(high))
    points, other = _bisect(value, low, high)
    after = np.abs(value(points)) + np.abs(value(other))
    return points, (after <= 1e-6 * before) | (before == 0)


def _bisect(
    value: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The last two points (n, k) of 60 halvings between points where the value has different signs."""
    sign = np.sign(value(low))
    for _ in range(60):
        middle = (low + high) / 2
        same = np.sign(value(middle)) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low, high
