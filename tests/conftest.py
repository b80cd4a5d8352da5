"""What several test files share: one real control plane with all controllers for the whole session."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from chartgen.programs import cache_dir
from chartgen.rehearsal import engine_build, engines
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.foreign import foreign_drivers

# Folders whose tests wait most for clusters: first, so that no worker is left alone with them in the end.
LONG = ("cluster", "docs", "hostile", "charts")
CONTROLLERS = (
    "cloud-kinds",
    "cloud-storage",
    "devices",
    "jobset",
    "kueue",
    "volcano",
    "training-operator",
    "mpi-operator",
    "trainer",
    "kuberay",
)


# The same inputs on each machine, however slow; `make fuzz` looks for others.
settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


class Failures:
    """Says at once which test has failed, and why: a run that is ended before its last test prints no summary."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write(
                f"\nFAILED {report.nodeid} ({report.when})\n{report.longreprtext[-2000:]}\n", flush=True
            )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the tests' processes as a developer's shell would, and tell failures as they come.

    A shell that runs CI in the background ignores Ctrl-C, and what ignores it hands that on. Programs of the
    development tools, such as shellcheck, stand beside the interpreter.
    """
    if terminal := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(Failures(terminal))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what it needs, by its fixtures and its folder, so that `-m` can leave it out."""
    items.sort(key=lambda item: next((at for at, name in enumerate(LONG) if name in item.path.parts), len(LONG)))
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & {"plane", "built_engines"} or "cluster" in item.path.parts:
            item.add_marker("engines")
        elif "built_helm" in fixtures or "charts" in item.path.parts:
            item.add_marker("helm")


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders of control planes apart from those of other workers and of the developer, where `sweep` looks."""
    folder = tmp_path_factory.mktemp("tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)  # read anew
        yield folder


@pytest.fixture(scope="module", autouse=True)
def same_environment(own_folders: Path) -> Iterator[None]:  # noqa: ARG001 it sets a variable for the session
    """No file of tests leaves a variable behind, which tests of other files would then see on the same worker."""
    before = {**os.environ, "PYTEST_CURRENT_TEST": ""}
    yield
    assert {**os.environ, "PYTEST_CURRENT_TEST": ""} == before


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, such as for the state of sandboxes, with the engines of the real one."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "engines").symlink_to(cache_dir() / "engines")
    monkeypatch.setenv("CHARTGEN_CACHE", str(cache))
    return cache


@pytest.fixture(scope="session")
def built_helm() -> None:
    """Helm alone, built when it is missing: for tests that need no control plane."""
    engine_build.build_engines(["helm"])


@pytest.fixture(scope="session")
def built_engines() -> None:
    """All engines, built when they are missing."""
    engine_build.build_engines(engines.engine_table())


@pytest.fixture(scope="session")
def plane(built_engines: None) -> Iterator[ControlPlane]:  # noqa: ARG001
    """A control plane with all controllers, without machines and queues; tests use their own namespaces and names."""
    with ControlPlane() as running:
        start_controllers(running, CONTROLLERS)
        # as the clouds install them; no other test looks at them
        drivers = [{"csi": {"driver": name}} for name in ("gcsfuse.csi.storage.gke.io", "fsx.csi.aws.com")]
        running.cluster.apply(foreign_drivers([{"kind": "Pod", "volumes": drivers}]).values())
        yield running
