"""Systems with answers known by hand or from the literature: validation problems as library objects.

Each function returns a `Problem`; `PROBLEMS` lists the functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from odesys.system import ODESystem
from symbolic.field import VectorField

__all__ = [
    "BY_NAME",
    "CLOCK",
    "PROBLEMS",
    "KnownValue",
    "Problem",
    "harmonic_oscillator",
    "logistic",
    "lorenz",
    "lotka_volterra",
    "prothero_robinson",
    "robertson",
    "two_layer_network",
    "van_der_pol",
]


#: Time in closed forms.
CLOCK = sp.Symbol("t")


@dataclass(frozen=True)
class KnownValue:
    """The value of an expression in the states at one time, correct to all digits of the float."""

    expression: sp.Expr
    time: float
    value: float


@dataclass(frozen=True, eq=False)
class Problem:
    """An initial value problem with its answer.

    Attributes:
        name: what it is called.
        system: the flow and its numbers.
        start: the state at time 0, by name.
        end: a time by which everything characteristic has happened.
        solution: x(t) for this start and these numbers in `clock`, by name; empty if not elementary.
        clock: the symbol of time in `solution`.
        invariants: expressions that are constant along the flow.
        known: values at single times.
        stiff: whether explicit methods are hopeless.
        source: where the answer comes from.
    """

    name: str
    system: ODESystem
    start: Mapping[str, float]
    end: float
    solution: Mapping[str, sp.Expr] = dataclasses.field(default_factory=dict)
    clock: sp.Symbol = CLOCK
    invariants: tuple[sp.Expr, ...] = ()
    known: tuple[KnownValue, ...] = ()
    stiff: bool = False
    source: str = ""


def logistic(rate: float = 1.0, capacity: float = 2.0, start: float = 1e-3) -> Problem:
    """x' = r x (1 - x/K):  x(t) = K / (1 + (K/x0 - 1) exp(-r t)),  half full at t = log(K/x0 - 1) / r."""
    x, r, k, t = sp.symbols("x r K t")
    field = VectorField((x,), (r * x * (1 - x / k),), (r, k), source="Verhulst 1838")
    numbers = {"r": rate, "K": capacity}
    solution = k / (1 + (k / start - 1) * sp.exp(-r * t))
    half = float(sp.log(capacity / start - 1) / rate)
    return Problem(
        name="logistic",
        system=ODESystem(field, numbers),
        start={"x": start},
        end=20.0 / rate,
        solution={"x": solution.subs(numbers)},
        known=(KnownValue(x, half, capacity / 2),),
        source="separation of variables",
    )


def two_layer_network(target: float = 1.0, first: float = 0.1, second: float = 0.5) -> Problem:
    """a' = b (s - a b), b' = a (s - a b): the scalar two-layer linear network; a^2 - b^2 = C is conserved.

    The product p = a b obeys  p' = sqrt(C^2 + 4 p^2) (s - p);  p(2) is known from the integral of dp/p'.
    """
    a, b, s = sp.symbols("a b s")
    field = VectorField(
        (a, b),
        (b * (s - a * b), a * (s - a * b)),
        (s,),
        source="Saxe, McClelland and Ganguli 2014, arXiv:1312.6120",
    )
    hand = (target, first, second) == (1.0, 0.1, 0.5)
    return Problem(
        name="two-layer network",
        system=ODESystem(field, {"s": target}),
        start={"a": first, "b": second},
        end=10.0,
        invariants=(a**2 - b**2,),
        known=(KnownValue(a * b, 2.0, 0.8502916657834493),) if hand else (),
        source="quadrature of the flow of a b",
    )


def lotka_volterra(start: tuple[float, float] = (0.2, 1.0)) -> Problem:
    """x' = x (1 - y), y' = y (x - 1): closed orbits, on which  x - log x + y - log y  is constant."""
    x, y = sp.symbols("x y", positive=True)
    field = VectorField((x, y), (x * (1 - y), y * (x - 1)), source="Lotka 1925, Volterra 1926")
    return Problem(
        name="Lotka-Volterra",
        system=ODESystem(field),
        start=dict(zip(("x", "y"), start, strict=True)),
        end=20.0,
        invariants=(x - sp.log(x) + y - sp.log(y),),
        source="division of the two equations",
    )


def harmonic_oscillator(frequency: float = 2.0) -> Problem:
    """x' = v, v' = -omega^2 x  from (1, 0):  x = cos(omega t), v = -omega sin(omega t)."""
    x, v, omega, t = sp.symbols("x v omega t")
    field = VectorField((x, v), (v, -(omega**2) * x), (omega,), source="Hooke 1678")
    return Problem(
        name="harmonic oscillator",
        system=ODESystem(field, {"omega": frequency}),
        start={"x": 1.0, "v": 0.0},
        end=10.0,
        solution={"x": sp.cos(frequency * t), "v": -frequency * sp.sin(frequency * t)},
        invariants=(omega**2 * x**2 + v**2,),
        source="linear algebra",
    )


