"""Fragments and launchers come from packages and pull requests: they are composed, and read nothing of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FunctionType, MethodType

import pytest
from userlib import composed, library, write

from chartgen.composer.assembly import compose
from chartgen.composer.tags import fill
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError

CONTENT = "stolen-content-4711"
LAUNCHER = "description: A launcher of a test\ntask: data\nimage: example.com/x:1\nsources: [the test]\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(f"- name: X\n  value: {CONTENT}\n")
    return tmp_path / "secret"


def refused(folder: Path) -> str:
    """Return why a target is refused, which must not quote what was reached for."""
    with pytest.raises(ChartgenError) as raised:
        composed(folder)
    assert CONTENT not in str(raised.value)
    return str(raised.value)


@pytest.mark.threat(4)
@pytest.mark.parametrize("name", ["/etc/passwd", "../../LICENSE", "templates/_helpers.tpl", "README.md", ""])
def test_common_gives_its_own_programs_only(tmp_path: Path, name: str) -> None:
    folder = library(tmp_path / "lib", {"mine/env.yaml": f'# <%= common("{name}") %>\n'})
    assert "mine/env.yaml" in refused(folder)


# Files, Python's own, and what an object prints of itself: addresses differ from build to build.
ESCAPES = """\
target.path.read_text()
target.library.roots
target.library.find('fragment', 'mine').read_text()
kind.path.parent
kind.folders[0].joinpath('{secret}').read_text()
kind.folders | first
(kind.folders | list)[-1].joinpath('{secret}').write_text('x')
target.fragments[0].path
target.fragments | map(attribute='path') | first
common.__globals__
common.__self__
compat.cache_clear()
().__class__.__mro__[1].__subclasses__()
compat.__wrapped__.__globals__
cycler.__init__.__globals__.os.popen('id').read()
'{{0.__class__}}'.format(target)
target | attr('__class__')
slot
[slot][0]
target.items
namespace()
dict
'a'.encode('utf-8')
(1).__class__
('a' | batch(1)).gi_frame
common ~ ''
[common]
[common] ~ ''
common | pprint
'%s' | format(common)
'%s' % common
'%s' % [common]
'{{}}'.format(common)
[common] | string
'a'.upper ~ ''
({{'a': 1}}.keys() - []) ~ ''
({{'a': 1}}.keys() - []) | list
[1, 2] | random
lipsum(html=false)
common | cell
'a'.upper | pprint
dict ~ ''
{{'a': common}} | tojson
""".splitlines()


@pytest.mark.threat(4)
def test_tags_reach_no_files_and_nothing_of_python(tmp_path: Path, secret: Path) -> None:
    for number, escape in enumerate(ESCAPES):
        tag = escape.format(secret=secret)
        folder = library(tmp_path / str(number), {"mine/env.yaml": f"# <%= {tag} %>\n"})
        assert "mine/env.yaml:1" in refused(folder), tag
    assert CONTENT in secret.read_text()


@pytest.mark.threat(14)
def test_a_tag_makes_no_text_that_cannot_be_written(tmp_path: Path) -> None:
    folder = library(tmp_path / "lib", {"mine/env.yaml": "# <%= '\\ud800' %>\n"})
    assert "mine/env.yaml: <% %>: 'utf-8' codec" in refused(folder)


@pytest.mark.threat(14)
def test_a_schema_with_a_number_that_python_does_not_read(tmp_path: Path) -> None:
    folder = library(tmp_path / "lib", {"mine/values.schema.json": f'{{"maxProperties": {"9" * 5000}}}'})
    assert refused(folder).endswith("mine/values.schema.json: has a number of thousands of digits")


def test_tags_make_text_of_plain_data() -> None:
    """Also by the filters that return iterators, and with a macro's caller."""
    text = (
        "<% macro m() %><%= caller() %><% endmacro %><% call m() %><%= 'ab' | map('upper') ~ '%s' % 1 %><% endcall %>"
    )
    assert fill(text, Path("env.yaml"), {}, trusted=False) == "['A', 'B']1"


