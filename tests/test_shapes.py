"""The canary of the shape hook: were it not installed, wrong shapes would pass silently everywhere."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from odesys.simulation import features, observables, tasks


def test_a_wrong_number_of_axes_raises():
    # Declared "P E T".
    with pytest.raises(TypeCheckError, match=r"Float\[ndarray, 'P E T'\]"):
        features.cubic_features(np.ones((2, 3)))


def test_axes_of_one_name_must_have_one_length():
    # Declared v: " H", U: "H D D", eigenvalues: " D", with H = 2, D = 3; then with one entry too many.
    observables.effective_start(np.ones(2), np.ones((2, 3, 3)), np.ones(3))
    with pytest.raises(TypeCheckError, match="parameter 'eigenvalues'"):
        observables.effective_start(np.ones(2), np.ones((2, 3, 3)), np.ones(4))


def test_other_annotations_are_left_to_the_code():
    with pytest.raises(ValueError, match=r"`dim` .* got -1"):
        tasks.linear_regression(dim=-1, context=5, sequences=20, seed=1)
