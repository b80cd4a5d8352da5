"""What the package promises as a package: one version, pinned downloads, a wheel with its data, cheap imports."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from chartgen import __version__

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
PINS = sorted((ROOT / "requirements").glob("*.txt"))
HEAVY = ("jinja2", "jsonschema", "lightkube", "pydantic", "pyhelm3", "ruamel.yaml")


def stated(pattern: str) -> str:
    """Read the one line of pyproject.toml that matches."""
    (found,) = re.findall(pattern, PYPROJECT, re.MULTILINE)
    return str(found)


def pins(path: Path) -> list[str]:
    """List the logical lines of a requirement file."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def pinned(path: Path) -> list[Requirement]:
    return [Requirement(line.partition(" --hash")[0]) for line in pins(path)]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the tree with the pinned backend, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def packed(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_version_is_stated_once(wheel: Path) -> None:
    assert metadata.version("chartgen") == __version__
    assert wheel.name == f"chartgen-{__version__}-py3-none-any.whl"
    stating = [path.name for path in (ROOT / "chartgen").rglob("*.py") if f'"{__version__}"' in path.read_text()]
    assert stating == ["__init__.py"]
    assert __version__ not in PYPROJECT


def test_changes_begin_with_the_version() -> None:
    titles = re.findall(r"^## ([^\s,]+)", (ROOT / "CHANGES.md").read_text(), re.MULTILINE)
    assert titles[0] == __version__


def test_build_backend_is_the_pinned_one() -> None:
    backend = Requirement(stated(r'^requires = \["(.+?)"\]'))
    assert backend in [Requirement(str(pin)) for pin in pinned(ROOT / "requirements" / "build.txt")]


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_no_address(path: Path) -> None:
    assert [line for line in pins(path) if not re.match(r"\S+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)] == []
    assert not re.search(r"://|--(extra-)?index|--find-links", path.read_text())


def test_pins_meet_what_the_package_asks_for() -> None:
    versions = {pin.name: pin for pin in pinned(ROOT / "requirements" / "dev.txt")}
    for line in metadata.requires("chartgen") or []:
        asked = Requirement(line)
        pin = versions[asked.name.replace(".", "-")]
        (exact,) = pin.specifier
        assert asked.specifier.contains(exact.version), line


def test_development_adds_to_runtime_without_changing_it() -> None:
    # Markers may differ (a tool asks for a package on more systems), versions may not.
    runtime, development = (
        {(pin.name, str(pin.specifier)) for pin in pinned(ROOT / "requirements" / f"{name}.txt")}
        for name in ("runtime", "dev")
    )
    assert runtime <= development


def test_wheel_holds_every_file_of_the_package(packed: set[str]) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "chartgen").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "chartgen/py.typed" in ours
    assert ours <= packed


def test_wheel_holds_targets_fragments_launchers_and_presets(packed: set[str]) -> None:
    presets = {path.relative_to(ROOT / "values").as_posix() for path in (ROOT / "values").rglob("*.yaml")}
    assert {f"chartgen/presets/{name}" for name in presets} <= packed
    assert "chartgen/library/targets/gke-a3mega.yaml" in packed
    assert any(re.fullmatch(r"chartgen/library/fragments/[^/]+/fragment\.yaml", name) for name in packed)
    assert any(re.fullmatch(r"chartgen/library/launchers/[^/]+/launcher\.yaml", name) for name in packed)


def test_wheel_holds_nothing_else(packed: set[str]) -> None:
    assert {name.partition("/")[0].partition("-")[0] for name in packed} == {"chartgen"}
    assert not [name for name in packed if name.endswith(".pyc")]


@pytest.mark.parametrize(
    "code",
    ["import chartgen", "from chartgen.cli import main; sys.argv = ['chartgen', '--help']; main()"],
    ids=["import", "help"],
)
def test_light_start(code: str) -> None:
    show = "print(*sys.modules, file=sys.stderr)"
    script = f"import atexit, sys\natexit.register(lambda: {show})\n{code}"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT)
    loaded = set(ran.stderr.split())
    assert "chartgen" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_ci_script_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_no_test_module_imports_another() -> None:
    paths = list((ROOT / "tests").rglob("*.py"))
    tests = {path.stem for path in paths if path.stem.startswith("test_")}
    imported = {
        f"{path.name}: {name}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [])
        + ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
        if name in tests
    }
    assert imported == set()


def test_modules_of_tests_have_names_of_their_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_no_module_hides_what_its_package_exports() -> None:
    """Importing a module sets its name in the package, once, over a function of that name."""
    packages = [path.parent for path in (ROOT / "chartgen").rglob("__init__.py")]
    found = []
    for path in packages:
        name = ".".join(path.relative_to(ROOT).parts)
        package = importlib.import_module(name)
        for exported in getattr(package, "__all__", ()):
            if (path / f"{exported}.py").is_file() or (path / exported / "__init__.py").is_file():
                before = getattr(package, exported)
                importlib.import_module(f"{name}.{exported}")
                if getattr(package, exported) is not before:
                    found.append(f"{name}.{exported}")
    assert found == []
