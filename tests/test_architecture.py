"""The house: imports go down the staircase, the packages travel together, importing them costs little."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("symbolic", "odesys", "fixedpoints")

#: The folder from which the packages are imported; with an installation, the installed ones.
HOME = Path(importlib.import_module("odesys").__file__).parent.parent

#: The rooms from the cellar up: each may use itself and what stands before it.
FLOORS = ("symbolic", "odesys", "fixedpoints", "roof")
ROOF = ("odesys.studies", "odesys.commands", "odesys.cli")


def modules():
    for package in PACKAGES:
        for path in sorted((HOME / package).rglob("*.py")):
            parts = path.relative_to(HOME).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def floor(name: str) -> str:
    return "roof" if any(name == r or name.startswith(f"{r}.") for r in ROOF) else name.split(".")[0]


def imports(path: Path) -> set[str]:
    """Every module that the file imports, at its top or inside a function, but not for annotations alone."""
    found = set()
    nodes = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        nodes += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize(
    ("name", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_imports_go_down(name, path):
    above = set(FLOORS[FLOORS.index(floor(name)) + 1 :])
    up = {target for target in imports(path) if floor(target) in above}
    assert not up, f"{path} imports upward: {sorted(up)}"


def test_the_room_test_sees_upward_imports(tmp_path):
    # Without this, a mistake in `imports` would let everything pass.
    (tmp_path / "bad.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import fixedpoints.points\n"
        "def f():\n    from odesys import studies\n    import odesys.cli\n"
    )
    assert {floor(target) for target in imports(tmp_path / "bad.py")} == {"typing", "odesys", "roof"}


def test_the_judge_does_not_import_the_accused():
    accused = (
        "symbolic",
        "sympy",
        "odesys.system",
        "odesys.lambdify",
        "odesys.evaluation",
        "odesys.integrators",
    )
    for name, path in modules():
        if name.startswith("odesys.simulation"):
            met = {t for t in imports(path) for a in accused if t == a or t.startswith(f"{a}.")}
            assert not met, f"{path} imports {sorted(met)}"


def test_packages_share_one_parent_folder():
    # Another distribution also installs a package named `symbolic`; this finds it in our place.
    homes = {Path(importlib.import_module(name).__file__).resolve().parent.parent for name in PACKAGES}
    assert len(homes) == 1, f"the packages come from {sorted(map(str, homes))}"


def thawed(tree: ast.Module) -> list[str]:
    """The public dataclasses whose fields can be set later; private ones may gather what they meet."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name[0] != "_"
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator.startswith("dataclass") and "frozen=True" not in decorator
    ]


def test_public_dataclasses_are_frozen():
    found = {name: thawed(ast.parse(path.read_text(encoding="utf-8"))) for name, path in modules()}
    assert {name: classes for name, classes in found.items() if classes} == {}
    # Without this, a mistake in `thawed` would let everything pass.
    planted = (
        "@dataclass\nclass A: ...\n@dataclass(eq=False)\nclass B: ...\n@dataclass(frozen=True)\nclass C: ..."
    )
    assert thawed(ast.parse(planted)) == ["A", "B"]


HEAVY = ("jax", "diffrax", "equinox", "scipy", "xarray", "pandas", "matplotlib", "rich", "typer", "h5netcdf")


@pytest.mark.parametrize(
    ("package", "absent"),
    [("symbolic", (*HEAVY, "numpy")), ("odesys", HEAVY), ("fixedpoints", ("matplotlib", "jax", "diffrax"))],
)
def test_importing_is_light(package, absent):
    program = f"import sys, {package}; print(*sorted(set(sys.modules) & {set(absent)!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_importing_everything_never_loads_matplotlib_or_switches_jax():
    names = [name for name, _ in modules() if name != "odesys.__main__"]
    program = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "import jax\nprint('matplotlib' in sys.modules, jax.config.jax_enable_x64)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("name", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_public_functions_and_classes_are_documented(name, path):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    definitions = {
        node.name: node for node in ast.parse(path.read_text(encoding="utf-8")).body if hasattr(node, "name")
    }
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), f"{name}.__all__ promises {public!r}, which is not there"
        if public in definitions:
            assert ast.get_docstring(definitions[public]), f"{name}.{public} has no docstring"
