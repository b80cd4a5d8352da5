"""Names and quantities that YAML, Kubernetes or a path would read as something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from rendered import chart, container, one, rendered, rendered_setup, setup_chart, target

from chartgen.checks import check, effective_values
from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values


def test_a_variable_named_as_a_switch_stays_a_name() -> None:
    found = rendered(json=('env={"NO": "1", "ON": "2", "Y": "3"}',))
    names = [each["name"] for each in container(found)["env"]]
    assert {"NO", "ON", "Y"} <= {*names}
    assert all(isinstance(each, str) for each in names)
    script = one("ConfigMap", found)["data"]["start.sh"]
    assert " NO " in script.partition("release_variables=(")[2].partition(")")[0]


def test_names_of_digits_stay_texts() -> None:
    claims = 'setup.claims={"2025": {"nfs": {"server": "10.0.0.1", "path": "/x"}}}'
    values = load_values(set_values=["queue.name=q"], set_json=[claims])
    found = objects(render(setup_chart("oke-h100"), "setup", "2024", values.data))
    assert one("PersistentVolume", found)["spec"]["claimRef"] == {"namespace": "2024", "name": "2025"}


def test_a_quota_with_an_exponent_counts_whole() -> None:
    found = rendered_setup("nodes=4", json=('setup.quota.resources={"example.com/x": "1e3"}',))
    (group,) = one("ClusterQueue", found)["spec"]["resourceGroups"]
    assert {"name": "example.com/x", "nominalQuota": "4000"} in group["flavors"][0]["resources"]


def test_the_downloads_cache_belongs_to_its_user() -> None:
    sets = ("launcher=download", "storage.data.from=pvc://data", "storage.outputs.from=pvc://o")
    found = rendered(*sets, "launchers.download.models={org/model}", files=(), name="eks-p5")
    (owner,) = one("Job", found)["spec"]["template"]["spec"]["initContainers"]
    assert (owner["name"], "/data/huggingface" in str(owner)) == ("own-folders", True)
    flags = [*sets, "launchers.download.models={o/m}", "launchers.download.cache=/cache/hf"]
    told = check(chart(name="eks-p5"), load_values(set_values=flags))
    assert [each.key for each in told if each.rule == "written-paths-are-mounted"] == ["launchers.download.cache"]


def test_a_run_stays_below_its_folder() -> None:
    with pytest.raises(ChartgenError, match=r"run\.name"):
        rendered("run.name=a/../../x")


def test_a_release_with_a_dot_has_names_without() -> None:
    values = load_values(set_values=["queue.name=q"])
    found = objects(render(chart(), "my.run", "ml", values.data))
    assert one("JobSet", found)["metadata"]["name"].startswith("my-run-gke-a3mega-")


@pytest.mark.parametrize("name", ["8", "1e3", "0x10", "on", "2025-01-01"])
def test_a_machine_type_that_yaml_reads_as_something_else(name: str, tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    text = target("onprem-p8000").path.read_text()
    capacity = '{nvidia.com/gpu: "4", cpu: "8", memory: 1Ti}'
    machine = f'machines:\n  "{name}":\n    gpus: 4\n    gpu: h100-80gb\n    capacity: {capacity}\n'
    (tmp_path / "targets/odd.yaml").write_text(text.replace("machines:\n", machine, 1))
    made = compose(load_target("odd", open_library((tmp_path,))))
    assert effective_values(made, load_values())["machineType"] == name
    found = objects(render(made, "release", "ml", load_values(set_values=["queue.name=q"]).data))
    assert container(found)["resources"]["limits"]["nvidia.com/gpu"] == "4"
