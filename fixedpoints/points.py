"""What is found: fixed points, components, and how sure we are that nothing is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

__all__ = ["Certificate", "Component", "FixedPoint", "FixedPoints", "NotAFixedPointError", "OpenBox"]


class NotAFixedPointError(ValueError):
    """A point where the right-hand side does not vanish; `residual` is its size there."""

    def __init__(self, message: str, residual: float):
        super().__init__(message)
        self.residual = residual

    def __reduce__(self):
        return type(self), (self.args[0], self.residual)


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A point x* with f(x*) = 0 (for a map, f(x*) = x*) and what the system does near it.

    Args:
        location: state name -> coordinate; a float for a system with numbers, else an expression.
        eigenvalues: of the Jacobian at x*, in 1/time (maps: multipliers), by falling real part (modulus).
        eigenvalue_errors: bounds on the errors of the eigenvalues; empty for expressions.
        dims: dimensions of the unstable, centre and stable subspaces; None if signs depend on parameters.
        stability: in words, for example "stable node", "saddle", "half-stable"; see `fixedpoints.stability`.
        evidence: the sentence that says what decided it, for example "eigenvalues -1, -2".
        residual: largest |f_i(x*)|, as computed at the floats of `location`.
        enclosure: state name -> rational bounds proven to hold this fixed point and no other, or None.
        multiplicity: exact multiplicity of the root, or None where it was not computed.
        index: (negative, zero, positive) eigenvalues of the Hessian of a gradient flow, else None.
        attracts: for one state, whether states below and above the point move towards it, else None.
        conditions: relations between parameters under which the point exists (bare fields).
        stable_when: for bare rules with parameters, the condition on them under which the point is
            asymptotically stable; None if it is not known, or if the system has numbers.
    """

    location: Mapping[str, float | sp.Expr]
    eigenvalues: tuple[complex | sp.Expr, ...]
    stability: str
    eigenvalue_errors: tuple[float, ...] = ()
    dims: tuple[int, int, int] | None = None
    evidence: str = ""
    residual: float = 0.0
    enclosure: Mapping[str, tuple[sp.Rational, sp.Rational]] | None = None
    multiplicity: int | None = None
    index: tuple[int, int, int] | None = None
    attracts: tuple[bool, bool] | None = None
    conditions: tuple[sp.Basic, ...] = ()
    stable_when: sp.Basic | None = None


@dataclass(frozen=True, eq=False)
class Component:
    """A set of fixed points: where all `equations` (expressions that vanish) hold.

    Its dimension is positive; or it is 0, for finitely many fixed points of a bare field that radicals of its
    parameters cannot express, and that are therefore given by their equations.
    """

    equations: tuple[sp.Expr, ...]
    dimension: int
    conditions: tuple[sp.Basic, ...] = ()


@dataclass(frozen=True, eq=False)
class OpenBox(Mapping):
    """A box about which not all is known: state name -> (low, high), with the reason in words."""

    sides: Mapping[str, tuple[float, float]]
    reason: str

    def __getitem__(self, name: str) -> tuple[float, float]:
        return self.sides[name]

    def __iter__(self):
        return iter(self.sides)

    def __len__(self) -> int:
        return len(self.sides)


@dataclass(frozen=True)
class Certificate:
    """How sure we are that no fixed point is missing.

    `kind` is "complete" (on the whole space, by algebra), "complete in box" (every other part of the box is
    proven empty) or "unknown"; `reason` says how it was shown, or why it could not be.
    """

    kind: str
    reason: str
    found: int = 0

    def __post_init__(self):
        if self.kind not in ("complete", "complete in box", "unknown"):
            raise ValueError(f"A certificate is complete, complete in box or unknown; got {self.kind!r}.")

    def __str__(self) -> str:
        if self.kind == "unknown":
            return f"found {self.found}; completeness unknown because {self.reason}"
        return f"found {self.found}; {self.kind}: {self.reason}"


@dataclass(frozen=True, eq=False)
class FixedPoints:
    """The answer of `find`: isolated points, components, and everything that an honest answer must add.

    Args:
        points: isolated fixed points, in lexicographic order of their coordinates.
        components: sets of fixed points of positive dimension.
        certificate: how sure we are that nothing is missing.
        excluded: poles, as expressions that vanish there, and where the field is not a real number, as
            relations such as x < 0.
        exceptions: parameter relations at which the answer changes, for example det = 0 (bare fields).
        unresolved: boxes neither proven empty nor proven to hold one point, state -> (low, high); each has a
            `reason`.
        rejected: points that a search found and that are no fixed points, each with the reason.
        periods: state name -> period of the field in it; a point stands for all its shifts by periods.
    """

    points: tuple[FixedPoint, ...]
    components: tuple[Component, ...]
    certificate: Certificate
    excluded: tuple[sp.Basic, ...] = ()
    exceptions: tuple[sp.Basic, ...] = ()
    unresolved: tuple[OpenBox, ...] = ()
    rejected: tuple[tuple[Mapping[str, float], str], ...] = field(default=())
    periods: Mapping[str, sp.Expr] = field(default_factory=dict)
