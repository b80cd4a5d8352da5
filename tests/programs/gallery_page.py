"""Write docs/reference/gallery and its picture: each preset of a model on each target, as `chartgen check` plans it.

It takes a minute, so that `make gallery` is a target of its own; a test plans a few of its cells again.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from findings_page import grouped

from chartgen.checks import checked
from chartgen.checks.job import Job
from chartgen.checks.outline import layout_sizes
from chartgen.checks.speed import speed_of
from chartgen.composer.assembly import compose_interface
from chartgen.composer.library import open_library
from chartgen.composer.presets import preset_layers, presets, site_example
from chartgen.composer.target import Machine, Target, load_target
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.values import load_values

DOCS = Path(__file__).parents[2] / "docs"
PAGES, PICTURE = DOCS / "reference" / "gallery", DOCS / "images" / "gallery.svg"
LIBRARY = open_library(settings=False)
PRESETS = tuple(presets(LIBRARY))
MODELS = tuple(name for name, file in presets(LIBRARY).items() if "\nmodel:" in file.read_text())
# Page -> its title, and how its targets begin.
CLOUDS = {
    "gke-a3": ("GKE: A3", ("gke-a3",)),
    "gke-a4": ("GKE: A4", ("gke-a4",)),
    "eks": ("EKS", ("eks",)),
    "aks-oke-coreweave": ("AKS, OKE and CoreWeave", ("aks", "oke", "coreweave")),
    "others": ("Crusoe, Nebius and your own servers", ("crusoe", "nebius", "onprem")),
}
_PAGE_OF = {rule.id: page for page, rules in grouped().items() for rule in rules}
_MARK = "<!-- Written by `make gallery`; do not edit. -->\n"
# Findings that more machines do not mend, in the words of a cell.
_REASONS = {
    "image-of-the-gpu": "the image is older than the GPU",
    "image-of-the-processor": "no image for Arm",
    "plugin-and-cuda": "another version of the network plugin",
    "precision-of-the-gpu": "the GPU lacks its format",
    "program-has-an-image": "no public image",
}
_HEAD = """# Presets on targets

Which model runs where, and how: what `chartgen check TARGET --preset PRESET` plans with the target's example of a site
file.

![One copy of each model: squares are GPUs, blocks of them machines, shades pipeline stages](../../images/gallery.svg)

The picture shows one copy of each model where its preset was made for: copies x GPUs of a copy. Each square is a GPU,
each shade a stage of the pipeline; a mixture spreads its experts over several copies.

| page | targets |
|---|---|
"""
_CELLS = """
A cell has the machines and their GPUs, in bold where the preset has settings for this target; after *from*, the fewest
machines that have room for the model, for `--set nodes=`. Then the layout, the
[estimated](../../explanation/prediction.md) seconds of a step, and tokens a second for each GPU, or why they are
unknown. A job that cannot run has the [finding](../findings/README.md) that you would see.

