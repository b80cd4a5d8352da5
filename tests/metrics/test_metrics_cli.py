"""`chartgen metrics` as a command: what it prints and writes, and one clear line for each kind of bad input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import trainlogs as logs
from answers import answer
from click.testing import CliRunner, Result

from chartgen import __version__
from chartgen.cli import main
from chartgen.metrics.figures.peak import gpu_name
from chartgen.metrics.read.log import read_logs
from chartgen.metrics.report_data import Wanted, read_out
from chartgen.metrics.show.live import live_progress
from chartgen.metrics.show.panels import Panel, panels
from chartgen.metrics.show.svg import Scale, StepAxis
from chartgen.metrics.show.text import amount

ROOT = Path(__file__).resolve().parents[2]
RUN = logs.steps([20.0, 12.0, *[7.125, 7.25] * 14])
MODEL = ["--model", "llama2-70b", "--sequence", "4096", "--gpus", "128", "--gpu", "h100", "--precision", "bf16"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.log").write_text(logs.megatron(RUN))
    return tmp_path


def metrics(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(main, ["metrics", *arguments], input=stdin)
    if "json" in arguments and result.stdout:
        answer(result.stdout)
    return result


@pytest.mark.usefixtures("folder")
def test_the_figures_of_a_run() -> None:
    result = metrics("run.log", *MODEL, "--machines", "16", "--price", "90")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = [line for line in result.stdout.splitlines() if line[:1] != " "]
    assert lines == [
        "log         run.log: Megatron-LM, 30 steps, 1 to 30 of 100",
        "window      steps 7 to 30; the first 6 are left out as warm-up",
        "step time   7.1875 s mean, 7.1875 s median; p5 7.125 s, p95 7.25 s, p99 7.25 s",
        "speed       145,889 tokens/s, 1,139.8 tokens/s/GPU",
        "TFLOPS/GPU  506.6 full attention, 488.3 causal attention",
        "MFU         51.2 % of 989 TFLOPS, bf16 peak of h100-80gb, full attention",
        "loss        8.4000 to 6.1000, lowest 6.1000, -1 in 10 steps",
        "gradient    norm 1.797 median, 1.797 at most",
        "learning    rate 0.00015",
        "goodput     92.4 %: 30 steps that count, in 3 min 53 s",
        "first step  done after 20 s",
        "left        70 of 100 steps: the log ends at step 30; 8 min 23 s at this speed",
        "cost        93.30 for the wall time, 2,741.81 for a billion tokens; 16 machines at 90 an hour",
    ]


@pytest.mark.usefixtures("folder")
def test_json_has_all_of_it_in_full_precision() -> None:
    data = json.loads(metrics("run.log", *MODEL, "--output", "json").stdout)
    assert data["schema"] == "chartgen/metrics/v1"
    assert data["stepSeconds"]["mean"] == 7.1875
    assert data["tokensPerSecondPerGpu"] == 256 * 4096 / 7.1875 / 128
    assert data["facts"]["batch"] == 256
    assert data["window"] == {"first": 7, "last": 30, "lines": 24, "warmUp": 6}
    assert (data["cost"], data["baseline"], data["notices"]) == (None, None, [])


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    "change",
    [
        {"facts": None},
        {"notices": [7]},
        {"tokensPerSecondPerGpu": "x"},
        {"tokensPerSecondPerGpu": math.nan},
    ],
    ids=str,
)
def test_a_baseline_that_is_no_output_of_metrics_is_one_line(change: dict[str, object], folder: Path) -> None:
    data = json.loads(metrics("run.log", *MODEL, "--output", "json").stdout)
    (folder / "odd.json").write_text(json.dumps({**data, **change}))
    ran = metrics("run.log", *MODEL, "--baseline", "odd.json", "--fail-below", "5")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    assert "odd.json" in ran.stderr


def test_json_stays_json_with_numbers_that_are_none(folder: Path) -> None:
    (folder / "run.log").write_text(logs.megatron(RUN).replace("lm loss: 8.0", "lm loss: nan |x: 8.0"))
    data = json.loads(metrics("run.log", "--output", "json").stdout)
    assert data["notNumbers"] == {"loss": [11]}


def test_csv_has_every_step_as_the_log_has_it(folder: Path) -> None:
    (folder / "run.log").write_text(logs.megatron(RUN).replace("lm loss: 8.000000E+00", "lm loss: inf"))
    rows = list(csv.DictReader(io.StringIO(metrics("run.log", "--output", "csv").stdout)))
    assert [int(row["step"]) for row in rows] == list(range(1, 31))
    assert rows[0] == {
        "step": "1",
        "time": "1770000020",
        "start": "1",
        "batch": "256",
        "gradient": "1.797",
        "loss": "9",
        "nans": "0",
        "rate": "0.00015",
        "samples": "256",
        "seconds": "20",
        "skipped": "0",
    }
    assert rows[10]["loss"] == "inf"


@pytest.mark.usefixtures("folder")
def test_the_standard_input() -> None:
    result = metrics("-", "--window", "all", stdin=logs.megatron(RUN).encode())
    assert result.stdout.splitlines()[0] == "log         -: Megatron-LM, 30 steps, 1 to 30 of 100"


def test_one_run_of_a_log_of_two(folder: Path) -> None:
    first, second = (logs.megatron_arguments(num_layers=layers) for layers in (80, 32))
    (folder / "two.log").write_text(
        first + logs.megatron(RUN[:20]) + second + logs.megatron(RUN, begin=logs.BEGIN + 900)
    )
    for option, steps in ((["--run", "1"], 20), (["--run", "2"], 30), ([], 30)):
        assert json.loads(metrics("two.log", *option, "--output", "json").stdout)["steps"]["logged"] == steps
    (folder / "before.log").write_text(logs.megatron(RUN))
    assert metrics("two.log", "--run", "2", "--baseline", "before.log").exit_code == 0


@pytest.fixture
def two_runs(folder: Path) -> None:
    for name, layers, begin, times in (("a", 80, 0, [7.0] * 20), ("b", 32, 900, [2.0] * 30)):
        text = logs.megatron_arguments(num_layers=layers) + logs.megatron(logs.steps(times), begin=logs.BEGIN + begin)
        (folder / "runs").mkdir(exist_ok=True)
        (folder / "runs" / f"{name}.log").write_text(text)


@pytest.mark.usefixtures("two_runs")
def test_a_folder_with_several_runs_is_a_table_that_names_the_file_of_each() -> None:
    shown = metrics("runs").stdout.splitlines()
    assert [line.split()[:3] for line in shown[1:3]] == [["1", "a.log", "Megatron-LM"], ["2", "b.log", "Megatron-LM"]]
    assert {"GPUs", "tokens/s", "MFU", "loss", "end"} <= set(shown[0].split())
    assert "1-20" in shown[1]
    for number, file in (("1", "a.log"), ("2", "b.log")):
        found = json.loads(metrics("runs", "--run", number, "--output", "json").stdout)
        assert [Path(each).name for each in found["logs"]] == [file]


@pytest.mark.usefixtures("two_runs")
def test_files_of_one_name_keep_their_folders_in_the_table() -> None:
    for name in ("a", "b"):
        Path("runs", name).mkdir()
        Path("runs", f"{name}.log").rename(Path("runs", name, "train.log"))
    assert [line.split()[1] for line in metrics("runs").stdout.splitlines()[1:3]] == ["a/train.log", "b/train.log"]


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize("form", ["tar", "gztar", "zip"])
def test_an_archive_is_read_as_its_folder(form: str) -> None:
    Path("runs", "a.log.gz").write_bytes(gzip.compress(Path("runs", "a.log").read_bytes()))
    Path("runs", "a.log").unlink()
    Path("runs", "._b.log").write_bytes(b"\0" * 100)  # macOS adds one beside each file
    Path("runs", "n" * 150).mkdir()  # longer than the field of a header
    Path("runs", "b.log").rename(Path("runs", "n" * 150, "b.log"))
    archive = shutil.make_archive("packed", form, "runs")
    shown = metrics(Path(archive).name).stdout.splitlines()
    assert [re.split(r"[/:]", line.split()[1])[-1] for line in shown[1:3]] == ["a.log.gz", "b.log"]
    assert [line.split()[2:] for line in shown[1:3]] == [
        line.split()[2:] for line in metrics("runs").stdout.splitlines()[1:3]
    ]
    found = json.loads(metrics(Path(archive).name, "--run", "2", "--output", "json").stdout)
    assert (found["steps"]["logged"], Path(found["logs"][0]).name) == (30, "b.log")


def test_runs_of_a_folder_without_times_are_several_if_their_configurations_differ(folder: Path) -> None:
    (folder / "runs").mkdir()
    for name, size, seconds in (("a", 256, 7.0), ("b", 512, 9.0), ("c", 512, 9.1)):
        lines = logs.megatron(logs.steps([seconds] * 20), batch=size).splitlines(keepends=True)
        untimed = "".join(re.sub(r"\[\d{4}-[^]]*\] ?", "", line) for line in lines)
        text = logs.megatron_arguments(num_layers=80, global_batch_size=size) + untimed
        (folder / "runs" / f"{name}.log").write_text(text)
    shown = metrics("runs").stdout.splitlines()
    # of two logs with one configuration, one is another rank's
    assert [line.split()[0] for line in shown[1:3]] == ["1", "2"]
    assert shown[3] == ""


def test_a_baseline_is_drawn_over_the_run_in_picture_and_report(folder: Path) -> None:
    for name, times in (("before.log", [7.0] * 30), ("older.log", [9.0] * 40)):
        (folder / name).write_text(logs.megatron(logs.steps(times)))
    drawn = ("--plot", "run.svg", "--report", "run.html", "--output", "json")
    assert metrics("run.log", *MODEL, *drawn).exit_code == 0
    alone = (folder / "run.svg").read_text()
    both = ("--baseline", str(folder / "before.log"), "--baseline", "older.log")
    assert metrics("run.log", *MODEL, *both, *drawn).exit_code == 0
    picture, page = (folder / "run.svg").read_text(), (folder / "run.html").read_text()
    assert 'class="other' not in alone
    for text in (picture, page):
        assert text.count('class="other o1"') == text.count('class="other o2"') > 1  # in each panel
        assert "before.log" in text
        assert "older.log" in text
        assert "% below before.log" in text
    assert str(folder) not in picture  # which would be cut at its edge


def test_a_run_of_the_same_log_is_a_baseline(folder: Path) -> None:
    first, second = (logs.megatron_arguments(num_layers=80, global_batch_size=size) for size in (256, 512))
    later = logs.megatron(logs.steps([10.0] * 30), batch=512, begin=logs.BEGIN + 900)
    (folder / "two.log").write_text(first + logs.megatron(RUN[:20]) + second + later)
    result = metrics("two.log", *MODEL, "--baseline", "run:1")
    assert result.exit_code == 0
    assert "above run:1 (1,1" in result.stdout
    assert metrics("two.log", *MODEL, "--baseline", "run:9").exit_code == 2


@pytest.mark.usefixtures("folder")
def test_the_price_of_a_gpu_is_that_of_its_machine() -> None:
    machine = metrics("run.log", *MODEL, "--machines", "16", "--price", "80").stdout
    shown = metrics("run.log", *MODEL, "--machines", "16", "--gpu-price", "10", "--currency", "EUR").stdout
    assert "80 EUR an hour" in shown
    cost = r"cost +([\d.,]+)"
    assert re.search(cost, machine)[1] == re.search(cost, shown)[1]  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.13913, "0.1391"), (1140.2, "1,140"), (24712, "24.7 k"), (145889, "146 k"), (3.2e6, "3.2 M")]
)
def test_speeds_are_in_units_that_people_use(value: float, shown: str) -> None:
    assert amount(value) == shown


@pytest.mark.usefixtures("folder")
def test_prometheus_text() -> None:
    lines = metrics("run.log", *MODEL, "--prometheus").stdout.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r'chartgen_[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [-+.e\d]+', line) for line in samples)
    assert "chartgen_step 30.0" in samples
    assert 'chartgen_step_seconds{quantile="0.5"} 7.1875' in samples
    assert 'chartgen_not_numbers{value="loss"} 0.0' in samples
    for name in {re.split(r"[ {]", line)[0] for line in samples}:
        assert f"# TYPE {name} gauge" in lines
        assert sum(line.startswith(f"# HELP {name} ") for line in lines) == 1


def test_an_earlier_run_as_baseline(folder: Path) -> None:
    (folder / "before.log").write_text(logs.megatron(logs.steps([7.0] * 30)))
    (folder / "before.json").write_text(metrics("before.log", *MODEL, "--output", "json").stdout)
    expected = "baseline    1,140 tokens/s/GPU are 2.6 % below before"
    for name in ("before.log", "before.json"):
        result = metrics("run.log", *MODEL, "--baseline", name)
        assert result.stdout.splitlines()[-1] == f"{expected}{name[6:]} (1,170)"
        assert metrics("run.log", *MODEL, "--baseline", name, "--fail-below", "2.5").exit_code == 1
        assert metrics("run.log", *MODEL, "--baseline", name, "--fail-below", "3").exit_code == 0
    bare = metrics("run.log", "--baseline", "before.log")
    last = bare.stdout.splitlines()[-2:]
    assert last[0] == "baseline    0.1391 steps/s are 2.6 % below before.log (0.1429)"
    assert "GPUs" in last[1]


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ({"num_layers": 32}, "layers 80, there 32"),
        ({"num_layers": 80, "padded_vocab_size": 128256}, "vocabulary 32000, there 128256"),
    ],
)
def test_another_model_is_no_baseline(theirs: dict[str, int], named: str, folder: Path) -> None:
    before = logs.megatron_arguments(**theirs) + logs.megatron(logs.steps([2.0] * 30))
    (folder / "before.log").write_text(before)
    result = metrics("run.log", *MODEL, "--baseline", "before.log")
    assert result.exit_code == 1
    assert named in result.stderr


def test_a_baseline_of_another_batch_or_machine_is_named_and_decides_nothing(folder: Path) -> None:
    (folder / "before.log").write_text(logs.megatron(logs.steps([15.0] * 30), batch=512))
    result = metrics("run.log", *MODEL, "--baseline", "before.log")
    assert result.exit_code == 0
    assert "            global batch: 256, there 512" in result.stdout.splitlines()
    refused = metrics("run.log", *MODEL, "--baseline", "before.log", "--fail-below", "50")
    assert refused.exit_code == 1
    assert "global batch: 256, there 512" in refused.stderr
    bare = metrics("run.log", "--baseline", "before.log")
    assert bare.exit_code == 1
    assert "global batch: 256, there 512" in bare.stderr
    (folder / "h200.json").write_text(metrics("run.log", *MODEL[:-2], "--gpu", "h200", "--output", "json").stdout)
    other = metrics("run.log", *MODEL, "--baseline", "h200.json")
    assert "            GPU: h100-80gb, there h200-141gb" in other.stdout.splitlines()


@pytest.mark.parametrize("name", ["H100", "NVIDIA H100", "h100_80GB"])
def test_gpus_are_known_in_any_spelling(name: str) -> None:
    assert gpu_name(name) == "h100-80gb"


def test_a_published_figure_as_baseline(folder: Path) -> None:
    (folder / "gpt3.log").write_text(logs.megatron(logs.steps([5.6] * 30)))
    facts = ["--model", "gpt3-175b", "--sequence", "2048", "--gpus", "128", "--gpu", "h100", "--precision", "fp8"]
    result = metrics("gpt3.log", *facts, "--baseline", "published:gpt3-175b")
    assert result.stdout.splitlines()[-1] == (
        "baseline    787.3 TFLOPS/GPU are 1.8 % below NVIDIA's 24.07 figure (802 TFLOPS/GPU, full attention), "
        "same convention"
    )
    other = metrics("gpt3.log", *facts[:-1], "bf16", "--gpus", "256", "--baseline", "published:gpt3-175b")
    assert other.stdout.splitlines()[-2:] == [
        "            precision: bf16, there fp8",
        "            GPUs: 256, there 512",
    ]


@pytest.mark.usefixtures("folder")
def test_values_tell_the_model_and_a_target_the_machines() -> None:
    result = metrics(
        "run.log", "--target", "oke-h100", "-f", str(ROOT / "values" / "llama2-70b.yaml"), "--set", "nodes=16"
    )
    assert result.stderr == ""
    assert "speed       145,889 tokens/s, 1,139.8 tokens/s/GPU" in result.stdout
    assert "51.2 % of 989 TFLOPS, bf16 peak of h100-80gb" in result.stdout


@pytest.mark.usefixtures("folder")
def test_a_contradiction_is_told_and_fails() -> None:
    result = metrics(
        "run.log", "--target", "oke-h100", "-f", str(ROOT / "values" / "llama2-70b.yaml"), "--set", "nodes=8"
    )
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == (
        "error: global batch is 128 by the values, 256 by the steps of the log; name the right one; "
        "figures that need it are left out"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_has_a_panel_for_each_course(theme: str, folder: Path) -> None:
    result = metrics("run.log", *MODEL, "--plot", "run.svg", "--theme", theme)
    assert result.stderr == "> wrote run.svg\n"
    root = ET.parse(folder / "run.svg").getroot()  # noqa: S314  of this test
    assert len([child for child in root if child.tag.endswith("svg")]) == 3
    assert ("--ground: #fff" in (folder / "run.svg").read_text()) == (theme == "light")


class Reader(HTMLParser):
    """Gathers tags, whether they are closed, and what they load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_one_page_that_loads_nothing(folder: Path) -> None:
    saved = "[2026-02-02 02:41:00.0] saving checkpoint at iteration      20 to /outputs/<c>\n"
    content = logs.megatron_arguments(global_batch_size=256, run="<b>") + logs.megatron(RUN) + saved
    (folder / "run.log").write_text(content + logs.megatron(logs.steps([7.0] * 20, first=25), begin=logs.BEGIN + 900))
    assert metrics("run.log", *MODEL, "--report", "run.html").exit_code == 0
    page = (folder / "run.html").read_text()
    reader = Reader(page)
    assert (reader.open, reader.loads) == ([], [])
    assert "url(" not in page
    assert page.count("<svg class") == 2 * 3  # wide and narrow
    assert "restart at step 25" in page
    assert "checkpoint of step 20" in page
    assert "repeated steps" in page
    assert "prefers-color-scheme: dark" in page


