"""The constant factors between paper, code and theory; expected values from the definitions, by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
from references import reference

from odesys import clock


@dataclass
class Task:
    context: int


@dataclass
class VaryingTask:
    context: int

    @property
    def lengths(self):
        return range(1, self.context + 1)


def test_time_constant_of_figure_1():
    # tau = 1/(2 lr N) steps with lr = 1e-3, N = 31: the reference file's 16.129032258064516.
    assert clock.merged(Task(31), rate=1e-3).time_constant_in_steps == pytest.approx(
        16.129032258064516, rel=1e-15
    )


def test_the_papers_normalisation_has_no_power_of_n():
    ticks = clock.merged(Task(31), rate=1e-3, normalization="mean")
    assert ticks.time_constant_in_steps == pytest.approx(500)  # 1/(2 lr)
    assert ticks.weight_scale == 1


@pytest.mark.parametrize(
    "published",
    reference("linear_attention_variants")["code_time_constants"],
    ids=lambda entry: str(entry["rate"]),
)
def test_time_constant_of_figure_3(published):
    # tau = 1/(2 lr N^{2/3}) steps
    ticks = clock.separate(Task(published["context"]), published["rate"])
    assert ticks.time_constant_in_steps == pytest.approx(published["steps"], rel=1e-14)
    assert ticks.description.startswith("t = 2 k eta N^{2/3} tau, eta = 0.0")


def test_separate_weights_scale_by_the_cube_root():
    assert clock.separate(Task(27), rate=0.5).weight_scale == pytest.approx(3, rel=1e-15)
    assert clock.separate(Task(27), rate=0.5).step_time == pytest.approx(9, rel=1e-15)  # 2 * 0.5 * 27^{2/3}
    assert clock.separate(Task(27), rate=0.5, normalization="mean").step_time == 1
    assert clock.separate(Task(27), rate=0.5, time_constant=2.0).step_time == pytest.approx(18, rel=1e-15)


def test_counting_the_query_shrinks_the_prediction():
    # 1/(N+1) is N/(N+1) times the paper's 1/N
    assert clock.prediction_scale(3, "tokens") == 0.75
    assert clock.merged(Task(3), 0.5, "tokens").step_time == pytest.approx(0.75)
    assert clock.separate(Task(7), 0.5, "tokens").step_time == pytest.approx((7 / 8) ** (2 / 3))
    assert clock.separate(Task(7), 0.5, "tokens").description.startswith("t = 2 k eta (N/(N+1))^{2/3} tau")


def test_no_factor_where_the_context_varies():
    for normalization in ("mean", "tokens"):
        assert clock.separate(VaryingTask(7), 0.5, normalization).step_time == 1
        assert clock.weight_scale(VaryingTask(7), normalization, 3) == 1
    for ticks in (clock.merged, clock.separate):
        with pytest.raises(ValueError, match="no fixed theory where the context length varies"):
            ticks(VaryingTask(7), 0.5)


def test_weights_scale_by_root_n_and_predictions_by_n():
    assert clock.merged(Task(16), rate=0.1).weight_scale == 4
    assert clock.prediction_scale(16, "sum") == 16
    assert clock.prediction_scale(16, "mean") == 1


def test_tau_stretches_time():
    assert clock.merged(Task(5), rate=0.01, time_constant=3.0).time(10) == pytest.approx(
        2 * 0.01 * 5 * 10 * 3
    )


def test_gradient_flow_takes_step_k_at_k_eta_tau():
    assert clock.gradient_flow(0.1, time_constant=2.0).time(5) == pytest.approx(1.0)


def test_without_further_numbers_tau_and_the_weights_have_the_scale_one():
    ticks = clock.gradient_flow(0.25)
    assert (ticks.step_time, ticks.time_constant, ticks.weight_scale) == (0.25, 1.0, 1.0)
    assert clock.Clock(0.25).time_constant_in_steps == 4
    assert clock.Clock(0.25).weight_scale == 1


@pytest.mark.parametrize(
    ("ticks", "normalization", "rule"),
    [
        (clock.merged, "sum", "t = 2 k eta N tau,"),
        (clock.merged, "mean", "t = 2 k eta tau,"),
        (clock.separate, "sum", "t = 2 k eta N^{2/3} tau,"),
        (clock.separate, "mean", "t = 2 k eta tau,"),
    ],
)
def test_the_rule_in_words(ticks, normalization, rule):
    assert ticks(Task(7), 0.5, normalization).description.startswith(rule)


def test_steps_and_times_invert_each_other():
    ticks = clock.merged(Task(31), rate=1e-3)
    steps = np.arange(0, 6001, 500)
    np.testing.assert_allclose(ticks.step(ticks.time(steps)), steps, rtol=1e-15)


def test_the_authors_sequence_length_counts_the_query():
    assert clock.context_length(32) == 31
    # The shortest context is one pair.
    assert clock.context_length(2) == 1
    assert clock.prediction_scale(1, "tokens") == 0.5


@pytest.mark.parametrize("rate", [0.0, -1e-3, float("nan"), float("inf")])
def test_rate_must_be_positive(rate):
    with pytest.raises(ValueError, match="`rate` must be positive and finite; got"):
        clock.merged(Task(31), rate=rate)
    with pytest.raises(ValueError, match="`rate` must be positive and finite; got"):
        clock.gradient_flow(rate)


def test_tau_must_be_positive():
    with pytest.raises(ValueError, match="`time_constant` must be positive"):
        clock.merged(Task(31), rate=1e-3, time_constant=0)
    with pytest.raises(ValueError, match="`step_time` must be positive"):
        clock.Clock(step_time=-1.0)


def test_unknown_normalisation():
    with pytest.raises(ValueError, match=r"`normalization` must be .*got 'paper'"):
        clock.merged(Task(31), rate=1e-3, normalization="paper")


def test_no_context():
    with pytest.raises(ValueError, match="`context` counts the context pairs N without the query"):
        clock.merged(Task(0), rate=1e-3)
    with pytest.raises(ValueError, match="must leave a context pair, >= 2; got 1"):
        clock.context_length(1)