<div class="gallery" markdown>
"""


@cache
def _target(name: str) -> tuple[Target, Chart, Machine]:
    target = load_target(name, LIBRARY)
    return target, compose_interface(target), next(iter(target.machines.values()))


def _is_tuned(preset: str, target: str) -> bool:
    return len(preset_layers(preset, target, LIBRARY)) > 1


@cache
def plan(preset: str, target: str, machines: int = 0) -> Job | Finding:
    """Return the job of a preset on a target, on its own or so many machines, with its layout; or the first error."""
    layers = preset_layers(preset, target, LIBRARY)
    files = [*layers, *filter(None, [site_example(target, LIBRARY)])]
    values = load_values(files, set_values=[f"nodes={machines}"] * (machines > 0))
    findings, decision = checked(_target(target)[1], replace(values, presets=len(layers)))
    errors = [found for found in findings if found.severity == "error"]
    job = decision.job if decision else None
    return errors[0] if errors or not job else job


def cell(preset: str, target: str) -> str:
    """Return a cell of the page."""
    found, start = plan(preset, target), ""
    if isinstance(found, Finding) and (least := re.search(r"at least (\d+) machines", found.problem.hint)):
        found, start = plan(preset, target, int(least[1])), "from "
    if isinstance(found, Finding):
        return f"[{_REASONS.get(found.rule, found.rule)}](../findings/{_PAGE_OF[found.rule]}.md#{found.rule})"
    size = f"{found.nodes} x {found.gpus_per_node}"
    size += f" {_gpu(found.machine)}" * (found.machine.gpu != _target(target)[2].gpu)
    bold = "**" * _is_tuned(preset, target)
    sizes = {name: size for name, size in layout_sizes(found.values, found.world).items() if size > 1}
    layout = [f"{name} {sizes[name]}" for name in ("tensor", "pipeline", "context", "expert", "data") if name in sizes]
    figures = [speed_of(found).reason]
    if known := speed_of(found).estimate:
        tokens = float(f"{known.tokens_per_second_per_gpu.middle:.3g}")
        figures = [f"{known.step_seconds.middle:.3g} s", f"{tokens:,.0f} tokens/s"]
    return f"{start}{bold}{_whole(size)}{bold}<br>{', '.join(map(_whole, layout))}<br>{', '.join(map(_whole, figures))}"


def _whole(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")  # one line of a narrow cell


def _gpu(machine: Machine) -> str:
    return machine.gpu.partition("-")[0].upper()


def pages() -> dict[str, str]:
    """Return the pages, in Markdown: the picture as README, and a table for each cloud."""
    index, found = _HEAD, {}
    for page, (title, starts) in CLOUDS.items():
        names = [name for name in LIBRARY.names("target") if name.startswith(starts)]
        usual = [(name, _target(name)[2]) for name in names]
        heads = [f"`{name}`<br>{_whole(f'{machine.gpus} x {_gpu(machine)}')}" for name, machine in usual]
        rows = [[f"`{preset}`", *(cell(preset, name) for name in names)] for preset in MODELS]
        lines = [f"| {' | '.join(row)} |" for row in (["preset", *heads], ["---"] * (len(names) + 1), *rows)]
        found[page] = "\n".join([f"{_MARK}# Presets on {title}\n{_CELLS}", *lines, "\n</div>\n"])
        index += f"| [{title}]({page}.md) | {', '.join(map('`{}`'.format, names))} |\n"
    others = ", ".join(f"`{name}`" for name in sorted({*PRESETS} - {*MODELS}))
    return {"README": f"{_MARK}{index}\nPresets without a model of their own, for every target: {others}.\n", **found}


_PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 444 {height}" width="444" height="{height}">
<title>Layouts of the presets: copies x GPUs of a copy, each GPU in the shade of its pipeline stage</title>
<style>
  .paper {{ fill: #ffffff }} .gpu {{ fill: #00796b }}
  text {{ font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2933 }}
  @media (prefers-color-scheme: dark) {{ .paper {{ fill: #1e2129 }} .gpu {{ fill: #4db6ac }} text {{ fill: #e6e9ef }} }}
  text.note {{ font-size: 10px; opacity: 0.8 }}
</style>
<rect class="paper" width="444" height="{height}" rx="8"/>
{rows}
</svg>
"""


def picture() -> str:
    """Return the layouts as an SVG file: one copy of each model, on the first target that it has settings for."""
    rows: list[str] = []
    top = 14
    for preset in MODELS:
        names = sorted(LIBRARY.names("target"), key=lambda name: not _is_tuned(preset, name))
        job = next(each for name in names if isinstance(each := plan(preset, name), Job))
        copies = layout_sizes(job.values, job.world)["data"]
        copy, stages = job.world // copies, job.parallel("pipeline")
        note = f"{copies} x {copy} = {job.world} {_gpu(job.machine)}"
        rows += [
            f'<text x="12" y="{top + 10}">{preset}</text>',
            f'<text class="note" x="12" y="{top + 23}">{note}</text>',
        ]
        for at in range(copy):
            machine, slot = divmod(at, job.gpus_per_node)
            x, y = 162 + machine % 4 * (job.gpus_per_node * 8 + 5) + slot * 8, top + 4 + machine // 4 * 12
            shade = 1 - 0.75 * (at * stages // copy) / stages
            rows.append(f'<path class="gpu" opacity="{shade:.2g}" d="M{x} {y}h7v7h-7z"/>')
        top += max(32, 12 + 12 * -(-copy // (4 * job.gpus_per_node)))
    return _PICTURE.format(height=top + 6, rows="\n".join(rows))


if __name__ == "__main__":
    for name, text in pages().items():
        (PAGES / f"{name}.md").write_text(text)
    PICTURE.write_text(picture())
