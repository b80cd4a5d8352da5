"""Proves that charts built from this tree render to the same objects as those of another commit.

    python tests/programs/render_equality.py main [--helm helm --helm helm3] [--target gke-a3mega] [--keep FOLDER]

Called by hand after a change to the composer or to templates that must not change what runs. It builds the charts of
every target and workload kind from both trees, renders them with each Helm over presets, launchers and switches, and
compares the objects as data. Only annotations for kube-linter may differ; a run's name holds a digest of all that it
runs, so equal names say the same once more. What a chart refuses is compared by its message.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
VALUES = ROOT / "values"
_IGNORED = "ignore-check.kube-linter.io/"
# What builds all charts of a tree; it runs under the tree's own chartgen.
_BUILD = """
import sys
from pathlib import Path
from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError

folder, library = Path(sys.argv[1]), open_library()
for name in library.names("target"):
    target = load_target(name, library)
    charts = [compose_setup(target)]
    for kind in library.names("workload"):
        try:
            charts.append(compose(target, kind))
        except ChartgenError as error:
            print(f"{name} as {kind}: {error.problems[0].message}")
    for chart in filter(None, charts):
        chart.write(folder / chart.name)
"""
# Values that switch parts of the templates on and off, over a target's first preset.
_SWITCHES = (
    ("profile.enabled=true", "profile.ranks={0,9}"),
    ("network.transportCheck=off",),
    ("network.transportCheck=warn", "nodes=4"),
    ("network.hostNetwork=true",),
    ("network.adapters=0",),
    ("data.stage=true", "data.name=pile", "data.shards=3"),
    ("data.prefixes={a,/data/b}",),
    ("nodes=1",),
    ("nodes=3", "gpusPerNode=4"),
    ("run.deadlineSeconds=3600", "run.maxRestarts=3", "run.ttlSecondsAfterFinished=60", "run.again=x"),
    ("run.maxRestarts=2", "network.transportCheck=off"),
    ("rendezvous.backend=etcd", "run.maxRestarts=1"),
    ("queue.name=", "imagePullPolicy=Always"),
    ("queue.name=lab", "queue.priorityClass=high", "queue.flexStart=true", "run.deadlineSeconds=3600"),
    ("topology.mode=required", "topology.level=cloud.google.com/gce-topology-block", "topology.sliceSize=2"),
    ("serviceAccount=trainer", "imagePullSecrets={a,b}", "env.A=$(B)", "secretEnv.T.secretName=s", "secretEnv.T.key=k"),
    ("podLabels.a=b", "podAnnotations.c=d", "nodeSelector.e=f", "tolerations[0].operator=Exists"),
    ("extraVolumes[0].name=tmp", "extraVolumeMounts[0].name=tmp", "extraVolumeMounts[0].mountPath=/tmp"),
    ("storage.data.from=nfs://10.0.0.1/data", "storage.outputs.from=memory://", "storage.scratch.from=disk://"),
    ("parallelism.tensor=3", "precision=fp8", "steps=0"),
    ("setup.cluster=false", "setup.tensorboard.enabled=true"),
    ("setup.namespace=false", "setup.quota.nodes=5"),
)
# The same with programs that prepare data, which run as a user.
_DATA = (
    ("data.podSecurityContext=null",),
    ("data.podSecurityContext.runAsUser=0", "data.podSecurityContext.supplementalGroups={5,6}"),
    ("data.podSecurityContext.fsGroup=7", "run.deadlineSeconds=9"),
    ("extraVolumes[0].name=tmp", "extraVolumeMounts[0].name=tmp", "extraVolumeMounts[0].mountPath=/tmp"),
    ("launchers.pile-dataprep.nodes=2", "launchers.pile-dataprep.workers=3", "launcher=pile-dataprep"),
)


class Case(NamedTuple):
    """One rendering: a chart, its values files in their order, and flags of `--set`."""

    chart: str
    files: tuple[Path, ...]
    sets: tuple[str, ...]


class Rendered(NamedTuple):
    """What came of it: the objects by kind and name, or what the chart refused."""

    objects: dict[str, Any]
    refusal: str


def main() -> None:
    """Compare, print each difference, and end with exit code 1 if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("commit")
    parser.add_argument("--helm", action="append", help="helm or helm3; both by default")
    parser.add_argument("--target", default="", help="only the charts whose names begin so")
    parser.add_argument("--keep", type=Path, help="folder that keeps the other commit's results for the next time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failed = [
            _compare(Path(folder), options.commit, helm, options.target, options.keep)
            for helm in options.helm or ["helm", "helm3"]
        ]
    sys.exit(any(failed))


