"""What is run: a rule (a flow or a map) together with one real number for each of its parameters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from symbolic.field import IteratedMap, VectorField

__all__ = ["MapSystem", "ODESystem", "named_numbers", "numbers_for"]


@dataclass(frozen=True)
class ODESystem:
    """A flow with its numbers,  dx/dt = f(t, x; p)  at one p.

    Args:
        field: the rule.
        parameters: one finite real number for each of `field.parameters`, by name or by symbol.
    Raises:
        TypeError: `field` is not a `VectorField`, or a value is not a number.
        ValueError: a parameter is unknown, missing or given twice, or its number is complex, not finite or not of
            the sign that the parameter is declared to have.
    """

    field: VectorField
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        _check_rule(self.field, VectorField, "ODESystem", "MapSystem")
        _store_numbers(self, self.field.parameters)

    @property
    def args(self) -> tuple[float, ...]:
        """The numbers in the order of `field.parameters`."""
        return tuple(self.parameters.values())

    def with_parameters(self, changes: Mapping[str | sp.Symbol, float]) -> ODESystem:
        """The same flow with some numbers changed; nothing is compiled anew."""
        return replace(self, parameters={**self.parameters, **_changed(self.field.parameters, changes)})

    def __hash__(self) -> int:
        return hash((self.field, self.args))


@dataclass(frozen=True)
class MapSystem:
    """A map with its numbers,  x -> f(x; p)  at one p.

    Args:
        map: the rule.
        parameters: one finite real number for each of `map.parameters`, by name or by symbol.
    Raises:
        TypeError: `map` is not an `IteratedMap`, or a value is not a number.
        ValueError: a parameter is unknown, missing or given twice, or its number is complex, not finite or not of
            the sign that the parameter is declared to have.
    """

    map: IteratedMap
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        _check_rule(self.map, IteratedMap, "MapSystem", "ODESystem")
        _store_numbers(self, self.map.parameters)

    @property
    def args(self) -> tuple[float, ...]:
        """The numbers in the order of `map.parameters`."""
        return tuple(self.parameters.values())

    def with_parameters(self, changes: Mapping[str | sp.Symbol, float]) -> MapSystem:
        """The same map with some numbers changed; nothing is compiled anew."""
        return replace(self, parameters={**self.parameters, **_changed(self.map.parameters, changes)})

    def __hash__(self) -> int:
        return hash((self.map, self.args))


def numbers_for(
    symbols: Sequence[sp.Symbol], given: Mapping[str | sp.Symbol, object], what: str
) -> tuple[float, ...]:
    """One finite real number for each symbol, in the order of the symbols.

    Args:
        symbols: what needs a number.
        given: the numbers, by name or by symbol.
        what: what the symbols are, in the singular, for the messages ("parameter", "state").
    Raises:
        TypeError: `given` is not a mapping, or a value is not one number.
        ValueError: a symbol is unknown, missing or given twice, or its number is complex or not finite.
    """
    numbers = named_numbers(symbols, given, what)
    missing = [symbol.name for symbol in symbols if symbol.name not in numbers]
    if missing:
        raise ValueError(
            f"No number for the {what}s {missing}; got {sorted(numbers)}. "
            f"Give one for each of {[symbol.name for symbol in symbols]}."
        )
    return tuple(numbers[symbol.name] for symbol in symbols)


def named_numbers(
    symbols: Sequence[sp.Symbol], given: Mapping[str | sp.Symbol, object], what: str
) -> dict[str, float]:
    """The given numbers by name, checked as in `numbers_for`; symbols may lack one."""
    return {name: _number(value, f"{what} {name}") for name, value in by_name(symbols, given, what).items()}


def by_name(
    symbols: Sequence[sp.Symbol], given: Mapping[str | sp.Symbol, object], what: str
) -> dict[str, object]:
    """The given values, whatever they are, by the name of the symbol that each belongs to."""
    known = [symbol.name for symbol in symbols]
    if not isinstance(given, Mapping):
        raise TypeError(
            f"The {what}s must be a mapping from name to number such as {{{(known or ['x'])[0]!r}: 1.0}}; "
            f"got {given!r} of type {type(given).__name__}."
        )
    values: dict[str, object] = {}
    for key, value in given.items():
        name = key.name if isinstance(key, sp.Symbol) else key
        if name not in known:
            raise ValueError(f"No {what} is called {str(key)!r}; the {what}s are {known}.")
        if isinstance(key, sp.Symbol) and key not in symbols:
            raise ValueError(
                f"The symbol {name} that names a {what} has other assumptions than the declared one. "
                f"Pass the declared symbol, or its name {name!r}."
            )
        if name in values:
            raise ValueError(f"The {what} {name} is given twice, by name and by symbol. Give it once.")
        values[name] = value
    return values


def _number(value: object, who: str) -> float:
    if isinstance(value, (complex, np.complexfloating)) or (
        isinstance(value, sp.Expr) and value.is_extended_real is False
    ):
        raise ValueError(f"The {who} must be real; got the complex number {value}.")
    if isinstance(value, (bool, np.bool_, str)) or not hasattr(value, "__float__") or np.ndim(value) != 0:  # type: ignore
        raise TypeError(f"The {who} must be one real number; got {value!r} of type {type(value).__name__}.")
    try:
        number = float(value)  # type: ignore
    except OverflowError:
        number = math.inf
    except TypeError:
        raise TypeError(f"The {who} must be one real number; got {value!r}, which has no value.") from None
    if not math.isfinite(number):
        raise ValueError(f"The {who} must be finite; got {value}.")
    return number


def _check_rule(rule: object, wanted: type, here: str, there: str) -> None:
    if not isinstance(rule, wanted):
        raise TypeError(
            f"{here} takes a {wanted.__name__}; got {type(rule).__name__}. "
            f"For the other kind there is {there}."
        )


def _store_numbers(system: ODESystem | MapSystem, symbols: Sequence[sp.Symbol]) -> None:
    numbers = numbers_for(symbols, system.parameters, "parameter")
    for symbol, number in zip(symbols, numbers, strict=True):
        _check_sign(symbol, number)
    names = [symbol.name for symbol in symbols]
    object.__setattr__(system, "parameters", dict(zip(names, numbers, strict=True)))


def _check_sign(symbol: sp.Symbol, number: float) -> None:
    """What SymPy derived for positive numbers need not hold for others."""
    signs = {
        "positive": symbol.is_positive and not number > 0,
        "negative": symbol.is_negative and not number < 0,
        "nonnegative": symbol.is_nonnegative and not number >= 0,
        "nonpositive": symbol.is_nonpositive and not number <= 0,
        "nonzero": symbol.is_nonzero and number == 0,
    }
    declared = next((sign for sign, broken in signs.items() if broken), None)
    if declared is not None:
        raise ValueError(
            f"The parameter {symbol} is declared to be {declared}; got {number:g}. Give such a number, or declare the "
            "symbol without that assumption."
        )


def _changed(symbols: Sequence[sp.Symbol], changes: Mapping[str | sp.Symbol, object]) -> dict[str, float]:
    return named_numbers(symbols, changes, "parameter")
