"""The ledger: each chart's pod against the vendor's newest reference manifest, item by item.

`tests/data/upstream/<target>.yaml` names the manifest with its commit, and lists every item of it and of our render:

    NCCL_BUFFSIZE: {both: "8388608"}
    NCCL_DEBUG: {theirs: INFO, ours: WARN, why: the log of a run is read by people}
    GLOO_SOCKET_IFNAME: {ours: eth0, why: Gloo takes any interface by itself}

What differs without a reason fails, in either direction, and so does an entry that is not true any more; the failure
says the lines as they should be. A target has a ledger for each reference, such as `<target>.training.yaml` for the
vendor's newest training recipe; with `like` it contains what differs from another ledger. With the vendors'
repositories at hand (CHARTGEN_UPSTREAM, a folder of bare mirrors named OWNER+NAME/repo), the vendor's side is read from
them too.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import profiles
import pytest
from pairs import TARGETS
from rendered import Objects, rendered
from upstream import Items, exported, exported_by, items_of

from chartgen.composer.target import load_target
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.yaml import load, load_file, require_map
from chartgen.kube.manifest_walk import containers, pods

LEDGERS = sorted(path.stem for path in profiles.UPSTREAM.glob("*.yaml") if path.stem not in ("common", "profiles"))
MIRRORS = os.environ.get("CHARTGEN_UPSTREAM", "")


def ledger(name: str) -> dict[str, Any]:
    return dict(require_map(load_file(profiles.UPSTREAM / f"{name}.yaml"), "a ledger"))


def books(name: str) -> list[dict[str, Any]]:
    """The ledgers that a ledger consists of, from what all charts have to its own."""
    book = ledger(name)
    return [*([] if name == "common" else books(book.get("like", "common"))), book]


def rows(name: str) -> dict[tuple[str, str], dict[str, str]]:
    """Every line of a ledger by section and name, after those of all charts and of the ledger that it is like."""
    found = {
        (section, item): line
        for book in books(name)
        for section, lines in book["items"].items()
        for item, line in lines.items()
    }
    # null = not of this chart, unlike the one that it is like
    return {key: line for key, line in found.items() if line}


def flat(items: Items) -> dict[tuple[str, str], str]:
    return {(section, name): text for section, lines in items.items() for name, text in lines.items()}


def ours(name: str) -> dict[tuple[str, str], str]:
    """What our chart renders. What is called after the run is called RUN."""
    how = next(book["render"] for book in reversed(books(name)) if "render" in book)
    found = rendered(*how["set"], files=(), name=name.partition(".")[0])
    template = pod_template(found)
    items = items_of(template, how["containers"])
    items["program"] |= numa(item["data"].get("rank.sh", "") for item in found if item["kind"] == "ConfigMap")
    # NCCL reads the file as it reads variables
    files = [item["data"]["nccl.conf"] for item in found if "nccl.conf" in item.get("data", {})]
    for line in "".join(files).splitlines():
        items["program env"].setdefault(*line.split("=", 1))
    run = template["metadata"]["labels"]["run"]
    called = re.compile(rf"{run}|{run.rpartition('-')[2]}|[0-9a-f]{{64}}")
    return {key: called.sub("RUN", text) for key, text in flat(items).items()}


def numa(scripts: Iterable[str]) -> dict[str, str]:
    """Which NUMA node the scripts start a process at, in GPUs for each node."""
    nodes = re.findall(r"(?:cpunodebind=\\?\$|system/node/node\$)\(\(LOCAL_RANK ?/ ?(\d)\)\)", "".join(scripts))
    return {"GPUs of a NUMA node": nodes[0]} if nodes else {}


def pod_template(found: Objects) -> dict[str, Any]:
    """The pod of the machines, in whatever holds it."""

    def templates(value: Any) -> Any:
        if isinstance(value, dict):
            if "template" in value and "containers" in value["template"].get("spec", {}):
                yield value["template"]
            for each in value.values():
                yield from templates(each)
        elif isinstance(value, list):
            for each in value:
                yield from templates(each)

    return next(
        template
        for template in templates(found)
        if any("nvidia.com/gpu" in str(each.get("resources")) for each in template["spec"]["containers"])
    )


@pytest.mark.parametrize("name", LEDGERS)
def test_every_item_of_our_render_is_in_the_ledger_and_true(name: str) -> None:
    told = {key: line.get("both", line.get("ours")) for key, line in rows(name).items()}
    told = {key: text for key, text in told.items() if text is not None}
    seen = ours(name)
    wrong = [
        f"{section}: {item}: " + (f"ours: {seen[section, item]}" if (section, item) in seen else "is not rendered")
        for section, item in sorted(seen.keys() | told.keys())
        if seen.get((section, item)) != told.get((section, item))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", LEDGERS)
def test_every_difference_has_a_reason(name: str) -> None:
    for key, line in rows(name).items():
        if "both" in line:
            assert line.keys() == {"both"}, key
        else:
            assert line.keys() <= {"theirs", "ours", "why"}, key
            assert line.keys() & {"theirs", "ours"}, key
            assert line.get("theirs") != line.get("ours"), f"{key}: the same; write both"
            assert len(line.get("why", "").split()) > 2, f"{key}: differs without a reason"


@pytest.mark.parametrize("name", LEDGERS)
def test_what_the_vendors_profile_sets_is_in_the_ledger(name: str) -> None:
    book = ledger(name)
    for profile in book["reference"].get("profiles", ()):
        library = book["reference"].get("library", "")
        for variable, value in profiles.sets(profile).items():
            line = rows(name)["program env", variable]
            told = line.get("both", line.get("theirs"))
            assert told == value.replace("${NCCL_LIB_DIR}", library), (variable, line)


@pytest.mark.parametrize("name", LEDGERS)
def test_the_reference_is_named_with_its_commit(name: str) -> None:
    for source in ledger(name)["reference"]["manifests"]:
        assert "/" in source["repository"]
        assert len(source["commit"]) >= 7
        assert source["paths"]


# Folders of the machine that the vendor mounts too, but not read-only.
GIB = ("/usr/local/gib", "/usr/local/nvidia")
# What pods have beyond the vendor's manifest, each with its reason in the ledger. Nothing else may be.
BEYOND = {
    ("gke-a3mega", "program", "capabilities"),
    ("gke-a3mega", "daemon mounts", "/usr/local/nvidia"),
    ("gke-a3mega", "program mounts", "/scratch"),
    ("gke-a3high", "daemon mounts", "/usr/local/nvidia"),
    ("gke-a3high", "program mounts", "/scratch"),
    *((name, "program mounts", path) for name in ("gke-a3ultra", "gke-a4") for path in ("/scratch", *GIB)),
    *(("gke-a4x", "program mounts", path) for path in GIB),
    ("crusoe", "program mounts", "/opt/nccl_topo"),
}


# What a container may do where its manifest names nothing (containerd v2.1.4, pkg/oci/spec.go, defaultUnixCaps).
DEFAULTS = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}


def capabilities(book: dict[tuple[str, str], dict[str, str]], section: str, side: str) -> set[str]:
    """What a container of the vendor's (`theirs`) or of ours may do: what it adds to what it does not drop."""
    lines = [book.get((section, name), {}) for name in ("capabilities", "capabilities dropped")]
    added, dropped = [set(line.get("both", line.get(side, "")).split()) - {"none"} for line in lines]
    return added | (set() if "ALL" in dropped else DEFAULTS - dropped)


