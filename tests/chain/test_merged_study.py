"""The study that `odesys check merged` runs, as a whole: every check holds, every planted fault is caught."""

from study_suite import StudySuite


class TestMerged(StudySuite):
    name, seed = "merged", 0
    faults = (
        "coefficient a_d without the trace",
        "w_init = |w2(0)| instead of w_eff",
        "ansatz with equal modes under unequal eigenvalues",
        "clock without the factor 2 of a squared loss",
        "clock without the authors' factor N",
        "clock of the flow without the 1/2 before dL/dW",
        "Q off by 0.1 %",
        "v = 0 alone, tr(Lambda^2 U_i) not 0",
    )
    figures = ("merged-1", "merged-white-course", "merged-small-starts", "merged-phase-line")
    data = frozenset({"merged-training", "merged-theory"})
    slow_runs = (("quick", 1), ("quick", 2), ("quick", 3), ("full", 0))
