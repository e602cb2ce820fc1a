"""The only door from symbols to callables: exact expressions become functions of NumPy or JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from types import FunctionType
from typing import Any

import numpy as np
import sympy as sp

from odesys.printers import SCALAR_FUNCTIONS, UnsupportedExpressionError, namespace, printer, unsupported
from odesys.rewriting import balanced, filled, guarded
from odesys.system import MapSystem, ODESystem
from odesys.tangent import jacobian_program
from symbolic.field import IteratedMap, VectorField

__all__ = ["CompiledField", "UnsupportedExpressionError", "compile_expressions", "compile_field"]

BACKENDS = ("numpy", "jax")


@dataclass(frozen=True, eq=False)
class CompiledField:
    """A rule as functions of arrays, in the argument order that SciPy and diffrax both take.

    `rhs(t, y, args)` has the shape (n, ...) of y; `jacobian(t, y, args)` has shape (n, n, ...) with
    J[i, j] = d f_i / d y_j. `args` are the numbers of the parameters, in the order of the rule's
    `parameters`; a bare rule with parameters has none. A result that is not finite means that (t, y) lies
    outside the rule's domain.
    """

    rhs: Callable[[Any, Any, Sequence[Any]], Any]
    jacobian: Callable[[Any, Any, Sequence[Any]], Any]
    args: tuple[float, ...] | None
    backend: str


def compile_field(
    rule: ODESystem | MapSystem | VectorField | IteratedMap, backend: str = "numpy"
) -> CompiledField:
    """Compile the right-hand side and the Jacobian of a flow or a map.

    Each rule is compiled once for each backend and remembered; parameters are arguments, so that other
    numbers compile nothing.

    Args:
        rule: a system, whose numbers become `args`, or a bare rule.
        backend: "numpy", or "jax" for functions that can be traced, differentiated and mapped.
    Raises:
        TypeError: `rule` is neither a system nor a rule.
        ValueError: the backend is unknown, or a right-hand side has no numerical form.
        RuntimeError: backend "jax" while JAX computes in single precision.
    """
    if isinstance(rule, ODESystem):
        bare, args = rule.field, rule.args
    elif isinstance(rule, MapSystem):
        bare, args = rule.map, rule.args
    elif isinstance(rule, (VectorField, IteratedMap)):
        bare, args = rule, None if rule.parameters else ()
    else:
        raise TypeError(
            f"`compile_field` takes an ODESystem, a MapSystem, a VectorField or an IteratedMap; "
            f"got {type(rule).__name__}. Expressions are compiled by `compile_expressions`."
        )
    _check_backend(backend)
    if backend == "jax":
        _require_double_precision()
    compiled = _compiled(bare, backend)
    return CompiledField(compiled.rhs, compiled.jacobian, args, backend)


def compile_expressions(
    expressions: Sequence[sp.Expr], arguments: Sequence[sp.Symbol], backend: str = "numpy"
) -> Callable[..., tuple]:
    """A function of arrays that evaluates the expressions:  (a_1, ..., a_m) -> (e_1(a), ..., e_k(a)).

    Args:
        expressions: what to evaluate; real expressions in the arguments.
        arguments: the symbols, in the order of the function's arguments; their names may be any text.
        backend: "numpy", or "jax" for a function that can be traced, differentiated and mapped.
    Returns:
        A function of `len(arguments)` numbers or arrays that broadcast; it returns one array of their common
        shape for each expression, constants included. Outside an expression's domain the value is NaN or
        infinite.
    Raises:
        ValueError: the backend is unknown, an expression uses a symbol that is no argument, or a function
            that has no numerical form.
    """
    _check_backend(backend)
    expressions = tuple(sp.sympify(e) for e in expressions)
    strangers = sorted({s.name for e in expressions for s in e.free_symbols - set(arguments)})
    if strangers:
        raise ValueError(
            f"The expressions use {strangers}, which are not among the arguments "
            f"{[s.name for s in arguments]}. Add them, or check that their assumptions match."
        )
    return _compiled_expressions(expressions, tuple(arguments), backend)


@lru_cache(maxsize=256)
def _compiled_expressions(expressions, arguments, backend) -> Callable[..., tuple]:
    real = _real_symbols(arguments)
    function = _function([e.xreplace(real) for e in expressions], real, backend)
    module = _array_module(backend)

    def evaluate(*arrays):
        arrays = [_floating(a, module) for a in arrays]
        shape = module.broadcast_shapes(*(a.shape for a in arrays))
        with np.errstate(all="ignore"):
            return tuple(module.broadcast_to(module.asarray(value), shape) for value in function(*arrays))

    return evaluate


@lru_cache(maxsize=256)
def _compiled(rule: VectorField | IteratedMap, backend: str) -> _NumPyRule | _JaxRule:
    return _NumPyRule(rule) if backend == "numpy" else _JaxRule(rule)


class _NumPyRule:
    """A rule as NumPy functions; the Jacobian is derived only when somebody asks for it."""

    def __init__(self, rule: VectorField | IteratedMap):
        self._expressions, self._symbols = _with_real_symbols(rule)
        self._state = [self._symbols[x] for x in rule.state]
        self._function = _function(self._expressions, self._symbols, "numpy")

    def rhs(self, t, y, args):
        return _stacked(self._function, t, y, args, (len(self._state),))

    def jacobian(self, t, y, args):
        return _stacked(self._derivative, t, y, args, (len(self._state),) * 2)

    @cached_property
    def _derivative(self):
        return _function(self._expressions, self._symbols, "numpy", with_respect_to=self._state)


class _JaxRule:
    """A rule as traceable functions; the Jacobian comes from forward-mode differentiation, by columns."""

    def __init__(self, rule: VectorField | IteratedMap):
        self._function = _function(*_with_real_symbols(rule), "jax")

    def rhs(self, t, y, args):
        import jax.numpy as jnp

        y = _floating(y, jnp)
        values = self._function(t, *y, *args)
        shape = jnp.broadcast_shapes(y.shape[1:], *(jnp.shape(value) for value in values))
        return jnp.stack([jnp.broadcast_to(jnp.asarray(value, dtype=y.dtype), shape) for value in values])

    def jacobian(self, t, y, args):
        import jax
        import jax.numpy as jnp

        y = _floating(y, jnp)

        def column(direction):
            tangent = jnp.broadcast_to(direction.reshape(-1, *(1,) * (y.ndim - 1)), y.shape)
            return jax.jvp(lambda state: self.rhs(t, state, args), (y,), (tangent,))[1]

        return jax.vmap(column, out_axes=1)(jnp.eye(len(y), dtype=y.dtype))


def _with_real_symbols(rule: VectorField | IteratedMap) -> tuple[list[sp.Expr], dict[sp.Symbol, sp.Symbol]]:
    time = rule.time if rule.time is not None else sp.Dummy("t")
    symbols = _real_symbols((time, *rule.state, *rule.parameters))
    return [f.xreplace(symbols) for f in rule.rhs], symbols


def _stacked(function, t, y, args, leading: tuple[int, ...]) -> np.ndarray:
    y = np.asarray(y, dtype=float)
    if y.ndim == 1:
        try:
            return np.array(function.scalar(float(t), *y.tolist(), *args), dtype=float).reshape(leading)
        except (ArithmeticError, TypeError, ValueError):
            pass  # numbers leave the domain where arrays become inf or NaN, which is what is wanted
    with np.errstate(all="ignore"):
        values = function(np.asarray(t, dtype=float), *y, *(np.asarray(a, dtype=float) for a in args))
        shape = y.shape[1:]
        if any(np.shape(value) != shape for value in values):
            shape = np.broadcast_shapes(shape, *(np.shape(value) for value in values))
        stacked = np.empty((len(values), *shape))  # several times faster than np.stack for small arrays
        for place, value in enumerate(values):
            stacked[place] = value
        return stacked.reshape(*leading, *shape)


def _function(
    expressions: list[sp.Expr],
    symbols: dict[sp.Symbol, sp.Symbol],
    backend: str,
    with_respect_to: Sequence[sp.Symbol] = (),
) -> Any:
    """Code with common subexpressions computed once, of the expressions or of their derivatives, row by row.

    `symbols` maps the user's arguments to the code's. For NumPy the function's `scalar` is the same code over
    Python floats, several times faster on numbers.
    """
    fit = [guarded(balanced(filled(e))) for e in expressions]
    program = partial(jacobian_program, state=with_respect_to) if with_respect_to else True
    options = {"modules": [namespace(backend, fit)], "printer": printer(backend), "docstring_limit": 0}
    try:
        function = sp.lambdify(list(symbols.values()), fit, cse=program, **options)
    except (NotImplementedError, ValueError, TypeError) as error:
        named = {short: symbol for symbol, short in symbols.items()}
        raise unsupported(error, [e.xreplace(named) for e in expressions], backend) from None
    if backend == "numpy":
        function.scalar = FunctionType(function.__code__, {**function.__globals__, **SCALAR_FUNCTIONS})
    return function


def _real_symbols(symbols: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Symbol]:
    # d|x|/dx is sign(x) only for real x, and names such as "lambda" are no names in Python.
    return {s: sp.Symbol(f"a_{i}", **{**s.assumptions0, "real": True}) for i, s in enumerate(symbols)}


def _floating(array, module):
    array = module.asarray(array)
    return array if module.issubdtype(array.dtype, module.floating) else array.astype(float)


def _array_module(backend: str) -> Any:
    if backend == "numpy":
        return np
    import jax.numpy as jnp

    return jnp


def _check_backend(backend: str) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"`backend` must be one of {list(BACKENDS)}; got {backend!r}.")


def _require_double_precision() -> None:
    import jax

    if not jax.config.jax_enable_x64:
        raise RuntimeError(
            "JAX computes in single precision, in which flows lose their invariants; got jax_enable_x64 = "
            "False. Compile and call inside `with jax.enable_x64(True):`, or enable it for the whole program."
        )
