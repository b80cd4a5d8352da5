"""`--set` and its relatives give what the real Helm gives, or are refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mini_charts import Json, echo

from chartgen.errors import ChartgenError
from chartgen.helm import set_flags
from chartgen.helm.program import find_helm
from chartgen.helm.values import load_values

BASE = """\
map: {inner: {x: 1}, text: t}
list: [{a: 1, b: 2}, two, [3]]
text: hello
nothing: null
"""

SAME_AS_HELM = [
    ("--set", "a.b=c"),
    ("--set", "a=1,b=-1,c=+1,d=007,e=0,f=-0,g=1.5,h=1e3,i=-012"),
    ("--set", "a=9223372036854775807,b=9223372036854775808,c=-9223372036854775808"),
    ("--set", f"a={'9' * 5000}"),
    ("--set", "a=true,b=FALSE,c=Null,d=nULL,e=yes,f=~,g=fal\u017fe"),
    ("--set", "a="),
    ("--set", "a=,b="),
    ("--set", "a=1,"),
    ("--set", ""),
    ("--set", "a={x,y},b={1,true,null,}"),
    ("--set", "a={}"),
    ("--set", "a={1}b=2"),
    ("--set", "a={1},b=2"),
    ("--set", r"a={x\,y,\}}"),
    ("--set", "a=x{1}"),
    ("--set", "a[0]=x,a[2]=z"),
    ("--set", "a[1].b=x,a[1].c=y"),
    ("--set", "a[0][1]=x"),
    ("--set", "a[0][1].b.c[2]=x"),
    ("--set", "a[+1]=x"),
    ("--set", "list[0].a=9"),
    ("--set", "list[1].a=9"),
    ("--set", "list[2][0]=9,list[2][1]=10"),
    ("--set", "list[5].a=9"),
    ("--set", "list[0].b="),
    ("--set", "map.inner.y=2,map.inner.x=null,map.text=u"),
    ("--set", "map=null"),
    ("--set", "map=1"),
    ("--set", "text=a=b=c"),
    ("--set", r"nodeSelector.kubernetes\.io/role=master"),
    ("--set", r"a=x\,y\=z\\w,b\,c=1,d\=e=2,f\[0\]=3"),
    ("--set", "a=b\\"),
    ("--set", " a = b , c = d "),
    ("--set", "a=line\nbreak\ttab"),
    ("--set", "a=\u00e9\U0001f600\u2028\u0085\ufeff,\u00fc.\u00df=1"),
    ("--set", "a=$(rm -rf /) `x` \"q\" 'q'"),
    ("--set", "a=[1,b=2"),
    ("--set", "a.b.c.d.e.f.g.h.i.j=1"),
    ("--set-string", "a=1,b=true,c=null,d=007"),
    ("--set-string", "a={1,true},b[1]=2"),
    ("--set-string", "a="),
    ("--set-json", 'a={"x":[1,2.5,null]},b=[1,"2",true]'),
    ("--set-json", 'a=1 , b="x,y" ,c=null,d='),
    ("--set-json", "a=1 b=2"),
    ("--set-json", 'a[1].b={"c":{}}'),
    ("--set-json", "a=,b=  ,c=1"),
    ("--set-json", '{"map":{"inner":{"y":[1]},"text":null},"new":{}}'),
    ("--set-json", '  {"a":"\\u00e9\\/"} '),
    ("--set-json", "map.inner=null,list[0]=null"),
    ("--set-json", "a=-0,b=1e2,c=0.1,d=1E-7"),
]

REFUSED_BY_BOTH = [
    ("--set", "a", "key 'a' has no value"),
    ("--set", "a.b", "key 'a.b' has no value"),
    ("--set", "a=1,b", "key 'b' has no value"),
    ("--set", "a,b=1", "key 'a' has no value"),
    ("--set", "a=1,,b=2", "empty key"),
    ("--set", "a={1,2", "must end with '}'"),
    ("--set", "a[x]=1", "index must be a whole number"),
    ("--set", "a[-1]=1", "between 0 and 65536"),
    ("--set", "a[65537]=1", "between 0 and 65536"),
    ("--set", "a[0]b=1", "after the index of a[0]"),
    ("--set", "new.=1", "empty key after 'new'"),
    ("--set", "text.a=1", "text is text, not a map"),
    ("--set", "text[0]=1", "text is text, not a list"),
    ("--set", "nothing.a=1", "nothing is empty, not a map"),
    ("--set", "list.a=1", "list is a list, not a map"),
    ("--set", "list[1][0]=1", "list[1] is text, not a list"),
    ("--set", ".".join("k" * 32) + "=1", "deeper than the 30 levels"),
    # more digits than Python reads
    ("--set", f"a[{'9' * 5000}]=1", "index must be a whole number"),
    ("--set-json", f"a={'9' * 5000}", "is not valid JSON"),
    ("--set-json", f"a={'[' * 50_000}", "is nested too deeply"),
    ("--set-json", "a={", "is not valid JSON"),
    ("--set-json", "a=NaN", "is not valid JSON"),
    ("--set-json", "a=1e999", "is not valid JSON"),
    ("--set-json", '{"a":1} x', "is not valid JSON"),
    ("--set-file", "a=no/such/file", "no such file"),
]

# Helm drops these without a word; nobody types them on purpose, so chartgen says so.
DROPPED_BY_HELM = [
    ("--set", "a[0", "index must be a whole number"),
    ("--set", "a[0]", "after the index of a[0]"),
    ("--set", "a.", "empty key after 'a'"),
    ("--set", "=1", "empty key"),
    ("--set", ".a=1", "empty key"),
    ("--set", "map.=1", "empty key after 'map'"),
    ("--set", "new[0].b=", "end it with a comma"),
    ("--set-json", r'new={"b":"\ud800"}', "is not UTF-8 text"),
]


def ours(flag: str, text: str, folder: Path) -> dict[str, Json]:
    """Layer the base file and one flag with chartgen."""
    base = folder / "base.yaml"
    base.write_text(BASE)
    name = {"--set": "set_values", "--set-string": "set_strings", "--set-json": "set_json", "--set-file": "set_files"}
    given: Json = {name[flag]: [text]}
    return load_values([base], **given).data


def helms(flag: str, text: str, folder: Path) -> Json:
    """Layer the same with the real Helm."""
    return echo(folder / "tiny", "", ["--values", str(folder / "base.yaml"), flag, text])


@pytest.mark.helm
@pytest.mark.parametrize(("flag", "text"), SAME_AS_HELM)
def test_flag_gives_what_helm_gives(flag: str, text: str, tmp_path: Path) -> None:
    mine = ours(flag, text, tmp_path)
    if text.strip().startswith("{") and find_helm().version[0] < 4:
        with pytest.raises(ChartgenError):
            helms(flag, text, tmp_path)  # whole objects came with Helm 4
    else:
        assert mine == helms(flag, text, tmp_path)


@pytest.mark.parametrize(("flag", "text", "message"), REFUSED_BY_BOTH)
def test_flag_that_helm_refuses_gets_one_line(flag: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ChartgenError) as caught:
        ours(flag, text, tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ChartgenError):
        helms(flag, text, tmp_path)


@pytest.mark.parametrize(("flag", "text", "message"), DROPPED_BY_HELM)
def test_unfinished_flag_is_refused_instead_of_dropped(flag: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ChartgenError) as caught:
        ours(flag, text, tmp_path)
    assert message in str(caught.value)
    with suppress(ChartgenError):  # some Helms refuse some of them
        assert "1" not in json.dumps(helms(flag, text, tmp_path).get("a", ""))


@pytest.mark.helm
def test_set_file_takes_the_text_unchanged(tmp_path: Path) -> None:
    source = tmp_path / "start script.sh"
    source.write_bytes("\ufeff#!/bin/sh\r\necho '$(x)' \u00e9\n\n".encode())
    flag, text = "--set-file", f"a.b={source},list[0].a={source}"
    assert ours(flag, text, tmp_path) == helms(flag, text, tmp_path)


@pytest.mark.helm
def test_kinds_of_flags_apply_in_helms_order(tmp_path: Path) -> None:
    folder, source = tmp_path / "tiny", tmp_path / "f"
    source.write_text("file")
    arguments = ["--set-file", f"d={source}", "--set-string", "c=1,d=1", "--set", "b=2,c=2", "--set-json", "a=3,b=3"]
    mine = load_values(set_files=[f"d={source}"], set_strings=["c=1,d=1"], set_values=["b=2,c=2"], set_json=["a=3,b=3"])
    assert mine.data == echo(folder, "", arguments) == {"a": 3, "b": 2, "c": "1", "d": "file"}


@pytest.mark.helm
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(alphabet="ab1.,={}[]0\\ n", min_size=1, max_size=12), flag=st.sampled_from(["--set", "--set-string"])
)
def test_any_flag_is_helms_or_refused(text: str, flag: str, tmp_path: Path) -> None:
    """Never other values than Helm's: whatever chartgen accepts, Helm accepts with the same result."""
    try:
        mine = ours(flag, text, tmp_path)
    except ChartgenError:
        return
    assert mine == helms(flag, text, tmp_path)


KEYS = st.sampled_from(["a", "b", "list", "map", "map.inner", "a[0]", "list[0].c", "a[1][0]", r"x\.y"])
TEXTS = st.text(alphabet="ab01{}\\,=.- t", max_size=6)


@pytest.mark.helm
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(KEYS, TEXTS), min_size=1, max_size=6))
def test_several_pairs_are_helms_or_refused(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    text = ",".join(f"{key}={value}" for key, value in pairs)
    try:
        mine = ours("--set", text, tmp_path)
    except ChartgenError:
        return
    assert mine == helms("--set", text, tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodes=31,steps=5", "--set nodes=31,steps=5"),
        ("env.HF_TOKEN=hf_abcdef,nodes=2", "--set env.HF_TOKEN=(hidden),nodes=2"),
        ("env.WANDB_API_KEY=0123456789abcdef", "--set env.WANDB_API_KEY=(hidden)"),
        ("env.A=hf_" + "a1" * 10, "--set env.A=(hidden)"),
        ("secretEnv.A.secretName=hf", "--set secretEnv.A.secretName=hf"),
    ],
)
def test_messages_never_repeat_what_looks_secret(text: str, told: str) -> None:
    assert set_flags.label("--set", text) == told