def test_many_checkpoints_are_drawn_in_part_and_both_errors_are_reported(folder: Path) -> None:
    saved = "saving checkpoint at iteration {} to /outputs/c\n"
    (folder / "run.log").write_text(
        logs.megatron(logs.steps([7.0] * 150)) + "".join(saved.format(step) for step in range(1, 151))
    )
    assert metrics("run.log", "--report", "run.html").exit_code == 0
    page = (folder / "run.html").read_text()
    assert page.count("checkpoint of step ") == 2 * 2 * 50  # in each of two panels, wide and narrow
    assert "checkpoint, 1 of 3 drawn" in page


def test_steps_that_were_done_again_are_shaded(folder: Path) -> None:
    again = logs.megatron(logs.steps([7.0] * 20, first=25), begin=logs.BEGIN + 900)
    (folder / "run.log").write_text(logs.megatron(RUN) + again)
    assert metrics("run.log", "--report", "run.html", "--plot", "run.svg").exit_code == 0
    assert "<title>steps 25 to 30 were repeated</title>" in (folder / "run.html").read_text()
    assert "repeated steps" in (folder / "run.svg").read_text()


def test_a_short_log_has_each_step_on_the_axis_once(folder: Path) -> None:
    (folder / "run.log").write_text(logs.megatron(logs.steps([7.0] * 3)))
    assert metrics("run.log", "--plot", "run.svg").exit_code == 0
    first = (folder / "run.svg").read_text().partition("<polyline")[0]
    assert re.findall('class="tick middle".*?>(.*?)<', first) == ["1", "2", "3"]


