"""The public door: it is light, complete, and says what it has."""

import subprocess
import sys
from importlib import metadata

import pytest

import odesys

HEAVY = ("jax", "diffrax", "equinox", "scipy", "xarray", "pandas", "matplotlib")


def loaded_after(statement: str) -> list[str]:
    """The heavy packages in sys.modules after the statement, in a process of its own."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return result.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import odesys",
        "import odesys; dir(odesys); odesys.ODESystem; odesys.compile_field; odesys.solve; odesys.iterate",
        "import odesys; odesys.textbook.lorenz(); odesys.__version__",
    ],
)
def test_names_load_nothing_heavy(statement):
    assert loaded_after(statement) == []


def test_a_numpy_field_needs_numpy_alone():
    code = "import sympy, symbolic, odesys; x = sympy.Symbol('x'); f = symbolic.VectorField((x,), (-x,)); "
    assert loaded_after(code + "odesys.compile_field(f).rhs(0, [1.0], ())") == []


def test_the_probe_sees_what_is_loaded():
    assert loaded_after("import scipy") == ["scipy"]


def test_every_public_name_is_there():
    assert set(odesys.__all__) <= set(dir(odesys))
    for name in set(odesys.__all__) - {"__version__"}:
        # A module says odesys.clock of itself, a class or function solve.
        assert getattr(odesys, name).__name__.removeprefix("odesys.") == name
    assert odesys.__version__ == metadata.version("odesys")


def test_an_unknown_name_is_an_attribute_error_that_lists_the_names():
    with pytest.raises(AttributeError, match=r"odesys has no 'solver'; its names are .*'solve'"):
        odesys.solver  # noqa: B018
