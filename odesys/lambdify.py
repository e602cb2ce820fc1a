"""The only door from symbols to callables: exact expressions become functions of NumPy or JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import sympy as sp

__all__ = ["compile_expressions"]


def compile_expressions(
    expressions: Sequence[sp.Expr], arguments: Sequence[sp.Symbol], backend: str = "numpy"
) -> Callable[..., tuple]:
    """A function of arrays that evaluates the expressions:  (a_1, ..., a_m) -> (e_1(a), ..., e_k(a)).

    Args:
        expressions: what to evaluate; real expressions in the arguments.
        arguments: the symbols, in the order of the function's arguments; their names may be any text.
        backend: "numpy" or "jax" (traceable, differentiable).
    Returns:
        A function of `len(arguments)` numbers or arrays that broadcast; it returns one array of their common shape
        for each expression, constants included.
    """
    names = {symbol: sp.Dummy(f"a{i}", real=True) for i, symbol in enumerate(arguments)}
    function = sp.lambdify(
        list(names.values()),
        [sp.sympify(e).xreplace(names) for e in expressions],
        modules=["scipy", "numpy"] if backend == "numpy" else ["jax"],
        cse=True,
    )
    if backend == "numpy":
        array, broadcast, shapes = lambda a: np.asarray(a, float), np.broadcast_to, np.broadcast_shapes
    else:
        import jax.numpy as jnp

        array, broadcast, shapes = jnp.asarray, jnp.broadcast_to, jnp.broadcast_shapes

    def evaluate(*arrays):
        arrays = [array(a) for a in arrays]
        shape = shapes(*(a.shape for a in arrays))
        with np.errstate(all="ignore"):
            return tuple(broadcast(array(value), shape) for value in function(*arrays))

    return evaluate