def test_a_line_beyond_the_axis_is_cut_off_not_bent() -> None:
    panel = Panel("loss", [], ("#000", "#fff"), low=0.0, high=1.0)
    scale = Scale(StepAxis(0, 10), panel)
    top, bottom = scale.y(1.0), scale.y(0.0)
    assert scale.y(1.5) < top < bottom < scale.y(-0.5)
    assert scale.y(1e30) == scale.y(2.0)


def test_spikes_of_the_step_time_are_on_the_axis_and_noise_does_not_fill_it(folder: Path) -> None:
    seconds = [9.0, 4.0, *[2.3 + at % 7 / 100 for at in range(400)]]
    for at in range(100, 400, 60):
        seconds[at] = 4.3
    (folder / "run.log").write_text(logs.megatron(logs.steps(seconds)))
    step_time = panels(read_out(read_logs(["run.log"]), Wanted()))[0]
    assert step_time.high > 4.3
    assert step_time.low < 2.1
    assert [each.value for each in step_time.beyond] == [9.0]
    assert "9 at step 1" in step_time.cut
    metrics("run.log", "--report", "run.html")
    page = (folder / "run.html").read_text()
    assert "9 at step 1<" in page
    assert page.count('class="far"') == 2


def test_the_report_opens_with_the_figures(folder: Path) -> None:
    assert metrics("run.log", *MODEL, "--machines", "16", "--price", "90", "--report", "run.html").exit_code == 0
    page = (folder / "run.html").read_text()
    cards = dict(re.findall(r'<div class="card"><b>(.*?)</b> *<span>(.*?)</span>', page))
    assert cards == {
        "7.188 s": "step time",
        "1,140": "tokens/s/GPU",
        "506.6": "TFLOPS/GPU, full attention",
        "51.2 %": "MFU",
        "92.4 %": "goodput",
        "93.30": "cost",
    }
    assert page.index('class="card"') < page.index("<svg")
    assert f"chartgen {__version__}" in page
    assert "2026-02-02 02:40" in page  # when the run began
    assert re.search(r"written \d{4}-\d\d-\d\d", page)
    assert page.count('class="hover"') >= 30
    assert re.search(r"<title>step 3: 7\.125</title>", page)


