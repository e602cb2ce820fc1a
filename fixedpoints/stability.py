"""What a flow or a map does near a fixed point.

Names. One state: stable, unstable, half-stable. Two states of a flow: stable or unstable node, star node (a
multiple of the unit matrix), degenerate node (a double eigenvalue with one eigenvector), focus; saddle.
Else: sink, source, saddle. What eigenvalues on the boundary leave open is decided in
`fixedpoints.nonhyperbolic`, or called undecided; a float never decides by being exactly 0 (see
`fixedpoints.near.spectrum`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy as sp
from flint import ctx, fmpq

from fixedpoints.arguments import System, rule_and_numbers
from fixedpoints.near.balls import BITS, is_exact, rank, vanishes
from fixedpoints.near.conserved import given_integrals
from fixedpoints.near.gradient import check_loss, hessian_index, is_gradient
from fixedpoints.near.jets import NotSmoothError, UndefinedHereError
from fixedpoints.near.local import Local, Located, located
from fixedpoints.near.one_state import word
from fixedpoints.near.spectrum import MOST_EXACT, Eigenvalue, Spectrum, planar, spectrum
from fixedpoints.nonhyperbolic import Nature, Question, nature
from fixedpoints.points import FixedPoint

if TYPE_CHECKING:
    from symbolic.conservation import FirstIntegral

__all__ = ["classify"]

_GRADES = {
    "exact": "exactly",
    "digits": "to some 60 digits",
    "rounding": "within the rounding errors of its floats",
}


def classify(
    system: System,
    point: Mapping[str | sp.Symbol, float | sp.Expr],
    *,
    first_integrals: Sequence[FirstIntegral | sp.Expr] = (),
    loss: sp.Expr | None = None,
    enclosure: Mapping[str, tuple[sp.Rational, sp.Rational]] | None = None,
    multiplicity: int | None = None,
) -> FixedPoint:
    """What the system does near a fixed point:  f(x*) = 0 of a flow, f(x*) = x* of a map.

    Eigenvalues of the Jacobian come with error bounds, in 1/time (maps: multipliers). Where some lie on the
    boundary of stability, the linearisation does not decide, and higher terms, conserved quantities or the
    loss are asked; `evidence` says what decided.

    Args:
        system: a system, or a bare rule, whose parameters then stay symbolic.
        point: state name or symbol -> coordinate. Exact numbers (integers, fractions, SymPy numbers) must be
            exact if the rule holds no floats; floats may be off by 1e-8 of the largest coordinate, or 1e-14.
        first_integrals: conserved quantities to use beyond those that are searched for.
        loss: what the rule descends, if it does; found without it where the Jacobian is symmetric.
        enclosure: state name -> rational bounds that are proven to hold this fixed point and no other.
        multiplicity: of the root, if known; kept for the record.
    Raises:
        NotAFixedPointError: the point is none, with the residual; or the rule is not defined there.
        ValueError: a state is unknown or missing, a coordinate is not a finite real number, the rule depends
            on time, or does not descend the loss.
        symbolic.NotConservedError: a first integral is none.
    """
    rule, values = rule_and_numbers(system)
    if len(values) < len(rule.parameters):
        from fixedpoints.near.conditions import classify_for_all_parameters

        return classify_for_all_parameters(rule, point, first_integrals=first_integrals, loss=loss)
    with ctx.workprec(BITS):
        if loss is not None:
            check_loss(rule, values, loss)
        given = given_integrals(rule, values, first_integrals)
        place = located(system, point, enclosure)
        try:
            seen, grade = _spectra(place)
        except NotSmoothError as reason:
            return _rough(place, str(reason), enclosure, multiplicity)
        descends = loss is not None or _is_gradient(place)
        found = _nature(place, seen, grade, given, descends)
        return FixedPoint(
            place.location,
            tuple(e.value for e in seen.eigenvalues),
            found.stability,
            eigenvalue_errors=tuple(e.error for e in seen.eigenvalues),
            dims=seen.dims,
            evidence=_evidence(seen, found, grade, place, descends),
            residual=place.residual,
            enclosure=enclosure,
            multiplicity=multiplicity,
            index=hessian_index(seen, place.nominal.is_map) if descends else None,
            attracts=found.attracts,
        )


def _spectra(place: Located) -> tuple[Spectrum, str]:
    """The eigenvalues, and how well it is known that some lie on the boundary."""
    is_map = place.nominal.is_map
    _, slopes = place.nominal.slopes()
    nominal = seen = spectrum(slopes, is_map=is_map)
    if place.has_floats:
        _, bounded = place.bounded.slopes()
        _, loose = place.loose.slopes()
        seen = spectrum(bounded, is_map=is_map, loose=loose)
    if seen.boundary != nominal.boundary:
        return seen, "rounding"
    certified = len(slopes) <= MOST_EXACT or seen.dims[1] == len(slopes) - rank(slopes)
    return seen, "exact" if is_exact(slopes) and certified else "digits"


def _is_gradient(place: Located) -> bool:
    """Asks the symbolic proof only where no Jacobian in the neighbourhood denies it."""
    nearby = [place.loose]
    for k in (1, 2):
        aside = tuple(x + fmpq((-1) ** (i * k), 7 + 3 * i + k) for i, x in enumerate(place.nominal.at))
        nearby.append(replace(place.loose, at=aside))
    return all(map(_may_be_symmetric, nearby)) and is_gradient(place.nominal.rule)


def _may_be_symmetric(local: Local) -> bool:
    try:
        _, slopes = local.slopes()
    except (NotSmoothError, UndefinedHereError):
        return True
    return all(vanishes(slopes[i][j] - slopes[j][i]) for i in range(len(slopes)) for j in range(i))


def _nature(place: Located, seen: Spectrum, grade: str, given, descends: bool) -> Nature:
    if seen.dims[1] == 0:
        return _hyperbolic(place, seen)
    return nature(
        Question(
            place.nominal,
            place.loose,
            seen,
            grade,
            place.has_floats,
            given=given,
            is_gradient=descends,
        )
    )


def _hyperbolic(place: Located, seen: Spectrum) -> Nature:
    unstable, _, stable = seen.dims
    n, is_map = unstable + stable, place.nominal.is_map
    if n == 1:
        attracts = (stable == 1, stable == 1)
        return Nature(word(attracts), "", attracts)
    if n == 2 and not is_map:
        _, slopes = place.loose.slopes()
        signs = planar(slopes, loose=place.has_floats)
        if signs.determinant < 0:
            return Nature("saddle", "")
        side = "stable" if stable else "unstable"
        kind = "focus" if signs.discriminant < 0 else "node"
        if signs.discriminant == 0:
            kind = "star node" if signs.scalar else "degenerate node"
        return Nature(f"{side} {kind}", "")
    if unstable and stable:
        return Nature("saddle", f"{unstable} unstable, {stable} stable")
    return Nature("source" if unstable else "sink", "")


def _evidence(seen: Spectrum, found: Nature, grade: str, place: Located, descends: bool) -> str:
    sort = "multiplier" if place.nominal.is_map else "eigenvalue"
    listed = ", ".join(_shown(e) for e in seen.eigenvalues)
    sentence = f"{sort}{'s' if len(seen.eigenvalues) > 1 else ''} {listed}"
    if seen.dims[1]:
        exactly = "exactly, for the floats as they are" if grade == "exact" and place.has_floats else ""
        sentence += f" ({exactly or _GRADES[grade]}): the linearisation does not decide"
    if found.reason:
        sentence += f"; {found.reason}"
    if descends:
        negative, zero, positive = hessian_index(seen, place.nominal.is_map)
        strict = ", strict saddle" if negative and positive and not zero else ""
        sentence += f"; Morse index {negative}, nullity {zero}{strict}"
    return sentence


def _shown(e: Eigenvalue) -> str:
    value = complex(e.value)
    text = f"{value.real:.6g}" if value.imag == 0 else f"{value.real:.6g}{value.imag:+.6g}i"
    if e.error > 1e-6 * abs(value) and e.error > 0 and value != 0:
        text += f" +- {e.error:.1g}"
    return text


def _rough(place: Located, reason: str, enclosure, multiplicity) -> FixedPoint:
    return FixedPoint(
        place.location,
        (),
        "undecided: the rule is not differentiable here",
        evidence=reason,
        residual=place.residual,
        enclosure=enclosure,
        multiplicity=multiplicity,
    )
