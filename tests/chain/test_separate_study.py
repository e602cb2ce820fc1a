"""The study that `odesys check separate` runs, as a whole: every check holds, every planted fault is caught."""

import numpy as np
from study_suite import StudySuite


class TestSeparate(StudySuite):
    name = "separate"
    faults = (
        "the paper's (C3) as necessary",
        "two heads on one eigenvector as independent",
        "index of the structured weights for others of the same M",
        "scalar ODE from max |v_i(0)|, not shifted",
        "t = tau/(lambda_1^2 max |v_i(0)|)",
        "comparing rows of K where only K^T Q has a meaning",
        "clock without the authors' factor N^{2/3}",
    )
    figures = (
        "separate-3a",
        "separate-3b",
        "separate-3c",
        "separate-lattice",
        "separate-two-heads",
        "separate-merged-plane",
        "separate-small-starts",
    )
    data = frozenset({"separate-training"})
    slow_runs = (("quick", 0), ("quick", 1), ("quick", 2), ("full", 10))

    def test_the_captions_name_the_modes_that_heads_share(self, quick):
        # The diagonal of v_i K_i^T Q_i at the end, heads by modes: a head has a part if it has a tenth of its mode.
        last = quick.data["separate-training"].isel(step=-1)
        parts = np.abs(np.einsum("h,hdd->hd", last["v"].values, last["KQ"].values))
        heads = (parts > 0.1 * parts.sum(axis=0)).sum(axis=0)
        assert heads.tolist() == [1, 1, 2, 2]
        captions = {picture.name: picture.caption for picture in quick.figures}
        assert "Modes 3, 4 are shared by heads" in captions["separate-3b"]
        assert "Here modes 3, 4 are shared" in captions["separate-3c"]