@pytest.mark.parametrize("count", [1, 2])
def test_a_report_of_very_few_steps(count: int, folder: Path) -> None:
    (folder / "few.log").write_text(logs.megatron(RUN[:count]))
    assert metrics("few.log", "--report", "few.html").exit_code == 0
    assert Reader((folder / "few.html").read_text()).open == []


def test_one_step_is_enough_for_figures_but_not_for_a_picture(folder: Path) -> None:
    (folder / "one.log").write_text(logs.megatron(RUN[:1]))
    assert "one.log: Megatron-LM, 1 step, 1 to 1 of 100" in metrics("one.log").stdout
    result = metrics("one.log", "--plot", "one.svg")
    assert (result.exit_code, result.stderr) == (2, "error: a picture needs two steps or more\n")


KNOWN = (
    "known are logs of DLLogger, Megatron-LM, NeMo, TensorBoard, Automodel, torchtitan, NeMo RL, "
    "MLPerf, Megatron-Bridge, Hugging Face Trainer"
)
MAXTEXT = b"completed step: 11, seconds: 28.294, TFLOP/s/device: 1520.276, loss: 9.5\n"
BAD = {
    "empty": (b"", "log: is empty; has the program started? see `kubectl get pods`"),
    "no steps": (b"hello\n", f"log: has no training steps in 6 bytes; {KNOWN}; is it the right rank's?"),
    "another framework": (
        MAXTEXT,
        f"log: has no training steps in {len(MAXTEXT)} bytes; {KNOWN}; is it the right rank's?",
    ),
    "binary": (
        b"\0\1\2\3" * 5_000_000,
        "log: has no line end within 16 MB, so it is not a log; name the program's text log",
    ),
    "gzip cut off": (
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b",
        "log: cannot be read: Compressed file ended before the end-of-stream marker was reached",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_logs_that_cannot_be_read(name: str, folder: Path) -> None:
    content, error = BAD[name]
    (folder / "log").write_bytes(content)
    result = metrics("log")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"error: {error}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["gone.log"], 2, "gone.log: no such log; name a file, folder or archive, or - for the input"),
        (["run.log", "--window", "80:90"], 1, "no steps between 80 and 90: the log has 1 to 30; give another --window"),
        (["run.log", "--window", "ten"], 2, "'ten' is not a window of steps; write FIRST:LAST"),
        (["run.log", "--gpu", "h1000"], 2, "the peak of the GPU 'h1000' is not known; did you mean"),
        (["run.log", "--model", "lama2-70b"], 2, "the model 'lama2-70b' is not known; did you mean llama2-70b"),
        (["run.log", *MODEL, "--peak", "much"], 2, "'much' is not a peak; write TFLOPS of one GPU, or bf16, fp8, fp4"),
        (["run.log", "--fail-below", "5"], 2, "--fail-below compares with a baseline; give --baseline too"),
        (["run.log", "--baseline", "published:gpt3-5b", *MODEL], 2, "no speed of gpt3-5b is known; known"),
        (["run.log", "--baseline", "gone.json"], 2, "gone.json: no such log; name a file, folder or archive, or -"),
        (["run.log", "--plot", "run.doc"], 2, "cannot draw run.doc; name it .svg"),
        (["none"], 1, "none: the folder has no files"),
        (["run.log", "--run", "2"], 2, "run.log: no run 2: the log contains 1 run; a new run has"),
    ],
)  # fmt: skip
def test_bad_requests(arguments: list[str], code: int, error: str, folder: Path) -> None:
    (folder / "none").mkdir()
    result = metrics(*arguments)
    assert result.exit_code == code
    assert result.stderr.startswith(f"error: {error}")
    assert result.stderr.count("\n") == 1


