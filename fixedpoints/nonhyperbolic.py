"""Fixed points that the linearisation leaves undecided, and what does decide them.

In this order: signs of the velocity (one state); the first term on the centre manifold (one eigenvalue 0, or
a multiplier 1 or -1); Poincare-Lyapunov quantities (one imaginary pair); conserved quantities; the loss of a
gradient system; a whole set of fixed points; Andreev's theorem (a planar nilpotent block); the Jordan form of
a linear rule. What none of them decides is called undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import sympy as sp
from flint import fmpq

from fixedpoints.near.balls import SLACK, Number, as_float, is_exact, shown, sign
from fixedpoints.near.centre_manifold import NotSemisimpleError, along, focal_values, kernel, on_centre_plane
from fixedpoints.near.conserved import decide, found_integrals, is_semisimple
from fixedpoints.near.continuum import is_on_a_set
from fixedpoints.near.gradient import LossNear, hessian_index, loss_near
from fixedpoints.near.jets import NotSmoothError, UndefinedHereError
from fixedpoints.near.local import Local
from fixedpoints.near.nilpotent import nilpotent_type
from fixedpoints.near.one_state import (
    attraction_of_term,
    decided_by_series,
    decided_by_signs,
    towards,
    word,
)
from fixedpoints.near.spectrum import MOST_EXACT, Spectrum

__all__ = ["UNDECIDED", "Nature", "Question", "nature"]

UNDECIDED = "undecided: the linearisation does not decide"

#: Orders up to which terms are looked for: along one direction, and in the plane of an imaginary pair.
_MOST_TERMS = 9
_MOST_PLANAR_TERMS = 8
#: Relative size below which a Poincare-Lyapunov quantity in balls counts as zero.
_FAINT = 1e-30


@dataclass(frozen=True)
class Nature:
    """What a fixed point is, and the sentence that says why."""

    stability: str
    reason: str
    attracts: tuple[bool, bool] | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """A fixed point with eigenvalues on the boundary.

    Args:
        local: the rule there, with floats read as they are.
        loose: the same with floats uncertain by a relative `SLACK`; terms that may vanish then, do.
        spectrum: all eigenvalues.
        grade: how well the boundary eigenvalues are known: "exact", "digits" (zero to some 60 digits) or
            "rounding" (zero within the uncertainty of floats).
        has_floats: whether the rule holds floats.
        given: conserved quantities that the user knows.
        is_gradient: whether the rule descends a loss.
    """

    local: Local
    loose: Local
    spectrum: Spectrum
    grade: str
    has_floats: bool
    given: Sequence[sp.Expr] = ()
    is_gradient: bool = False

    @property
    def dims(self) -> tuple[int, int, int]:
        """Dimensions of the unstable, centre and stable subspaces."""
        return self.spectrum.dims


def nature(question: Question) -> Nature:
    """What a fixed point is that has eigenvalues on the boundary."""
    if len(question.local.at) == 1:
        answers: tuple[Callable[[Question], Nature | None], ...] = (_one_state,)
    else:
        answers = (_one_direction, _one_pair, _conserved, _loss, _set_of_points, _nilpotent, _affine)
    for answer in answers:
        try:
            found = answer(question)
        except (ZeroDivisionError, NotSmoothError, UndefinedHereError, NotSemisimpleError):
            # Balls too wide for this question, or a rule not smooth enough for it; another may still do.
            continue
        if found is not None:
            return found
    return _undecided(question)


def _one_state(question: Question) -> Nature | None:
    local, sort, velocity = question.local, "", "the velocity"
    if local.is_map:
        flips = question.spectrum.count("flip") > 0
        sort = f"{'flip candidate (multiplier -1)' if flips else 'fold candidate (multiplier 1)'}: "
        velocity = "f(f(x)) - x" if flips else "f(x) - x"
        local = replace(local, twice=flips)
    floats = ", for the floats as they are" if question.has_floats else ""
    attracts = decided_by_signs(local)
    if attracts is not None:
        reason = f"{sort}by the exact signs of {velocity}{floats}, moves {towards(attracts)}"
        return Nature(word(attracts), reason, attracts)
    first = decided_by_series(local)
    if first is None:
        return None
    order, side = first
    attracts = attraction_of_term(order, side)
    term = f"derivative {order}, the first of {velocity} that does not vanish{floats}"
    return Nature(
        word(attracts),
        f"{sort}by the {'positive' if side > 0 else 'negative'} {term}, moves {towards(attracts)}",
        attracts,
    )


def _one_direction(question: Question) -> Nature | None:
    """One eigenvalue 0, or one multiplier 1 or -1."""
    if question.dims[1] != 1:
        return None
    local, kind = question.loose, "flow"
    if local.is_map:
        kind = "flip" if question.spectrum.count("flip") else "fold"
        local = replace(local, twice=kind == "flip")
    null = kernel(local, 1)
    for k, (g,) in along(local, null, [fmpq(1)], _MOST_TERMS):
        if sign(g):
            return _first_term(question, kind, k, g, null.right[0])
    return None


def _first_term(question: Question, kind: str, k: int, g: Number, direction: Sequence[Number]) -> Nature:
    names = ", ".join(question.local.rule.names)
    along_ = f"({names}) = ({', '.join(shown(c) for c in direction)})"
    change = {
        "flow": "ds/dt = {}",
        "fold": "fold candidate (multiplier 1): s -> s + ({})",
        "flip": "flip candidate (multiplier -1): every two steps s -> s + ({})",
    }[kind].format(f"{shown(g)} s^{k} + ...")
    reason = f"on the centre manifold, along {along_}: {change}"
    unstable, _, stable = question.dims
    if question.is_gradient and kind != "flip":
        falls, rises = k % 2 == 0 or as_float(g) > 0, k % 2 == 0 or as_float(g) < 0
        found = _of_loss(question, LossNear(falls, rises, minimum=not falls), reason)
        if found is not None:
            return found
    if k % 2 == 0:
        side = "negative" if as_float(g) > 0 else "positive"
        return Nature("saddle-node", f"{reason}; it attracts along s only where s is {side}")
    if as_float(g) < 0:
        name = "node" if not unstable else "saddle"
        return Nature("unstable" if unstable else "stable", f"{reason}; topologically a {name}")
    name = "saddle" if stable else "node"
    return Nature("unstable", f"{reason}; topologically a{'n unstable' if not stable else ''} {name}")


def _one_pair(question: Question) -> Nature | None:
    """One pair of imaginary eigenvalues of a flow."""
    if question.local.is_map or question.spectrum.boundary != (0, 0, 2):
        return None
    order = _MOST_PLANAR_TERMS if len(question.local.at) == 2 else _MOST_PLANAR_TERMS - 2
    g, squared, pace = on_centre_plane(question.loose, order - 1)
    faint = SLACK if question.has_floats else _FAINT
    for m, eta, size in focal_values(g, squared, order):
        if not sign(eta) or (not is_exact(eta) and abs(as_float(eta)) <= faint * size):
            continue
        ordinal = {2: "first", 3: "second", 4: "third"}.get(m, f"{m - 1}th")
        coefficient = shown(eta * pace / 2)
        reason = f"{ordinal} Lyapunov coefficient {coefficient}: dr/dt = {coefficient} r^{2 * m - 1} + ..."
        if question.dims[0]:
            return Nature("unstable", f"{reason} on the centre manifold; another eigenvalue is unstable")
        return Nature(f"{'stable' if as_float(eta) < 0 else 'unstable'} weak focus", reason)
    return None


def _conserved(question: Question) -> Nature | None:
    local, spectrum = question.local, question.spectrum
    verdict = decide(local, spectrum, question.given)
    if verdict is None:
        # Linear laws are what holds eigenvalues at 0; for a centre quantities of higher degree are needed.
        degree = {2: 4, 3: 3}.get(len(local.at), 2) if spectrum.count("turning") else 1
        found = found_integrals(local.rule, local.values, degree)
        verdict = decide(local, spectrum, (*question.given, *found)) if found else None
    if verdict is None:
        return None
    noun = "conserved quantity" if len(verdict.quantities) == 1 else "conserved quantities"
    which = f"{noun} {', '.join(str(q) for q in verdict.quantities)}"
    if question.dims[0]:
        return Nature(
            "unstable", f"an eigenvalue is unstable; the centre directions are those of the {which}"
        )
    if verdict.leaf:
        return Nature(
            f"stable modulo the {noun}",
            f"asymptotically stable on each leaf of constant {which.removeprefix('conserved ')}; "
            "neighbouring leaves have their own fixed points",
        )
    if len(local.at) == 2 and not local.is_map and spectrum.count("turning"):
        return Nature("centre", f"strict extremum of the {which}, so that all orbits nearby are closed")
    return Nature("stable, not asymptotically", f"strict extremum of the {which} on the centre directions")


def _loss(question: Question) -> Nature | None:
    """Several degenerate directions of a gradient system."""
    zeros = question.spectrum.count("zero")
    if not question.is_gradient or not zeros:
        return None
    negative, _, positive = hessian_index(question.spectrum, question.local.is_map)
    if negative and positive:
        return _of_loss(question, LossNear(True, True), "by the signs of the Hessian")
    near = loss_near(question.loose, kernel(question.loose, zeros))
    return _of_loss(question, near, "by the leading terms of the loss in the degenerate directions")


def _of_loss(question: Question, near: LossNear, reason: str) -> Nature | None:
    """The words of optimisation: minimum, saddle (strict: the Hessian has a negative eigenvalue), maximum."""
    negative, _, positive = hessian_index(question.spectrum, question.local.is_map)
    falls, rises = near.falls or negative > 0, near.rises or positive > 0
    if falls:
        sort = "strict" if negative else "non-strict"
        return Nature(f"{sort} saddle" if rises else "unstable", f"{reason}: the loss falls, so no minimum")
    if not near.minimum:
        return None
    if question.dims != (0, question.spectrum.count("zero"), positive):
        return None
    return Nature("stable", f"{reason}: a strict minimum of the loss, which is a Lyapunov function")


def _set_of_points(question: Question) -> Nature | None:
    unstable, centre, _ = question.dims
    if question.spectrum.count("zero") != centre or not is_on_a_set(question.local, centre):
        return None
    reason = f"the fixed points near it are a manifold of dimension {centre}"
    if unstable:
        return Nature("unstable", f"{reason}, unstable across it")
    return Nature(
        "stable, not asymptotically (normally attracting set)",
        f"{reason}, which attracts in all other directions",
    )


def _nilpotent(question: Question) -> Nature | None:
    if question.grade != "exact" or question.spectrum.boundary != (2, 0, 0):
        return None
    found = nilpotent_type(question.local, question.loose)
    return None if found is None else Nature(*found)


def _affine(question: Question) -> Nature | None:
    """Rules that are affine in the state: stable where the eigenvalues on the boundary are semisimple."""
    local = question.local
    if question.grade != "exact" or question.dims[0] or len(local.at) > MOST_EXACT:
        return None
    if any(slope.free_symbols & set(local.rule.state) for slope in local.rule.jacobian):
        return None
    if is_semisimple(local, question.spectrum):
        return Nature("stable, not asymptotically", "linear, with semisimple eigenvalues on the boundary")
    return Nature(
        "unstable", "linear, with a Jordan block on the boundary: distances grow like powers of time"
    )


def _undecided(question: Question) -> Nature:
    spectrum, local = question.spectrum, question.local
    zeros, flips, turning = spectrum.boundary
    if question.dims[0]:
        return Nature("unstable", "an eigenvalue is unstable, whatever happens in the centre directions")
    candidates = []
    if zeros:
        several = {1: "", 2: "double "}.get(zeros, f"{zeros}-fold ")
        candidates.append("fold candidate" if local.is_map else f"{several}zero eigenvalue")
    if flips:
        candidates.append("flip candidate")
    if turning:
        candidates.append("Neimark-Sacker candidate" if local.is_map else "centre candidate")
    block = zeros == 2 and (flips, turning) == (0, 0) and not local.is_map and not _has_kernel(local, 2)
    hint = "; a nilpotent block, as in a Takens-Bogdanov bifurcation" if block else ""
    return Nature(f"{UNDECIDED} ({', '.join(candidates)})", f"no further test decides{hint}")


def _has_kernel(local: Local, dimension: int) -> bool:
    try:
        kernel(local, dimension)
    except (NotSemisimpleError, ZeroDivisionError, NotSmoothError):
        return False
    return True
