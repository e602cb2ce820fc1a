"""What the gradient of matrix softmax regression costs as A1^T G A2, and through K = A1 kron A2; float64.

Run:  pytest -n 0 tests/benchmarks/bench_softmax.py

K has n^2 rows and d^2 columns. At n = 128, d = 16 the gradient must be 30 times faster than through a K that has to be
built, as it has where A1 and A2 are data, and equal to 1e-12. Times are the fastest of several runs: load only adds.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from odesys.simulation import softmax_regression


def problem(n, d, seed=0):
    rng = np.random.default_rng(seed)
    A1, A2, X = (rng.normal(size=shape) / np.sqrt(d) for shape in ((n, d), (n, d), (d, d)))
    return softmax_regression.matrix(A1, A2, rng.dirichlet(np.ones(n), n)), X


@jax.jit
def kronecker_gradient(K, X, B):
    """grad of (1/2) |P - B|_F^2, P the softmax of each row of K vec(X)."""

    def loss(x):
        return jnp.sum((jax.nn.softmax((K @ x).reshape(B.shape), axis=1) - B) ** 2) / 2

    return jax.grad(loss)(X.reshape(-1)).reshape(X.shape)


def fastest(function, repeats=20):
    function()  # compile
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def through_kronecker(regression, X):
    K = np.kron(regression.left, regression.right)
    return np.asarray(kronecker_gradient(K, X, regression.target))


def test_thirty_times_faster_than_the_kronecker_route(benchmark):
    regression, X = problem(128, 16)
    gap = np.abs(regression.gradient(X) - through_kronecker(regression, X)).max()
    assert gap < 1e-12
    K = jnp.kron(regression.left, regression.right)
    ours = fastest(lambda: regression.gradient(X), 50)
    built = fastest(lambda: through_kronecker(regression, X))
    kept = fastest(lambda: np.asarray(kronecker_gradient(K, X, regression.target)))
    benchmark.extra_info |= {"speedup": built / ours, "speedup with K at hand": kept / ours, "gap": gap}
    assert built / ours > 30
    benchmark(regression.gradient, X)


def test_a_hessian_vector_product_costs_a_few_gradients(benchmark):
    regression, X = problem(128, 16)
    gradient = fastest(lambda: regression.gradient(X), 50)
    product = fastest(lambda: regression.hessian_times(X, X), 50)
    benchmark.extra_info["gradients"] = product / gradient
    assert product < 10 * gradient
    benchmark(regression.hessian_times, X, X)


def exponent(sizes, times):
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def test_cost_grows_as_n_squared(benchmark):
    sizes = [256, 512, 1024, 2048]
    cases = [problem(n, 16) for n in sizes]
    times = [fastest(lambda r=r, X=X: r.gradient(X), 8) for r, X in cases]
    benchmark.extra_info["exponent in n"] = measured = exponent(sizes, times)
    assert measured < 2.5  # 2, and what no longer fits into a cache
    benchmark.pedantic(cases[-1][0].gradient, (cases[-1][1],), rounds=5)


def test_cost_grows_at_most_linearly_in_d(benchmark):
    # softmax costs n^2 whatever d is, products n^2 d; with K it would be d^2
    sizes = [32, 64, 128, 256]
    cases = [problem(512, d) for d in sizes]
    times = [fastest(lambda r=r, X=X: r.gradient(X), 8) for r, X in cases]
    benchmark.extra_info["exponent in d"] = measured = exponent(sizes, times)
    assert measured < 1.3  # 1, and the noise of short runs
    benchmark.pedantic(cases[-1][0].gradient, (cases[-1][1],), rounds=5)