def test_a_word_that_is_no_file_is_taken_for_a_release_and_both_errors_are_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(folder / "none"))
    result = metrics("run-log")
    assert result.exit_code == 3
    assert "error: run-log: no such file or folder" in result.stderr.splitlines()
    assert result.stderr.count("error: ") == 2


def test_dates_and_numbers_that_cannot_be(folder: Path) -> None:
    wild = logs.megatron(RUN[:1]).replace("iteration        1/", f"iteration {'9' * 30}/")
    wild += logs.nemo2(RUN[:1]).replace("global_step: 1 ", f"global_step: {'9' * 30} ")
    deep = f'DLLL {{"step": 1, "data": {"[" * 100_000}\n'
    (folder / "wild.log").write_text("2026-99-99 25:61:00 starting\n" + wild + deep + logs.megatron(RUN))
    result = metrics("wild.log", "--output", "json")
    assert json.loads(result.stdout)["stepSeconds"]["mean"] == 7.1875
    assert "warning: 2 lines cannot be read, the first is: Training epoch 0, iteration 1/" in result.stderr


def test_an_event_file_with_a_record_that_is_none(folder: Path) -> None:
    for name, message in {"short": b"\x09abc", "varint": b"\x10\xff"}.items():
        (folder / f"{name}.tfevents").write_bytes(logs.record(message))
        result = metrics(f"{name}.tfevents")
        said = f"error: {name}.tfevents: has a record that is not a TensorBoard event\n"
        assert (result.exit_code, result.stderr) == (1, said)
    negative = logs.field(2, 0, logs.varint((1 << 64) - 1))
    value = logs.field(1, 2, logs.field(1, 2, b"iteration-time") + logs.field(2, 5, b"\0\0\0@"))
    (folder / "negative.tfevents").write_bytes(logs.record(negative + logs.field(5, 2, value)))
    assert metrics("negative.tfevents").exit_code == 0


