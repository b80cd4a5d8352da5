"""The report in a real browser: on a phone and on a desktop, light and dark, nothing sticks out, nothing is loaded."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trainlogs as logs
from userlib import chartgen

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is on PATH; .ci/run installs it")
# Beside the page itself: what it looks like, and what has gone wrong. It tells the page around it, whose title that is.
LOOK = """<script>
addEventListener("load", () => {
  const style = getComputedStyle(document.body), root = document.documentElement;
  const small = [...document.querySelectorAll("text, td, p, span")].map(each => {
    const box = each.getBoundingClientRect(), scale = each.ownerSVGElement
      ? each.ownerSVGElement.getBoundingClientRect().width / each.ownerSVGElement.viewBox.baseVal.width : 1;
    return box.width ? parseFloat(getComputedStyle(each).fontSize) * scale : 99;
  });
  const inner = [...document.querySelectorAll("div, p, td")].map(each => each.scrollWidth - each.clientWidth);
  parent.postMessage(JSON.stringify({
    wide: Math.max(root.scrollWidth - root.clientWidth, ...inner), width: innerWidth,
    ink: style.color, ground: style.backgroundColor,
    smallest: Math.min(...small),
    loaded: performance.getEntriesByType("resource").length, errors,
    pictures: [...document.querySelectorAll(".picture > svg")].filter(each => each.clientWidth).length,
  }), "*");
});
</script>"""
# A window of Chromium has at least 500 pixels; a frame in it has those of a phone.
AROUND = """<!doctype html><title></title><style>* {{ margin: 0; border: 0 }}</style>
<script>addEventListener("message", each => document.title = each.data);</script>
<iframe src="{name}" style="width: {width}px; height: 900px"></iframe>"""
FIRST = (
    '<script>const errors = []; addEventListener("error", each => errors.push(String(each.message)), true);</script>'
)


def look(page: Path, width: int, *, dark: bool) -> dict[str, Any]:
    """Open a page, and return what it looks like."""
    text = page.read_text().replace("<head>", f"<head>{FIRST}", 1).replace("</body>", f"{LOOK}</body>", 1)
    copy = page.with_suffix(".look.html")
    copy.write_text(text)
    around = page.with_suffix(".around.html")
    around.write_text(AROUND.format(name=copy.name, width=width))
    argv = [
        str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={page.parent}/profile", f"--window-size={width},900",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000", "--dump-dom",
        around.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=180)
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found, done.stderr
    return dict(json.loads(html.unescape(found[1])))


def brightness(colour: str) -> float:
    """Mean of the three parts of a colour such as rgb(1, 2, 3)."""
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    run = logs.steps([2.3] * 60 + [4.5] + [2.3] * 60)
    (folder / "run.log").write_text(logs.megatron(run))
    facts = ("--model", "llama2-70b", "--gpu", "h100", "--gpus", "64", "--sequence", "4096", "--machines", "8")
    made = folder / "run.html"
    done = chartgen("metrics", folder / "run.log", *facts, "--price", "90", "--report", made)
    assert done.exit_code == 0, done.stderr
    return made


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_report_fits_the_screen_and_loads_nothing(page: Path, width: int, dark: bool) -> None:
    found = look(page, width, dark=dark)
    assert (found["errors"], found["loaded"]) == ([], 0)
    assert (found["width"], found["wide"]) == (width, 0)
    assert found["pictures"] == 3
    assert found["smallest"] >= 9, "pixels of the smallest text"
    ink, ground = brightness(found["ink"]), brightness(found["ground"])
    assert (ink > ground + 100) if dark else (ground > ink + 100)
