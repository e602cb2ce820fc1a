"""The refusals of the symbolic room: each says what failed and carries the residual that shows it."""

from __future__ import annotations

__all__ = [
    "NoClosedFormError",
    "NotASolutionError",
    "NotClosedError",
    "NotConservedError",
    "NotInvariantError",
    "UndecidedError",
]


class _Refusal(ValueError):
    """A claim that could not be proven; `residual` is what should have been zero (or None)."""

    def __init__(self, message: str, residual=None):
        super().__init__(message)
        self.residual = residual

    def __reduce__(self):
        return type(self), (self.args[0], self.residual)


class NotInvariantError(_Refusal):
    """The flow leaves the manifold of an ansatz."""


class NotConservedError(_Refusal):
    """A quantity changes along the flow."""


class NotClosedError(_Refusal):
    """The flow of the observables needs more than the observables."""


class NotASolutionError(_Refusal):
    """A candidate does not solve the equation, or does not start where it should."""


class NoClosedFormError(_Refusal):
    """No closed form of a supported family was found; nothing is claimed about its existence."""


class UndecidedError(_Refusal):
    """An expression could be shown neither to vanish nor not to vanish."""
