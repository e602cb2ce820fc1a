"""What gradient descent on the real network costs; float64, the paper's sizes: D = 4, N = 31, H = 8 heads of
merged attention, 5 of separate attention; D = 8, H = 9 for its ranks.

Run:  pytest -n 0 tests/benchmarks/bench_descent.py
A step must cost the same for 5000 and 80000 sequences: it sees their second moments only.
"""

import pytest

from odesys.simulation import descend, descent, networks, tasks
from odesys.simulation.features import attention_features, cubic_features
from odesys.simulation.statistics import moments

STEPS = 6001
CORRECTIONS = {"whiten_tasks": True, "centre_inputs": True}
NET = networks.MergedAttention(heads=8)


def paper_task(sequences, **corrections):
    return tasks.linear_regression(
        dim=4, context=31, eigenvalues=(0.4, 0.3, 0.2, 0.1), sequences=sequences, seed=10, **corrections
    )


@pytest.mark.parametrize("gradient", ["full", "restricted"])
@pytest.mark.parametrize("sequences", [5000, 80_000])
def test_warm_run(benchmark, sequences, gradient):
    task = paper_task(sequences)
    settings = {"init": 1e-6, "rate": 1e-3, "steps": STEPS, "seed": 10, "gradient": gradient}
    descend(NET, task, **settings)  # compile, and gather the moments
    benchmark.extra_info["steps"] = STEPS
    benchmark(descend, NET, task, **settings)


FIGURE_3 = {"init": 0.01, "rate": 0.02, "steps": 10_001}


@pytest.mark.parametrize("sequences", [5000, 80_000])
def test_warm_run_of_separate_attention(benchmark, sequences):
    task, net = paper_task(sequences), networks.SeparateAttention(heads=5)
    descend(net, task, **FIGURE_3, seed=0)
    benchmark.extra_info["steps"] = FIGURE_3["steps"]
    benchmark(descend, net, task, **FIGURE_3, seed=0)


def test_figure_3_from_nothing(benchmark):
    """Data, statistics, compilation and 10001 steps: under 5 seconds after import."""
    net = networks.SeparateAttention(heads=5)

    def everything():
        descent._descend.clear_cache()
        return descend(net, paper_task(80_000, **CORRECTIONS), **FIGURE_3, seed=0)

    benchmark.pedantic(everything, rounds=3)


def test_six_seeds(benchmark):
    task, net = paper_task(80_000), networks.SeparateAttention(heads=5)
    descend(net, task, **FIGURE_3, seed=range(6), every=10)
    benchmark(descend, net, task, **FIGURE_3, seed=range(6), every=10)


@pytest.mark.parametrize("rank", [1, 2, 4, 8])
def test_ranks(benchmark, rank):
    task = tasks.linear_regression(dim=8, context=31, sequences=5000, seed=0)
    net = networks.SeparateAttention(heads=9, rank=rank)
    settings = {"init": 5e-3, "rate": 0.02, "steps": 2001, "seed": 0, "every": 100}
    descend(net, task, **settings)
    benchmark.extra_info["steps"] = 2001
    benchmark.pedantic(descend, (net, task), settings, rounds=3)


@pytest.mark.parametrize("every", [1, 100])
def test_recording(benchmark, every):
    task = paper_task(5000)
    settings = {"init": 1e-6, "rate": 1e-3, "steps": STEPS, "seed": 10, "every": every}
    descend(NET, task, **settings)
    benchmark(descend, NET, task, **settings)


def test_raw_step_for_comparison(benchmark):
    task = paper_task(5000)
    settings = {"init": 1e-6, "rate": 1e-3, "steps": 11, "seed": 10, "gradient": "raw"}
    descend(NET, task, **settings)
    benchmark.extra_info["steps"] = 11
    benchmark.pedantic(descend, (NET, task), settings, rounds=3)


@pytest.mark.parametrize("features", [attention_features, cubic_features])
@pytest.mark.parametrize("sequences", [5000, 80_000])
def test_moments(benchmark, sequences, features):
    # a fresh task each round, since moments are kept for each data set
    benchmark.pedantic(moments, setup=lambda: ((paper_task(sequences), features, "sum"), {}), rounds=3)


def test_data_of_the_authors_kind(benchmark):
    def everything():
        return sum(len(batch.labels) for batch in paper_task(80_000, **CORRECTIONS).batches())

    assert benchmark.pedantic(everything, rounds=3) == 80_000
