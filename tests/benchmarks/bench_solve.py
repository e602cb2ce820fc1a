"""What importing and integrating cost.

Run:  pytest -n 0 tests/benchmarks/bench_solve.py
"""

import statistics
import subprocess
import sys
import time

import numpy as np
import pytest
import sympy as sp

import odesys
from odesys.integrators import contract
from symbolic.field import VectorField

v, lam = sp.symbols("v lambda")
#: One aligned mode of linear attention: a plateau of 1000 time units, then a jump to equilibrium.
FIELD = VectorField((v,), (lam**2 * v**2 - lam**3 * sp.Rational(33, 31) * v**5,), (lam,))
SYSTEM = odesys.ODESystem(FIELD, {"lambda": 1.0})


def seconds(statement: str) -> float:
    """Wall time of a whole process, the median of five."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def test_import_costs_little_more_than_sympy_and_numpy():
    assert seconds("import odesys; odesys.solve, odesys.compile_field") <= 1.3 * seconds(
        "import sympy, numpy"
    )


@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
@pytest.mark.parametrize("method", contract.METHODS)
def test_warm_solve(benchmark, method, rtol):
    def run():
        return odesys.solve(SYSTEM, {"v": 1e-3}, [0.0, 1010.0], method=method, rtol=rtol)

    result = run()
    benchmark.extra_info["steps"] = result.attrs["steps"]
    benchmark.extra_info["error"] = float(abs(result["v"][-1] - (31 / 33) ** (1 / 3)))
    benchmark(run)


@pytest.mark.parametrize("starts", [32, 1024])
def test_warm_ensemble(benchmark, starts):
    values = 10 ** np.random.default_rng(0).uniform(-3, -1, starts)

    def run():
        return odesys.solve_ensemble(SYSTEM, {"v": values}, [0.0, 1500.0], method="Dopri8")

    run()
    benchmark(run)