def lorenz() -> Problem:
    """x' = sigma (y - x), y' = x (rho - z) - y, z' = x y - beta z;  chaotic at 10, 28, 8/3.

    The known values are from Taylor series in 30 and in 40 digits, which agree.
    """
    x, y, z, sigma, rho, beta = sp.symbols("x y z sigma rho beta")
    field = VectorField(
        (x, y, z),
        (sigma * (y - x), x * (rho - z) - y, x * y - beta * z),
        (sigma, rho, beta),
        source="Lorenz, J. Atmos. Sci. 20 (1963)",
    )
    return Problem(
        name="Lorenz",
        system=ODESystem(field, {"sigma": 10, "rho": 28, "beta": sp.Rational(8, 3)}),
        start={"x": 1.0, "y": 1.0, "z": 1.0},
        end=5.0,
        known=(
            KnownValue(x, 1.0, -9.378570010925062),
            KnownValue(x, 5.0, -6.512113699419599),
            KnownValue(y, 5.0, -6.974042788417076),
            KnownValue(z, 5.0, 23.92412957210337),
        ),
        source="mpmath.odefun",
    )


def van_der_pol(stiffness: float = 1000.0) -> Problem:
    """x' = y, y' = mu (1 - x^2) y - x  from (2, 0): relaxation oscillations, stiff for large mu."""
    x, y, mu = sp.symbols("x y mu")
    field = VectorField((x, y), (y, mu * (1 - x**2) * y - x), (mu,), source="van der Pol 1926")
    published = stiffness == 1000.0
    return Problem(
        name="van der Pol",
        system=ODESystem(field, {"mu": stiffness}),
        start={"x": 2.0, "y": 0.0},
        end=2 * stiffness,
        # The test set writes time as t/mu and the velocity as mu y, with epsilon = 1/mu^2 = 1e-6.
        known=(
            KnownValue(x, 2000.0, 1.706167732170483),
            KnownValue(1000 * y, 2000.0, -0.8928097010247975),
        )
        if published
        else (),
        stiff=True,
        source="Mazzia and Magherini, Test Set for IVP Solvers, release 2.4, problem VDPOL",
    )


def robertson() -> Problem:
    """Robertson's three reactions at rates 0.04, 1e4, 3e7 from (1, 0, 0): stiff over eleven decades.

    The short-lived b stays below 4e-5, so `atol` must resolve it: 1e-14, say.
    """
    a, b, c, k1, k2, k3 = sp.symbols("a b c k_1 k_2 k_3")
    slow, back, fast = k1 * a, k2 * b * c, k3 * b**2
    field = VectorField(
        (a, b, c),
        (-slow + back, slow - back - fast, fast),
        (k1, k2, k3),
        source="Robertson 1966",
    )
    return Problem(
        name="Robertson",
        system=ODESystem(field, {"k_1": sp.Rational(4, 100), "k_2": 1e4, "k_3": 3e7}),
        start={"a": 1.0, "b": 0.0, "c": 0.0},
        end=1e11,
        invariants=(a + b + c,),
        known=(
            KnownValue(a, 1e11, 0.2083340149701255e-07),
            KnownValue(b, 1e11, 0.8333360770334713e-13),
            KnownValue(c, 1e11, 0.9999999791665050),
        ),
        stiff=True,
        source="Mazzia and Magherini, Test Set for IVP Solvers, release 2.4, problem ROBER",
    )


def prothero_robinson(stiffness: float = 1e6) -> Problem:
    """x' = -k (x - cos t) - sin t  from x(0) = 1:  x(t) = cos t, whatever k."""
    x, k, t = sp.symbols("x k t")
    field = VectorField(
        (x,),
        (-k * (x - sp.cos(t)) - sp.sin(t),),
        (k,),
        time=t,
        source="Prothero and Robinson, Math. Comp. 28 (1974)",
    )
    return Problem(
        name="Prothero-Robinson",
        system=ODESystem(field, {"k": stiffness}),
        start={"x": 1.0},
        end=10.0,
        solution={"x": sp.cos(t)},
        stiff=True,
        source="substitution",
    )


PROBLEMS = (
    logistic,
    two_layer_network,
    lotka_volterra,
    harmonic_oscillator,
    lorenz,
    van_der_pol,
    robertson,
    prothero_robinson,
)

#: The same by the names that commands take, such as "van-der-pol".
BY_NAME = {problem.__name__.replace("_", "-"): problem for problem in PROBLEMS}
