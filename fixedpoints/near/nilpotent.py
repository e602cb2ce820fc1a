"""A planar double zero eigenvalue with one eigenvector, in exact arithmetic: Andreev's theorem."""

from __future__ import annotations

from flint import fmpq

from fixedpoints.near.balls import (
    Matrix,
    Number,
    identity,
    is_exact,
    matmul,
    nullspace,
    sign,
    solve,
    transposed,
)
from fixedpoints.near.jets import Jet
from fixedpoints.near.local import Local

__all__ = ["nilpotent_type"]

_ORDER = 8


def nilpotent_type(local: Local, loose: Local) -> tuple[str, str] | None:
    """(stability, reason) of a planar flow with a nilpotent Jacobian, or None where it is not decided.

    In coordinates with  a' = b + A(a, b), b' = B(a, b)  let b = F(a) solve the first equation, and

        B(a, F(a)) = alpha a^m + ...,    (dA/da + dB/db)(a, F(a)) = beta a^n + ....

    Then alpha, m, beta and n decide (Andreev 1958; Dumortier, Llibre and Artes 2006, theorem 3.5), except
    between a focus and a centre. Terms that vanish for some floats near those of `loose` count as zero.
    """
    _, slopes = local.slopes()
    if len(slopes) != 2 or local.is_map or not is_exact(slopes):
        return None
    a_dot, b_dot = _standard(loose, slopes)
    curve = _solved(a_dot)
    m, alpha = _first(_on_curve(b_dot, curve))
    n, beta = _first(_on_curve(a_dot.derivative(0) + b_dot.derivative(1), curve))
    if m is None:
        return None
    if m % 2 == 0:
        name = "cusp" if n is None or m < 2 * n + 1 else "saddle-node"
        return "unstable", f"{name} with a nilpotent linear part (Andreev)"
    if alpha > 0:
        return "unstable", "topologically a saddle, with a nilpotent linear part (Andreev)"
    if n is None or m < 2 * n + 1 or (m == 2 * n + 1 and sign(beta * beta + 4 * alpha * (n + 1)) <= 0):
        return None
    if n % 2:
        return "unstable", "an elliptic sector, with a nilpotent linear part (Andreev)"
    side = "stable" if beta < 0 else "unstable"
    return side, f"topologically a node, with a nilpotent linear part (Andreev), {side}"


def _standard(local: Local, slopes: Matrix) -> list[Jet]:
    """The flow in coordinates x = x* + a J u + b u."""
    null = nullspace(slopes)[0]
    u = [fmpq(0), fmpq(1)] if null[0] != 0 else [fmpq(1), fmpq(0)]
    ju = [row[0] for row in matmul(slopes, transposed([u]))]
    basis = transposed([ju, u])
    inverse = solve(basis, identity(2))
    place = [Jet({(0,): row[0], (1,): row[1]}, _ORDER) for row in basis]
    flow = local.phi(place)
    return [flow[0].times(row[0]) + flow[1].times(row[1]) for row in inverse]


def _solved(a_dot: Jet) -> Jet:
    """b = F(a) with  a' = 0, as a jet in the variable 0."""
    curve = Jet({}, _ORDER)
    for _ in range(_ORDER):
        rest = a_dot + Jet({(1,): fmpq(-1)}, _ORDER)
        curve = _on_curve(rest, curve).times(fmpq(-1))
    return curve


def _on_curve(jet: Jet, curve: Jet) -> Jet:
    total, a = Jet({}, _ORDER), Jet({(0,): fmpq(1)}, _ORDER)
    for powers, c in jet.terms.items():
        term = Jet({(): c}, _ORDER)
        for index in powers:
            term = term * (curve if index else a)
        total = total + term
    return total


def _first(jet: Jet) -> tuple[int | None, Number]:
    for k in range(_ORDER):
        c = jet[(0,) * k]
        if sign(c):
            return k, c
    return None, fmpq(0)