@pytest.mark.parametrize("name", TARGETS)
def test_pods_may_do_nothing_that_the_vendors_may_not(name: str) -> None:
    beyond = set()
    for (section, item), line in rows(name).items():
        mine, allowed = line.get("ours", ""), line.get("theirs", "")
        switch = item in {"hostNetwork", "hostIPC", "hostPID", "privileged"} and mine == "true"
        capability = item == "capabilities" and not (
            capabilities(rows(name), section, "ours") <= capabilities(rows(name), section, "theirs")
        )
        folder = section.endswith("mounts") and mine.startswith("hostPath") and mine != allowed
        if switch or capability or folder:
            beyond.add((name, section, item))
    assert beyond == {row for row in BEYOND if row[0] == name}


@pytest.mark.skipif(not MIRRORS, reason="CHARTGEN_UPSTREAM names no folder with mirrors of the vendors' repositories")
@pytest.mark.parametrize("name", LEDGERS)
def test_the_vendors_side_is_what_its_manifest_holds(name: str) -> None:
    reference = ledger(name)["reference"]
    for repository in {source["repository"] for source in reference["manifests"]}:
        if not mirror(repository).is_dir():
            pytest.skip(f"CHARTGEN_UPSTREAM has no {repository}")
    told = {key: line.get("both", line.get("theirs")) for key, line in rows(name).items()}
    told = {key: text for key, text in told.items() if text is not None}
    assert told == theirs(reference)


