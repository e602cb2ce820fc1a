"""Real special functions that array libraries lack, once for NumPy and JAX (`xp` is the array module)."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

__all__ = ["lambertw", "wrightomega"]

_BRANCH_POINT = -math.exp(-1.0)


def wrightomega(u: Any, xp: ModuleType) -> Any:
    """omega(u), the solution of  w + log w = u  for real u; shape of u.

    Fritsch, Shafer and Crowley's fourth-order iteration (Algorithm 443, CACM 16, 1973) from the asymptotes.
    """
    middle = xp.maximum(u, -40.0)  # below, omega is exp(u) to all digits
    w = xp.where(middle > 1, middle - xp.log(xp.maximum(middle, 1.0)), xp.exp(xp.minimum(middle - 0.5, 0.5)))
    for _ in range(4):
        r = middle - w - xp.log(w)
        q = 2 * (1 + w) * (1 + w + 2 * r / 3)
        w = w * (1 + r / (1 + w) * (q - r) / (q - 2 * r))
    return xp.where(u < -40.0, xp.exp(u), w)


def lambertw(z: Any, branch: int, xp: ModuleType) -> Any:
    """W(z), the real w with  w exp(w) = z;  w >= -1 on branch 0, w <= -1 on branch -1; NaN if none."""
    distance = 2 * (math.e * z + 1)
    p = (1 if branch == 0 else -1) * xp.sqrt(xp.maximum(distance, 0.0))
    near = -1 + p - p**2 / 3 + 11 * p**3 / 72
    if branch == 0:
        w = xp.where(z < 0, _halley(z, near, xp), wrightomega(xp.log(xp.maximum(z, 0.0)), xp))
        return xp.where(z < _BRANCH_POINT, xp.nan, w)
    far = xp.log(xp.clip(-z, 1e-300, 0.25))
    start = xp.where(z < -0.25, near, far - xp.log(-far))
    return xp.where((z < _BRANCH_POINT) | (z >= 0), xp.nan, _halley(z, start, xp))


def _halley(z, w, xp):
    for _ in range(6):
        ratio = z * xp.exp(-w)  # solve w - z exp(-w) = 0, which has no growing factor
        step = (w - ratio) / (1 + ratio + (w - ratio) * ratio / (2 * (1 + ratio)))
        w = w - xp.where(xp.isfinite(step), step, 0.0)  # at -1/e itself the slope is zero and the start exact
    return w
