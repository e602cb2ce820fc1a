"""The full flow of merged attention against exact solutions that were computed without this package."""

import numpy as np
import pytest
import sympy as sp
from references import reference

import odesys
from symbolic.linear_attention import merged

REFERENCE = reference("linear_attention_merged")
CASES = REFERENCE["white_exact_general_init"]


def start(case):
    """W1 = A chat^T with chat = vec(I)/sqrt(D): U_i = A_i I/sqrt(D)."""
    modes = range(1, case["D"] + 1)
    values = {f"v_{i}": v for i, v in enumerate(case["w2"], 1)}
    for i, a in enumerate(case["A(W1=A chat^T)"], 1):
        diagonal = a / np.sqrt(case["D"])
        values |= {f"U_{i}_{r}_{c}": diagonal if r == c else 0.0 for r in modes for c in modes}
    return values


@pytest.mark.parametrize(
    "case",
    # Every case is run with the slow tests; one dimension shows the formula at every gate.
    [pytest.param(case, marks=[] if case["D"] == 4 else pytest.mark.slow) for case in CASES],
    ids=[f"D={case['D']},lambda={case['lambda']:g}" for case in CASES],
)
class TestUnbalancedWhiteStart:
    def test_closed_form(self, case):
        """The file's formula in 16 digits; 1e-12 allows for its rounding and ours."""
        w2, A = np.array(case["w2"]), np.array(case["A(W1=A chat^T)"])
        P, Q = np.sum((w2 + A) ** 2) / 4, np.sum((w2 - A) ** 2) / 4
        scalar = merged.model(dim=case["D"], heads=1)
        law, reduction = scalar.closed_forms["white exact"], scalar.reductions["white exact"]
        values = {"N": case["N"], "tau": 1.0, "lambda": case["lambda"], "P": P, "Q": Q}
        course = odesys.evaluate(law, {"y": 1.0}, case["t"], values, observables=reduction.observables)
        np.testing.assert_allclose(np.sqrt(case["D"]) * course["sigma"], case["p_exact"], rtol=0, atol=1e-12)

    @pytest.mark.parametrize("method", ["DOP853", "Dopri8"])
    def test_full_flow(self, case, method):
        """All weights integrated at rtol 1e-12: within 1e-10 of the exact solution, in both backends."""
        full = merged.model(dim=case["D"], heads=len(case["w2"]))
        spectrum = {f"lambda_{d}": case["lambda"] for d in range(1, case["D"] + 1)}
        system = odesys.ODESystem(full.flow, {"N": case["N"], "tau": 1.0, **spectrum})
        p = {"p": full.M.trace() / sp.sqrt(case["D"])}
        run = odesys.solve(system, start(case), case["t"], method=method, rtol=1e-12, observables=p)
        np.testing.assert_allclose(run["p"], case["p_exact"], rtol=0, atol=1e-10)
