"""World size, data parallel size and global batch: what the templates calculate is what Python does."""

from __future__ import annotations

import json
import random

import pytest

from chartgen.checks import effective_values, job_of
from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values

DRAWN = 100
NAMES = ("worldSize", "dataParallel", "globalBatch")
EVERY = """sizes:
{{- range .Values.cases }}
{{- $with := dict "Values" . "Release" $.Release "Chart" $.Chart "Files" $.Files }}
{{- include "CHART.figures" $with }}
- [NAMES]
{{- end }}
"""


def drawn(rng: random.Random) -> Values:
    """Sizes that the schema takes, whether they fit one another or not."""
    samples = rng.choice((1, 3, 64, 1000))
    sizes = {name: rng.choice((1, 2, 3, 4, 8)) for name in ("tensor", "pipeline", "context")}
    data = {
        "nodes": rng.randint(1, 40),
        "gpusPerNode": rng.choice((None, 1, 2, 4, 8)),
        "parallelism": sizes,
        "batch": {"global": rng.choice((samples, f"{samples}/gpu")), "micro": rng.choice((1, 2, 4))},
    }
    return load_values(set_json=[json.dumps(data)])


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize("target", ["gke-a3mega", "onprem-p8000"])
def test_templates_and_python_calculate_alike(target: str) -> None:
    chart, rng = compose(load_target(target, open_library())), random.Random(18)  # noqa: S311 - the same for every run
    layers = [drawn(rng) for _ in range(DRAWN)]
    calls = ", ".join(f"{{{{ $with.Run.{name} }}}}" for name in NAMES)
    files = {
        path: text
        for path, text in chart.files.items()
        if path.startswith(("templates/_", "templates/launchers/", "files/"))
    }
    files |= {
        "Chart.yaml": chart.files["Chart.yaml"],
        "templates/every.yaml": EVERY.replace("NAMES", calls).replace("CHART", chart.name),
    }
    cases = {"cases": [effective_values(chart, each) for each in layers]}
    (made,) = objects(render(Chart(chart.name, files), "my-run", "ml", cases))  # type: ignore[arg-type]
    jobs = [job_of(chart, each) for each in layers]
    assert made["sizes"] == [[job.world, job.data_parallel, job.global_batch] for job in jobs if job]
    assert len({tuple(each) for each in made["sizes"]}) > DRAWN / 2
