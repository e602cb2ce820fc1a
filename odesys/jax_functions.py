"""What printed JAX code may call; derivatives stay real and finite."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy import special as jax_special

from odesys import special

__all__ = ["NAMESPACE", "lambertw", "wrightomega"]


@jax.custom_jvp
def wrightomega(u: jax.Array) -> jax.Array:
    """omega(u) with  d omega/du = omega / (1 + omega)."""
    return special.wrightomega(u, jnp)


@wrightomega.defjvp
def _wrightomega_jvp(primals, tangents):
    w = wrightomega(*primals)
    return w, tangents[0] * w / (1 + w)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def lambertw(z: jax.Array, branch: int = 0) -> jax.Array:
    """W(z) with  dW/dz = exp(-W) / (1 + W)."""
    return special.lambertw(z, branch, jnp)


@lambertw.defjvp
def _lambertw_jvp(branch, primals, tangents):
    w = lambertw(primals[0], branch)
    return w, tangents[0] * jnp.exp(-w) / (1 + w)


_ARRAY_NAMES = ("heaviside", "logical_and", "logical_or", "maximum", "minimum", "nan", "power", "where")
_SPECIAL_NAMES = ("beta", "digamma", "erf", "erfc", "expi", "gamma", "gammaln", "polygamma")

NAMESPACE = {
    **{name: getattr(jnp, name) for name in _ARRAY_NAMES},
    **{name: getattr(jax_special, name) for name in _SPECIAL_NAMES},
    "fixed": jax.lax.stop_gradient,
    "lambertw": lambertw,
    "wrightomega": wrightomega,
}
