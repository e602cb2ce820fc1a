"""400 streamlines at once against a loop of scalar solves.

Run:  pytest -n 0 tests/benchmarks/bench_streamlines.py
The field is the two-layer network u' = w - M u w^2, w' = u - M u^2 w, M = 33/31. The loop is given the fastest
right-hand side that SciPy can call, a function of Python floats. Ratios are recorded as extra information.
"""

import math
import time

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

from fixedpoints.pictures.direction_field import DirectionField
from fixedpoints.pictures.streamlines import trace_both_ways
from fixedpoints.pictures.window import window
from odesys.integrators.bundle import trace
from odesys.lambdify import compile_field
from odesys.system import ODESystem
from symbolic.field import VectorField

M = 33 / 31
u, w = sp.symbols("u w")
SYSTEM = ODESystem(VectorField((u, w), (w - M * u * w**2, u - M * u**2 * w)))
SIDE = np.linspace(-1.95, 1.95, 20)
STARTS = np.stack(np.meshgrid(SIDE, SIDE)).reshape(2, -1)
TIMES = np.linspace(0.0, 8.0, 100)
TOLERANCE = 1e-6


def scalar_field(t, y):
    a, b = y.tolist()
    return b - M * a * b * b, a - M * a * a * b


def never(place, states, slopes):
    return np.zeros(place.shape, dtype=bool)


def flow_at_once():
    """All lines to t = 8, with 100 outputs each."""
    compiled = compile_field(SYSTEM)
    lines = trace(lambda y: compiled.rhs(0.0, y, ()), STARTS, np.full(400, 8.0), never, tolerance=TOLERANCE)
    return lines.at(np.arange(400), np.tile(TIMES, (400, 1)))


def flow_by_loop():
    options = {"method": "LSODA", "t_eval": TIMES, "rtol": TOLERANCE, "atol": TOLERANCE}
    return np.stack([solve_ivp(scalar_field, (0.0, 8.0), start, **options).y for start in STARTS.T], axis=1)


def seconds(function, *arguments):
    """Processor time of a call, the best of as many as fit into three seconds: other work disturbs it least."""
    times = []
    while sum(times) < 3.0:
        begin = time.process_time()
        function(*arguments)
        times.append(time.process_time() - begin)
    return min(times)


def test_flow(benchmark):
    benchmark.pedantic(flow_at_once, rounds=5, warmup_rounds=1)
    ratio = seconds(flow_by_loop) / seconds(flow_at_once)
    benchmark.extra_info["ratio to a loop of LSODA"] = round(ratio)
    # The two agree to their tolerances, grown along the lines; cubics add about as much between steps.
    np.testing.assert_allclose(flow_at_once(), flow_by_loop(), atol=2e-4)
    assert ratio > 50


def picture_by_loop(lines):
    """Each half of each line by LSODA, as far as it goes, with 100 outputs."""

    def direction(t, z, sign):
        a, b = scalar_field(t, 4 * (z - 0.5))
        speed = sign / math.hypot(a, b)
        return a * speed, b * speed

    for place, line in enumerate(lines):
        span, sign = (0.0, line.parameter[-1]), 1.0 if place < 400 else -1.0
        options = {"method": "LSODA", "rtol": 1e-8, "atol": 1e-8, "args": (sign,)}
        solve_ivp(direction, span, line.states[:, 0], t_eval=np.linspace(*span, 100), **options)


def test_picture(benchmark):
    """In the picture's arc length, both ways, as a portrait traces them: looking for the ends is included."""
    field = DirectionField(SYSTEM, window((u, w), {"u": (-2, 2), "w": (-2, 2)}))
    seeds = field.window.to_unit(STARTS)
    lines = benchmark.pedantic(trace_both_ways, (field, seeds), rounds=5, warmup_rounds=1)
    ratio = seconds(picture_by_loop, lines) / seconds(trace_both_ways, field, seeds)
    benchmark.extra_info["ratio to a loop of LSODA"] = round(ratio)
    assert ratio > 20