# a time and an identifier that a vendor's chart makes anew with each render
CHANGING = re.compile(r"\d{4}(-\d\d){5}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|^run-\w{8}$")


def theirs(reference: dict[str, Any]) -> dict[tuple[str, str], str]:
    """What the vendor's manifests hold: the pod of the first, and the variables that scripts and profiles set."""
    texts = [
        git_show(source["repository"], source["commit"], path)
        for source in reference["manifests"]
        for path in source["paths"]
    ]
    # of a key that is there twice Kubernetes takes the last
    parts = re.split(r"^---$", texts[0], flags=re.MULTILINE)
    documents: Any = [each for each in (load(part, "theirs", allow_duplicates=True).data for part in parts) if each]
    ranks: dict[str, str] = {}
    if folder := reference["manifests"][0].get("chart"):
        documents = rendered_chart(reference["manifests"][0], folder)
        # mpirun hands to every rank what its launcher has
        launchers = [each for thing in documents for pod in pods(thing) for each in containers(pod)]
        entries = [entry for each in launchers for entry in each.spec.get("env", ())]
        ranks = {entry["name"]: str(entry["value"]) for entry in entries if "value" in entry}
    alone = [document for document in documents if document["kind"] == "Pod"]
    pod = alone[0] if alone else pod_template(documents)
    items = items_of(pod, reference["containers"])
    library = reference.get("library", "")
    profile = {key: text for each in reference.get("profiles", ()) for key, text in profiles.sets(each).items()}
    set_by_scripts = (
        ranks | exported(texts) | {key: text.replace("${NCCL_LIB_DIR}", library) for key, text in profile.items()}
    )
    scripts = [
        git_show(source["repository"], source["commit"], path)
        for source in reference["manifests"]
        for path in source.get("scripts", ())
    ]
    set_by_scripts |= exported_by(scripts)
    items["program env"] = items.get("program env", {}) | set_by_scripts
    items["program"] |= numa(scripts)
    return {key: CHANGING.sub("RANDOM", text) for key, text in flat(items).items()}


def rendered_chart(source: dict[str, Any], folder: str) -> Objects:
    """What a vendor's own chart renders to with its defaults."""
    with TemporaryDirectory() as place:
        command = ["git", f"--git-dir={mirror(source['repository'])}", "archive", source["commit"], folder]
        archive = subprocess.run(command, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
        return objects(render(Chart.read(Path(place) / folder), "run", "ml", {}))


def mirror(repository: str) -> Path:
    return Path(MIRRORS) / repository.replace("/", "+") / "repo"


def git_show(repository: str, commit: str, path: str) -> str:
    command = ["git", f"--git-dir={mirror(repository)}", "show", f"{commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# a commit, a version, the number of an issue, or the month for which a page was checked
VERSIONED = re.compile(r"@ [0-9a-f]{7}|\bv?\d+\.\d+|(pull request|issue) \d+|state of \d{4}-\d\d|^(tests|design)")


@pytest.mark.parametrize("name", TARGETS)
def test_each_source_has_a_version(name: str) -> None:
    target = load_target(name)
    sources = [*target.sources, *(source for fragment in target.fragments for source in fragment.sources)]
    assert [source for source in sources if not VERSIONED.search(source)] == []
