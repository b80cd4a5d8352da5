"""The pages of docs/reference/findings: every kind of finding, what it means and what to do."""

from __future__ import annotations

from pathlib import Path

from chartgen.composer.rules import builtin_rules
from chartgen.findings import ELLIPSIS, Rule
from chartgen.linter.catalogue import catalogue, rules_of_lint
from chartgen.linter.machines import EACH_TYPE, FABRIC, ONE_MACHINE
from chartgen.linter.placement import LABELS, LEVELS, RESOURCES, TAINTS
from chartgen.linter.rules import level_of

_HEAD = f"""\
# Findings

Every finding is one line: `path:line:column: what is wrong; what to do instead [id]`. An **error** refuses the job
or the chart (exit 1), a **warning** is only shown. **Unchecked** reports a check that chartgen could not make, and
what would make it possible; if nothing at all can be checked, the command exits with 3. On the pages, `{ELLIPSIS}`
replaces numbers and names of your own job.
"""
_LINT = (
    "Level `breaks` is reported of every chart; level `style` is good practice, reported of charts of chartgen, and\n"
    "with `--level style` of all charts."
)
# Page -> title, introduction, and what its findings come from: a section of the catalogue, a module, or the folder of
# a rules.yaml, whose rules for all programs are divided by the values that they are about.
_PAGES: dict[str, tuple[str, str, str]] = {
    "values": (
        "Values files",
        "Unknown keys, what Helm reads otherwise than it is written, and values files of other charts.",
        "Values YAML yaml_pitfalls Jobs handwritten unknown_values secrets",
    ),
    "layout": ("Model, layout and memory", "The model, its batch and its division among GPUs.", "layout memory_fit"),
    "training": (
        "Training, checkpoints and data",
        "Steps, checkpoints, evaluation, metrics and data.",
        "common training",
    ),
    "machines": ("Machines and pods", "What a machine has, and what a pod asks of it.", "machine inputs pod_parts"),
    "cluster": (
        "Network, storage, queue and kinds of jobs",
        "What the fragments of a target and its kinds of jobs need.",
        "efa gpudirect infiniband kueue rdma-claims rdma-gib roce-oke storage job mpi rayjob",
    ),
    "versions": (
        "Images, versions and options",
        "What a version of an image, a plugin or a program has.",
        "compatibility known_options program_settings charts",
    ),
    "megatron": (
        "Megatron, NeMo and MLPerf",
        "Settings of these launchers, and of those that prepare their data or test the network.",
        (
            "megatron-bridge megatron-lm megatron-preprocess nemo-1 mlperf-llama2-lora mlperf-preprocess nccl-test"
            " download"
        ),
    ),
    "programs": ("Other programs", "Settings of the other launchers.", "automodel torchtitan nemo-rl torchrun"),
    "charts": ("Charts", f"What `chartgen lint` finds in a chart as a whole.\n{_LINT}", "Charts"),
    "objects": (
        "Rendered objects",
        f"What `chartgen lint` finds in one object that a chart renders.\n{_LINT}",
        "structure names scripts size api_schemas dumps references",
    ),
    "placement": (
        "Security, wiring and placement",
        f"What `chartgen lint` finds in privileges, between objects, and between pods and machines.\n{_LINT}",
        "wiring policy placement",
    ),
}
_LAYOUT = {*["batch", "gpusPerNode", "model", "nodes", "parallelism", "precision", "recompute", "sequenceLength"]}
_PLACEMENT = {rule.id for rule in (EACH_TYPE, FABRIC, ONE_MACHINE, LABELS, LEVELS, RESOURCES, TAINTS)}


def findings_pages() -> dict[str, str]:
    """Return the pages in Markdown: the index as README, and one for each group."""
    of_lint = {rule.id for rule in rules_of_lint()}
    index, pages = _HEAD, {}
    for page, rules in grouped().items():
        title, text, _ = _PAGES[page]
        index += f"\n## [{title}]({page}.md)\n\n{text.partition(chr(10) + 'Level')[0]}\n\n"
        index += ",\n".join(f"[`{rule.id}`]({page}.md#{rule.id})" for rule in rules) + "\n"
        entries = (_entry(rule, of_lint=rule.id in of_lint) for rule in rules)
        pages[page] = f"# Findings: {title}\n\n{text}\n{''.join(entries)}"
    return {"README": index, **pages}


def grouped() -> dict[str, list[Rule]]:
    """Return the findings of each page, by id."""
    origins: dict[str, str] = {}
    for each in builtin_rules():
        folder = Path(each.document.path).parent.name
        about_layout = folder == "common" and each.key.partition(".")[0] in _LAYOUT
        origins.setdefault(each.id, "layout" if about_layout else folder)
    origins |= dict.fromkeys(_PLACEMENT, "placement") | {"layout-fits": "layout"}
    page_of = {origin: page for page, (_, _, names) in _PAGES.items() for origin in names.split()}
    found: dict[str, list[Rule]] = {page: [] for page in _PAGES}
    for section, rules in catalogue().items():
        for rule in rules:
            module = rule.function.__module__.rpartition(".")[2]
            origin = origins.get(rule.id, section if module == "builtins" else module)
            found[page_of[origin]].append(rule)
    return {page: sorted(rules, key=lambda rule: rule.id) for page, rules in found.items()}


def _entry(rule: Rule, *, of_lint: bool) -> str:
    source = f"- Source: {rule.source}\n" if rule.source else ""
    level = f"- Level: {level_of(rule.id)}\n" if of_lint else ""
    facts = f"- Severity: {rule.severity}\n{level}- What to do: {rule.remedy}\n{source}"
    return f"\n## {rule.id}\n\n{rule.meaning}\n\n{facts}"