def test_an_event_file_that_is_none(folder: Path) -> None:
    (folder / "events.tfevents.1").write_bytes(b"no event file at all, but long enough")
    assert metrics("events.tfevents.1").stderr == (
        "error: events.tfevents.1: is not a TensorBoard event file, despite its name\n"
    )


def test_lines_that_cannot_be_read_are_counted(folder: Path) -> None:
    (folder / "run.log").write_text(logs.megatron(RUN).replace("(ms): 7125.0", "(ms): 7125.0[default3]:NCCL", 1))
    result = metrics("run.log")
    assert result.stderr.startswith("warning: 1 line cannot be read, the first is:  [2026-02-02 02:40:")
    assert "29 steps" in result.stdout


def test_plain_figures_import_no_yaml_and_no_pictures(folder: Path) -> None:
    (folder / "dllogger.json").write_text(logs.dllogger(RUN, config={"num_layers": 80}))
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from chartgen.cli import main; main(['metrics', 'dllogger.json'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder)
    heavy = {"ruamel.yaml", "jsonschema", "jinja2", "gzip", "statistics"}
    assert heavy.isdisjoint(ran.stderr.split())


@pytest.mark.parametrize(
    ("content", "planned", "line"),
    [
        ("", 100, ""),
        ("nothing yet\n", 100, ""),
        (logs.megatron(RUN), 0, "step 30 of 100, 7.19 s a step, 8 min 23 s left"),
        (logs.megatron(RUN), 60, "step 30 of 60, 7.19 s a step, 3 min 35 s left"),
        (logs.nemo_bars(RUN), 0, "step 30, 7.19 s a step"),
        (logs.dllogger(RUN), 1000, "step 30 of 1,000, 7.19 s a step, 1 h 56 min left"),
        (logs.automodel(RUN, tokens=1e6, gpus=8), 40, "step 30 of 40, 17,391 tokens/s/GPU"),
    ],
)
def test_one_line_on_a_run_that_is_going(content: str, planned: int, line: str) -> None:
    assert live_progress(content.splitlines(), planned).text == line
