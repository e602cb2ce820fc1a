"""The study that `odesys check softmax` runs, as a whole: every check holds, every planted fault is caught."""

from study_suite import StudySuite


class TestSoftmax(StudySuite):
    name = "softmax"
    faults = (
        "gradient without the term <f, c> f",
        "the column-major factor A2 kron A1 on row-major weights",
        "the normalized loss taken for the rescaled one",
        "a minimum taken for a plateau",
        "a run on its way taken for its end",
        "eta_c of a loss without the 1/2",
        "another symmetry-breaking step",
        "autodiff of a library softmax, not centred",
        "unshifted softmax, wrong already at x = 400",
        "column-major blocks",
        "constants that are a tenth too small",
        "kappa of the simplex for every |b| <= 1",
        "kappa's smallest eigenvalue for its largest",
        "kappa at the other stationary point",
        "M growing with n as published",
        "M growing with exp(R^2) as published",
    )
    figures = (
        "softmax-three-points",
        "softmax-rescaled",
        "softmax-two-minima",
        "softmax-orbits",
        "softmax-bounds",
    )
    data = frozenset({"softmax-orbits", "softmax-bounds"})
    # Both scales are the same.
    slow_runs = (("quick", 0),)