def _compare(folder: Path, commit: str, helm: str, only: str, keep: Path | None) -> bool:
    from chartgen.rehearsal import engines

    program = str(engines.require(helm))
    old, new = _charts_of(commit, folder / "old"), _built(ROOT, folder / "new")
    kept = (
        keep / f"{subprocess.check_output(['git', 'rev-parse', commit], text=True).strip()}-{helm}.json"
        if keep
        else None
    )
    known: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.is_file() else {}
    cases = [
        case
        for chart in sorted(path.name for path in old.iterdir())
        if chart.startswith(only)
        for case in _cases(chart)
    ]
    differences: list[str] = []
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(4) as pool:
        before = {case: known.get(str(case)) or pool.submit(_render, program, old, case) for case in cases}
        after = {case: pool.submit(_render, program, new, case) for case in cases}
        for case in cases:
            was = before[case]
            first = Rendered(*was) if isinstance(was, list) else was.result()
            known[str(case)] = list(first)
            second = after[case].result()
            counts["rendered" if first.objects else "refused"] += 1
            counts["objects"] += len(first.objects)
            differences += [f"{_name(case)}: {line}" for line in _differences(first, second)]
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known))
    charts = {path.name for path in old.iterdir()} ^ {path.name for path in new.iterdir()}
    differences += [f"chart {name} is in one of both only" for name in sorted(charts)]
    version = subprocess.check_output([program, "version", "--short"], text=True).strip()
    sys.stdout.write(
        f"Helm {version}: {len(list(old.iterdir()))} charts, {len(cases)} cases, {counts['rendered']} rendered to"
        f" {counts['objects']} objects, {counts['refused']} refused; differences: {len(differences)}\n"
    )
    sys.stdout.writelines(f"  {line}\n" for line in differences[:40])
    return bool(differences)


def _charts_of(commit: str, folder: Path) -> Path:
    if not folder.is_dir():
        tree = folder.with_name("tree")
        tree.mkdir()
        archive = subprocess.run(["git", "archive", commit, "chartgen"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        _built(tree, folder)
    return folder


def _built(tree: Path, folder: Path) -> Path:
    if not folder.is_dir():
        folder.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(
            [sys.executable, "-c", _BUILD, str(folder)],
            env=environment,
            check=True,
            cwd=tree,
            stdout=subprocess.DEVNULL,
        )
    return folder


def _cases(chart: str) -> Iterator[Case]:
    """Return a chart's cases; another kind than the target's own shares all but its object, and gets fewer."""
    from chartgen.composer.library import open_library
    from chartgen.composer.target import load_target

    names = open_library().names("target")
    name = next(each for each in sorted(names, key=len, reverse=True) if f"{chart}-".startswith(f"{each}-"))
    target, setup = load_target(name), chart.endswith("-setup")
    presets = {
        path.stem: _layers(name, path.stem)
        for path in sorted(VALUES.glob("*.yaml"))
        if not path.name.startswith("site.")
    }
    overlaid = sorted(path.stem for path in (VALUES / name).glob("*.yaml"))
    yield Case(chart, (), ())
    for preset, files in presets.items():
        if preset in overlaid or chart == name:
            yield Case(chart, files, ("nodes=8",) if preset not in overlaid else ())
    files = (VALUES / f"site.{name}.example.yaml",)
    for switches in _SWITCHES:
        yield Case(chart, files, ("nodes=2", *switches))
    data = ("data.source=https://example.com/a/", "data.name=a", "data.shards=2", "tokenizer.kind=gpt2", "steps=20")
    writable = ("storage.data.readOnly=false", "storage.data.mountOptions=")
    for launcher in () if setup else target.launchers:
        own = (f"launcher={launcher.name}", f"launchers.{launcher.name}.image=example.com/own:1", *data, *writable)
        yield Case(chart, files, (*own, "optimizer.learningRate=0.1"))
        yield Case(chart, files, (*own[:1], *writable, f"launchers.{launcher.name}.program=/opt/own.sh"))
    for switches in () if setup else _DATA:
        yield Case(chart, files, ("launcher=download", *data, *writable, *switches))


def _layers(target: str, preset: str) -> tuple[Path, ...]:
    wanted = (VALUES / f"{preset}.yaml", VALUES / target / f"{preset}.yaml", VALUES / f"site.{target}.example.yaml")
    return tuple(path for path in wanted if path.is_file())


def _render(helm: str, charts: Path, case: Case) -> Rendered:
    from chartgen.helm.manifests import objects

    files = [word for path in case.files for word in ("--values", str(path))]
    sets = [word for each in case.sets for word in ("--set", each)]
    argv = [helm, "template", "my-run", str(charts / case.chart), "--namespace", "ml", "--kube-version", "1.34.0"]
    ran = subprocess.run([*argv, *files, *sets], capture_output=True, text=True, check=False)
    if ran.returncode:
        return Rendered({}, re.sub(r"templates/[\w./-]+:\d+:\d+", "templates", ran.stderr.replace(str(charts), "")))
    found = objects(ran.stdout)
    for each in found:
        notes = each["metadata"].get("annotations") or {}
        kept = {key: text for key, text in notes.items() if not key.startswith(_IGNORED)}
        each["metadata"].pop("annotations", None)
        if kept:
            each["metadata"]["annotations"] = kept
    named = {f"{each['kind']}/{each['metadata'].get('name')}": each for each in found}
    assert len(named) == len(found)
    return Rendered(json.loads(json.dumps(named)), "")


def _differences(first: Rendered, second: Rendered) -> Iterator[str]:
    if first.refusal != second.refusal:
        yield f"refused {first.refusal!r}, now {second.refusal!r}"
    for name in sorted(first.objects.keys() | second.objects.keys()):
        yield from _unequal(first.objects.get(name), second.objects.get(name), name)


def _unequal(first: Any, second: Any, at: str) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            yield from _unequal(first.get(key), second.get(key), f"{at}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _unequal(one, other, f"{at}[{index}]")
    elif first != second or type(first) is not type(second):
        yield f"{at}: {str(first)[:300]!r}, now {str(second)[:300]!r}"


def _name(case: Case) -> str:
    return " ".join([case.chart, *(path.relative_to(VALUES).as_posix() for path in case.files), *case.sets])


if __name__ == "__main__":
    main()
