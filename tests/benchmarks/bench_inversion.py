"""An implicit law at many times: inverting it costs a few evaluations of its time function, not dozens."""

import time

import numpy as np
import pytest

from odesys.evaluation import _inverter
from odesys.lambdify import compile_expressions
from symbolic.linear_attention import separate

LAW = separate.model(dim=1, heads=1).closed_forms["scalar"]
#: lambda, a, tau of mode 1 at D = 4, N = 31, the ends of the basin of v, and a start.
NUMBERS, LOW, HIGH, START = (0.4, 1.1129032258064516, 1.0), 0.0, 1.3096669533079181, 0.01
TIMES = np.linspace(0.0, 700.0, 2**17)


def seconds(action):
    start = time.process_time()
    action()
    return time.process_time() - start


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_inversion(benchmark, backend):
    invert = _inverter(LAW, backend)
    ends = (np.float64(START), np.float64(LOW), np.float64(HIGH))
    course = np.asarray(invert(TIMES, *ends, *NUMBERS))
    benchmark(lambda: np.asarray(invert(TIMES, *ends, *NUMBERS)))
    F = compile_expressions((LAW.primitive,), (*LAW.field.state, *LAW.field.parameters))
    inside = np.clip(course, LOW + 1e-3, HIGH - 1e-3)
    once = min(seconds(lambda: F(inside, *NUMBERS)) for _ in range(5))
    whole = min(seconds(lambda: np.asarray(invert(TIMES, *ends, *NUMBERS))) for _ in range(5))
    # Three Newton steps evaluate F, the field and the coordinate, and place the times on the grid.
    assert whole < 20 * once
