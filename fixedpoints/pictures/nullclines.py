"""Nullclines: where one state stands still, every branch by its equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fixedpoints.pictures.curves import zero_curves
from fixedpoints.pictures.factoring import quotient
from fixedpoints.pictures.window import Window
from odesys.lambdify import compile_expressions

__all__ = ["Nullcline", "nullclines"]

#: Points to which a straight piece is refined before the parts outside the field's domain are cut off.
_FINE = 1_000


@dataclass(frozen=True, eq=False)
class Nullcline:
    """One branch of the set on which  d state / dt = 0.

    `equation` is the expression that vanishes on the branch, `name` the equation as text, and each of
    `pieces`, states of shape (2, k) in the field's order, is connected.
    """

    state: str
    equation: sp.Expr
    name: str
    pieces: tuple[np.ndarray, ...]


def nullclines(rhs: Sequence[sp.Expr], window: Window) -> tuple[Nullcline, ...]:
    """Every branch that meets the window, those of the first state first.

    A factor of the numerator of f_i is a branch; poles are none. A branch that is no line and on which f_i
    does not change sign (a factor such as 1 - cos(x - y)) is not seen. A state that never moves has no
    nullcline.

    Args:
        rhs: the two right-hand sides, without parameters.
        window: where to look.
    """
    found = []
    for state, f in zip(window.state, rhs, strict=True):
        numerator, _ = quotient(f, window.state)
        for curve in zero_curves(numerator, window):
            pieces = tuple(part for piece in curve.pieces for part in _defined(piece, rhs, window))
            if pieces:
                found.append(Nullcline(state.name, curve.equation, curve.name, pieces))
    return tuple(found)


def _defined(piece: np.ndarray, rhs: Sequence[sp.Expr], window: Window) -> list[np.ndarray]:
    """The parts of a piece on which the field is defined, up to single points such as poles."""
    if all(f.is_polynomial(*window.state) for f in rhs):
        return [piece]
    if piece.shape[1] == 1:
        return [piece] if np.all(np.isfinite(compile_expressions(rhs, window.state)(*piece))) else []
    straight = piece.shape[1] == 2
    fine = piece[:, :1] + np.diff(piece) * np.linspace(0.0, 1.0, _FINE) if straight else piece
    good = np.all(np.isfinite(compile_expressions(rhs, window.state)(*fine)), axis=0)
    good[1:-1] |= good[:-2] & good[2:]
    if good.all():
        return [piece]
    turns = np.flatnonzero(np.diff(good, prepend=False, append=False))
    return [fine[:, a:b] for a, b in zip(turns[::2], turns[1::2], strict=True) if b - a > 1]