PLAIN = (str, int, float, bool, type(None), list, tuple, dict)


def reachable(value: object, path: str, depth: int = 6) -> Iterator[tuple[str, object]]:
    """Yield whatever a tag reaches from a value by attributes, items and calls without arguments, with its path."""
    yield path, value
    if depth and isinstance(value, dict):
        for key, item in value.items():
            yield from reachable(key, f"{path} key", depth - 1)
            yield from reachable(item, f"{path}[{key!r}]", depth - 1)
    elif depth and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from reachable(item, f"{path}[{index}]", depth - 1)
    elif depth and isinstance(value, FunctionType | MethodType):
        with suppress(TypeError):
            yield from reachable(value(), f"{path}()", depth - 1)


@pytest.mark.threat(4)
def test_everything_that_tags_reach_is_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every text of the charts, chartgen's own included: a user's definition of the name has the same context."""
    seen: dict[str, object] = {}

    def spy(text: str, path: Path, context: Mapping[str, object], *, trusted: bool) -> str:
        seen.update({f"{path.name}: {name}": value for name, value in context.items()})
        return fill(text, path, context, trusted=trusted)

    monkeypatch.setattr("chartgen.composer.chart_tags.fill", spy)
    for name, kind in (("gke-a3mega", "jobset"), ("eks-p5", "rayjob")):
        compose(load_target(name), kind)
    found = [(name, *each) for name, value in seen.items() for each in reachable(value, name)]
    assert len(found) > 1000
    for name, path, each in found:
        assert type(each) in PLAIN or (path == name and isinstance(each, FunctionType | MethodType)), path


@pytest.mark.threat(4)
@pytest.mark.parametrize("file", ["env.yaml", "beforeLaunch.sh", "helpers.tpl", "values.yaml", "manifests", "setup"])
def test_links_in_a_fragment_are_refused(tmp_path: Path, secret: Path, file: str) -> None:
    folder = library(tmp_path / "lib", {})
    link = folder / "fragments" / "mine" / file
    link.symlink_to(secret.parent if file in ("manifests", "setup") else secret)
    assert str(link) in refused(folder)


@pytest.mark.threat(4)
def test_a_fragment_and_a_target_that_are_links_are_refused(tmp_path: Path) -> None:
    elsewhere = library(tmp_path / "elsewhere", {"mine/env.yaml": f"- name: X\n  value: {CONTENT}\n"})
    folder = library(tmp_path / "lib", {}, "mine", "other")
    for kind, name in (("fragments", "linked"), ("targets", "box.yaml")):
        source = elsewhere / kind / ("mine" if kind == "fragments" else name)
        link = folder / kind / name
        link.unlink(missing_ok=True)
        link.symlink_to(source)
    assert str(folder / "targets" / "box.yaml") in refused(folder)


@pytest.mark.threat(4)
def test_links_in_a_launcher_are_refused(tmp_path: Path, secret: Path) -> None:
    folder = library(tmp_path / "lib", {})
    target = folder / "targets" / "box.yaml"
    target.write_text(target.read_text().replace("[nemo-1]", "[nemo-1, ours]"))
    write(folder, {"launchers/ours/launcher.yaml": LAUNCHER})
    link = folder / "launchers" / "ours" / "beforeLaunch.sh"
    link.symlink_to(secret)
    assert str(link) in refused(folder)


def test_links_within_a_library_are_followed(tmp_path: Path) -> None:
    folder = library(tmp_path / "lib", {"mine/env.yaml": "- name: SHARED\n  value: x\n"}, "mine", "twin")
    shared = folder / "shared.yaml"
    (folder / "fragments" / "mine" / "env.yaml").rename(shared)
    (folder / "fragments" / "mine" / "env.yaml").symlink_to(shared)
    assert any("SHARED" in text for text in composed(folder).files.values())
