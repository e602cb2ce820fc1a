"""For every test: float64 in JAX, no display, and array shapes checked as the judge's own room runs."""

import os

os.environ["MPLBACKEND"] = "Agg"

import jax
import jaxtyping
import pytest

jax.config.update("jax_enable_x64", True)

# Installed before anything imports the room. A misspelt name here would pass silently: see test_shapes.py.
jaxtyping.install_import_hook("odesys.simulation", "shape_checks.shapes_only")

# Asserts that live outside test files explain themselves as those inside do.
pytest.register_assert_rewrite("study_suite")
