"""Separate attention, two rooms: what SymPy derives of its fixed points and what `fixedpoints` computes of them.

The two share no code: `symbolic` expects over tokens, `fixedpoints` knows matrices in the eigenbasis alone.
"""

from itertools import combinations

import numpy as np
import pytest

from fixedpoints.linear_attention import Lattice, Modes, Weights, hessian, inertia
from odesys.lambdify import compile_field
from odesys.system import ODESystem
from symbolic.linear_attention import separate, task

SPECTRA = {2: (0.5, 0.2), 3: (0.5, 0.3, 0.1)}
SIZES = [(2, 3, 1), (3, 2, 1), (2, 2, 2), (3, 2, 2)]


def numbers(spectrum, context=7):
    return {f"lambda_{d}": x for d, x in enumerate(spectrum, 1)} | {"N": context, "tau": 1.0}


@pytest.mark.parametrize(("dim", "heads", "rank"), SIZES)
def test_the_derived_loss_flow_and_jacobian(dim, heads, rank):
    model, modes = separate.model(dim=dim, heads=heads, rank=rank), Modes(SPECTRA[dim], 7)
    field = compile_field(ODESystem(model.flow, numbers(SPECTRA[dim])))
    size = heads * (1 + 2 * rank * dim)
    weights = Weights.from_vector(np.random.default_rng(size).standard_normal(size), heads, rank, dim)
    assert list(weights.location) == [w.name for w in model.weights]
    rate, slopes = (np.asarray(f(0.0, weights.vector, field.args)) for f in (field.rhs, field.jacobian))
    # Sums of some hundred products of order one, in two orders.
    np.testing.assert_allclose(weights.velocity(modes), rate, atol=1e-12)
    np.testing.assert_allclose(-hessian(weights, modes) / 2, slopes, atol=1e-12)
    # At any M, not only at the diagonal ones of fixed points.
    at = {**dict(zip(model.weights, weights.vector, strict=True)), task.N: 7}
    at |= dict(zip(task.eigenvalues(dim), SPECTRA[dim], strict=True))
    assert modes.loss(weights.M) == pytest.approx(float(model.loss.subs(at)), rel=1e-12)


@pytest.mark.parametrize(("dim", "heads", "rank"), SIZES)
def test_the_derived_points_and_their_index(dim, heads, rank):
    spectrum = SPECTRA[dim]
    model, lattice = separate.model(dim=dim, heads=heads, rank=rank), Lattice(spectrum, 7, heads, rank)
    field = compile_field(ODESystem(model.flow, numbers(spectrum)))
    values = {**dict(zip(task.eigenvalues(dim), spectrum, strict=True)), task.N: 7}
    for m in range(lattice.most + 1):
        for learned in combinations(range(1, dim + 1), m):
            derived, point = model.point(learned), lattice.at(learned)
            at = [float(derived.weights[w].subs(values)) for w in model.weights]
            np.testing.assert_allclose(point.weights.vector, at, atol=1e-14)
            assert point.loss == pytest.approx(float(derived.loss.subs(values)), rel=1e-14)
            # The flow is -(1/2) grad L: the Hessian is -2 times its Jacobian.
            slopes = np.asarray(field.jacobian(0.0, np.array(at), field.args))
            assert inertia(-2 * slopes) == point.index
            np.testing.assert_allclose(
                np.sort(np.linalg.eigvalsh(slopes))[::-1], point.eigenvalues(), atol=1e-13
            )
