"""The papers' Lipschitz constants, the sharp ones, and what sampling finds: sampled <= sharp <= published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odesys.check import Check
from odesys.integrators.contract import solve
from odesys.simulation import softmax_regression as judge
from odesys.studies.softmax.setting import CASES, PAPERS
from odesys.system import ODESystem
from symbolic import lipschitz

__all__ = ["SIZES", "Row", "checks", "monitored", "rows"]

#: (n, d, R): what the adversarial search is run on.
SIZES = ((2, 1, 1.0), (3, 2, 1.0), (4, 2, 1.0), (4, 2, 2.0), (8, 3, 2.0), (16, 4, 3.0))
#: Problems, starts and ascent steps of the search.
PROBLEMS, STARTS, STEPS = 4, 32, 60


@dataclass(frozen=True)
class Row:
    """One quantity at one size: the largest ratio found, the sharp constant, and the published one (or nan)."""

    quantity: str
    size: tuple[int, int, float]
    sampled: float
    sharp: float
    published: float


def checks(seed: int) -> list[Check]:
    """All checks of bounds."""
    found = rows(seed)
    reason = "exact: an inequality"
    return [
        Check(
            "descent: largest sampled ratio over its sharp constant",
            measured=max(row.sampled / row.sharp for row in found),
            expected=0.5,
            tolerance=0.5,
            source="multi-start ascent; symbolic.lipschitz",
            reason=f"{reason}, the ratio lies between 0 and 1",
        ),
        Check(
            "derive: largest ratio of a sharp constant to the published one",
            measured=max(row.sharp / row.published for row in found if np.isfinite(row.published)),
            expected=0.5,
            tolerance=0.5,
            source=f"{PAPERS}: M = n^1.5 exp(10 R^2)",
            reason=f"{reason}, the ratio lies between 0 and 1",
        ),
        _attained(),
        _exponent(),
        _monitor(),
    ]


def rows(seed: int) -> list[Row]:
    """Softmax and gradient at every size."""
    found = []
    for size in SIZES:
        n, d, R = size
        table = {bound.name: bound for bound in lipschitz.table(n=n, R=R, beta=np.exp(-(R**2)), b_norm=1)}
        softmax, gradient = _search(n, d, R, seed)
        published = float(table["c = f - b, x-move"].published)
        found.append(Row("f", size, softmax, float(table["f, x-move"].sharp), published))
        bound = float(table["gradient, b in the simplex, every n"].sharp)
        found.append(Row("grad L", size, gradient, bound, float("nan")))
    return found


def _search(n: int, d: int, R: float, seed: int) -> tuple[float, float]:
    """The largest |S A| and |H| that ascent by random steps finds in the ball |x| <= R, |A| = R, b in the simplex."""
    draw, best = np.random.default_rng([seed, n, d]), np.zeros(2)
    for _ in range(PROBLEMS):
        A = draw.standard_normal((n, d))
        A *= R / np.linalg.norm(A, 2)
        b = draw.dirichlet(np.ones(n))
        x = _ball(draw.standard_normal((STARTS, d)) * R, R)
        for which in (0, 1):
            here = x.copy()
            values = _norms(A, b, here)[which]
            for step in np.geomspace(R, 1e-3 * R, STEPS):
                trial = _ball(here + step * draw.standard_normal(here.shape), R)
                new = _norms(A, b, trial)[which]
                better = new > values
                here[better], values[better] = trial[better], new[better]
            best[which] = max(best[which], values.max())
    return float(best[0]), float(best[1])


def _ball(x: np.ndarray, R: float) -> np.ndarray:
    size = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(size > R, x * R / np.maximum(size, 1e-300), x)


def _norms(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|df/dx| and |d2L/dx2| at many points, from the definition: S A and the scatter form."""
    s = x @ A.T
    u = np.exp(s - s.max(axis=1, keepdims=True))
    f = u / u.sum(axis=1, keepdims=True)
    centred = A[None] - (f @ A)[:, None, :]
    c = f - b
    weights = f * (f + c - np.sum(f * c, axis=1, keepdims=True))
    hessian = np.einsum("pi,pia,pib->pab", weights, centred, centred)
    return (
        np.linalg.norm(f[:, :, None] * centred, 2, axis=(1, 2)),
        np.abs(np.linalg.eigvalsh(hessian)).max(axis=1),
    )


def _attained() -> Check:
    """kappa_+ |A|^2 is attained: A = R (1, -1)^T/sqrt(2), b = e_2, f_1 = p = (15 - sqrt 33)/24."""
    R, p = 1.5, (15 - np.sqrt(33)) / 24
    A = R * np.array([[1.0], [-1.0]]) / np.sqrt(2)
    x = np.log(p / (1 - p)) / (np.sqrt(2) * R)
    curvature = float(judge.vector(A, [0.0, 1.0]).hessian_times([x], [1.0])[0])
    return Check(
        "derive: kappa |A|^2 is attained by two rows",
        measured=curvature,
        expected=float(lipschitz.kappa()) * R**2,
        tolerance=1e-14,
        source="derived here: 0.308117140242701 |A|^2",
        reason="rounding of one second derivative",
    )


def _exponent() -> Check:
    """The seed's question: does M have to grow like exp(R^2)? The sharp constant of f is R/2, for every n."""
    constants = [
        float(next(b for b in lipschitz.table(n=n, R=R, beta=1, b_norm=1) if b.name == "f, x-move").sharp) / R
        for n in (2, 100)
        for R in (1.0, 6.0)
    ]
    return Check(
        "derive: spread of the sharp constant of f over |A|, n = 2 ... 100, R = 1 ... 6",
        measured=max(constants) - min(constants),
        expected=0.0,
        tolerance=0.0,
        source="|S(f)| <= 1/2; the published log M grows like 10 R^2 + 1.5 log n",
        reason="exact",
    )


def _monitor() -> Check:
    """The papers' ball |x| <= R is not kept: the rescaled flow of A = (1, 2) leaves it; alpha stays above exp(-R^2)."""
    model, R = CASES["closed-form"].derived("rescaled"), np.sqrt(5.0)
    run = solve(
        ODESystem(model.flow), {"x_1": -1.0}, np.linspace(0.0, 1000.0, 201), method="DOP853", rtol=1e-11
    )
    seen = monitored(np.array(CASES["closed-form"].rows, dtype=float), run["x_1"].values[:, None], R)
    if not seen["smallest alpha/exp(-R^2)"] >= 1:
        raise AssertionError(f"alpha falls below exp(-R^2): {seen}")
    return Check(
        "flow: largest |x|/R along a rescaled flow, where the papers assume 1",
        measured=seen["largest |x|/R"],
        expected=3.343383439096044 / R,
        tolerance=1e-9,
        source="independent 50-digit arithmetic: x(1000) = -3.343383439096044 from x(0) = -1, R = |A|",
        reason="100 times the rtol 1e-11 of the integration",
    )


def monitored(A: np.ndarray, x: np.ndarray, R: float) -> dict[str, float]:
    """The papers' assumptions along a run: the largest |x|/R and the smallest alpha/exp(-R^2)."""
    alpha = np.exp(x @ A.T).sum(axis=1)
    return {
        "largest |x|/R": float(np.linalg.norm(x, axis=1).max() / R),
        "smallest alpha/exp(-R^2)": float(alpha.min() / np.exp(-(R**2))),
    }
