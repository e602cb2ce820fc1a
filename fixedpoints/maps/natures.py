"""What a map does near a cycle: by its multipliers, or where one is 1 or -1 by the first term that counts."""

from __future__ import annotations

from dataclasses import dataclass

from flint import ctx, fmpq

from fixedpoints.maps.copies import Ring
from fixedpoints.maps.returns import ReturnMap
from fixedpoints.near.balls import BITS, as_float, shown, sign
from fixedpoints.near.centre_manifold import NotSemisimpleError, along, kernel
from fixedpoints.near.jets import NotSmoothError, UndefinedHereError
from fixedpoints.near.spectrum import Spectrum, spectrum

__all__ = ["Nature", "nature"]

#: Order up to which a term on the centre manifold is looked for.
_MOST_TERMS = 7

_UNDECIDED = "undecided: the multipliers do not decide"


@dataclass(frozen=True)
class Nature:
    """A cycle's multipliers with their bounds, its stability in words, and the sentence that says why.

    There are no multipliers where the map is not differentiable.
    """

    spectrum: Spectrum
    stability: str
    evidence: str


def nature(cycle: Ring) -> Nature:
    """The stability of a cycle; floats in the rule are uncertain by a relative 2^-52, as in `classify`."""
    with ctx.workprec(BITS):
        place = cycle.place
        try:
            loose = cycle.slopes(place.loose) if place.has_floats else None
            slopes = cycle.slopes(place.bounded if place.has_floats else place.nominal)
        except NotSmoothError as reason:
            return Nature(Spectrum(()), "undecided: the map is not differentiable on the cycle", str(reason))
        seen = spectrum(slopes, is_map=True, loose=loose)
        listed = ", ".join(_shown(e.value, e.error) for e in seen.eigenvalues)
        sentence = f"multiplier{'s' if len(seen.eigenvalues) > 1 else ''} {listed}"
        if seen.dims[1] == 0:
            return Nature(seen, _hyperbolic(*seen.dims), sentence)
        stability, reason = _on_boundary(cycle, seen)
        return Nature(seen, stability, f"{sentence}: they do not decide; {reason}")


def _hyperbolic(unstable: int, _: int, stable: int) -> str:
    if unstable + stable == 1:
        return "unstable" if unstable else "stable"
    return "saddle" if unstable and stable else "source" if unstable else "sink"


def _on_boundary(cycle: Ring, seen: Spectrum) -> tuple[str, str]:
    unstable, centre, _ = seen.dims
    folds, flips, turning = seen.boundary
    sorts = ((folds, "fold"), (flips, "flip"), (turning, "Neimark-Sacker"))
    candidates = ", ".join(f"{sort} candidate" for count, sort in sorts if count)
    if unstable:
        return "unstable", f"{candidates}; another multiplier is outside the unit circle"
    found = _first_term(cycle, flips > 0) if centre == 1 else None
    if found is None:
        return f"{_UNDECIDED} ({candidates})", f"{candidates}; no further test decides"
    k, g = found
    moves = f"every {'two rounds' if flips else 'round'} s -> s + ({shown(g)} s^{k} + ...)"
    if k % 2 == 0:
        word = "half-stable" if len(seen.eigenvalues) == 1 else "saddle-node"
        return word, f"{candidates}: on the centre manifold {moves}"
    return "stable" if as_float(g) < 0 else "unstable", f"{candidates}: on the centre manifold {moves}"


def _first_term(cycle: Ring, flips: bool):
    """Order and coefficient of the first term of f^p - id (of f^2p - id at a flip) on the centre manifold."""
    rule, loose = cycle.system.map, cycle.place.loose
    at = tuple(loose.at[: len(rule.state)])
    numbers = dict(zip(rule.parameters, cycle.system.args, strict=True))
    near = ReturnMap(rule, numbers, at, cycle.period * (2 if flips else 1), loose.error)
    try:
        for k, (g,) in along(near, kernel(near, 1), [fmpq(1)], _MOST_TERMS):
            if sign(g):
                return k, g
    except (ZeroDivisionError, NotSmoothError, UndefinedHereError, NotSemisimpleError):
        pass  # Balls too wide for this question, or a rule not smooth enough for it.
    return None


def _shown(value: complex, error: float) -> str:
    value = complex(value)
    text = f"{value.real:.6g}" if value.imag == 0 else f"{value.real:.6g}{value.imag:+.6g}i"
    return f"{text} +- {error:.1g}" if error > 1e-6 * abs(value) > 0 else text
