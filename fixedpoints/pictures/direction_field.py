"""The directions of a planar flow, in the units of its picture: what streamlines and separatrices follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fixedpoints.pictures.window import Window
from odesys.lambdify import CompiledField, compile_field
from odesys.system import ODESystem

__all__ = ["DirectionField"]

#: A line has arrived at a fixed point when Newton's method sees one within this part of the window.
_REACH = 2e-3


@dataclass(frozen=True, eq=False)
class DirectionField:
    """The field  dz/ds = g / |g|,  g = f / (high - low),  in the unit coordinates z of a window.

    It has the lines of the flow  dx/dt = f(x)  with their arc length in the picture as parameter, so that
    lines progress alike where the flow is fast, slow or stiff.
    """

    system: ODESystem
    window: Window

    @cached_property
    def _compiled(self) -> CompiledField:
        return compile_field(self.system)

    def rates(self, units: np.ndarray) -> np.ndarray:
        """g, the velocity in windows per unit of time, shape (2, ...); not finite where f is not defined."""
        velocity = self._compiled.rhs(0.0, self.window.to_state(units), self._compiled.args)
        return velocity / self.window.widths.reshape(2, *(1,) * (units.ndim - 1))

    def directions(self, units: np.ndarray) -> np.ndarray:
        """g / |g|, shape (2, ...); nan at fixed points and where f is not finite."""
        rates = self.rates(units)
        with np.errstate(all="ignore"):
            rates = rates / np.abs(rates).max(axis=0)  # no overflow in the squares
            return rates / np.hypot(rates[0], rates[1])

    def arrived(self, units: np.ndarray) -> np.ndarray:
        """Where the next fixed point, by one step of Newton's method, is nearer than 1/500 of the window.

        Where the Jacobian J is singular, near lines of fixed points for one, |g| / |J| replaces the step.
        """
        rates, jacobian = self.rates(units), self.jacobian(units)
        with np.errstate(all="ignore"):
            size = np.abs(jacobian).max(axis=(0, 1))  # in whose units nothing overflows
            (g, h), ((a, b), (c, d)) = rates / size, jacobian / size
            determinant = a * d - b * c
            newton = np.hypot(d * g - b * h, a * h - c * g) / np.abs(determinant)
            return np.where(np.abs(determinant) <= 1e-12, np.hypot(g, h), newton) < _REACH

    def jacobian(self, units: np.ndarray) -> np.ndarray:
        """d g / d z, shape (2, 2, ...)."""
        widths = self.window.widths
        full = self._compiled.jacobian(0.0, self.window.to_state(units), self._compiled.args)
        return full * (widths[None, :] / widths[:, None]).reshape(2, 2, *(1,) * (units.ndim - 1))
