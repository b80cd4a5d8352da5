"""The pages of docs/reference/extending, for authors of targets and fragments: every key, slot, helper and fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chartgen.composer.definition import definition_schema
from chartgen.composer.library import BUILTIN, Library, ListRow
from chartgen.composer.slots import SLOTS
from chartgen.composer.vocabulary import helpers, slots

_HEAD = """\
# Targets, fragments and launchers of your own: reference

`chartgen new target|fragment|launcher NAME` writes a skeleton. [Add a cloud](../../how-to/add-a-cloud.md) is a complete
example, [Rules](../rules.md) describes `rules.yaml` and the facts that it names. `chartgen list slots` and `helpers`
print their tables, also as JSON and with your own fragments (`--path`); `chartgen show NAME --files` prints the files
of any definition.

| page | what you write |
|---|---|
| [targets](targets.md) | the machines of a cloud, and what a chart for them consists of |
| [fragments](fragments.md) | parts of pods, of their containers and of the run's object, and values |
| [launchers](launchers.md) | how one program starts |
| [workloads](workloads.md) | the object around the pods of a run |
| [policies](policies.md) | what every pod and object of all targets has |
| [templates](templates.md) | text in all of them: tags, variables, helpers |
"""
_FRAGMENT = """\
A fragment: a folder with this file and any of the slots below, `values.yaml`, `values.schema.json`,
`rules.yaml`, `manifests/*.yaml` (objects of each run) and `setup/*.yaml` (objects of the setup chart)."""
_LAUNCHER = """\
A launcher: a folder with this file, `values.yaml` and `values.schema.json` of its values below `launchers.NAME`,
`rules.yaml`, and any of these files:

| file | content |
|---|---|
| `config.yaml` | the program's configuration, made from values; the user's `launchers.NAME.config` is merged over it |
| `container.yaml` | its `args` and `env`. `config.yaml` becomes `/etc/chartgen/NAME.yaml` where `args` name it |
| `files.yaml` | other files in `/etc/chartgen`: name -> text |
| `mounts.yaml` | list of `mountPath`, `from` (a path below `/data`, `/outputs` or `/scratch`) and `readOnly` |
| `beforeLaunch.sh`, `beforeRank.sh` | as in the slots of that name |
| `launch.sh` | bash that sets the array `launch`: the command that starts the processes of a machine |
| `validate.tpl` | as in a fragment |
| `program.sh` or `program.py` | the program, where the image has none; other Python files are its modules |

In templates `.Run.config` is the configuration, and `{{ include "<%= chart %>.leaves" (list MAP "") | fromYaml }}` is a
map as {dotted key: value}, for programs that take such options. In its environment a program finds `NNODES`,
`NODE_RANK` (none in kinds of Ray), and with GPUs `GPUS_PER_NODE`, `MASTER_ADDR`, `MASTER_PORT`, `RUN_DIRECTORY` and
`CHECKPOINT_DIRECTORY`; torchrun adds `RANK`, `LOCAL_RANK` and `WORLD_SIZE` where `processes` is `gpu`."""
_TARGET = "A target: the machines of a cloud, and what a chart for them consists of."
_POLICY = """\
A policy: what every pod and object of all targets has ([policies](../../how-to/policies.md)). Texts of labels,
annotations, variables and pods may contain `{{ expressions }}` of Helm."""
DEFINITIONS: dict[str, tuple[str, str]] = {
    "`targets/NAME.yaml`": (_TARGET, "target"),
    "`fragments/NAME/fragment.yaml`": (_FRAGMENT, "fragment"),
    "`launchers/NAME/launcher.yaml`": (_LAUNCHER, "launcher"),
    "`workloads/NAME/workload.yaml`": ("A workload kind: the object around the pods of a run.", "workload"),
    "`policies/NAME.yaml`": (_POLICY, "policy"),
}
_SLOTS = """\
Each slot is a file of that name in a fragment's folder.
"""
_FIELDS = """\
A `list` contains items, identified by the key behind `by`; a `map` contains keys. Two fragments may define an item
identically; different definitions are an error. Open and close a block (`{{ if }}`) below one field; variables that are
assigned above a field are known in all. Files of the earlier form, one for each field, still work: their content starts
in column 1. Of launchers, these were `args.yaml` and `env.yaml`.
"""
_TEXT = """\
chartgen fills `<%= %>` and `<% %>` (Jinja) when it builds a chart; Helm fills `{{ }}` when it renders the chart.

| tag | value |
|---|---|
| `<%= chart %>` | the chart's name, with which every helper's name begins |
| `<%= indent %>` | in slots: the file's column in the chart; end text of several lines in `nindent <%= indent + N %>` |
| `<%= target.name %>`, `<%= target.platform %>`, `target.machines` | facts of the target file |
| `<%= workload %>`, `<%= container %>` | the workload kind, and the name of the program's container |
| `<%= setup %>` | whether the text goes into the setup chart |
| `<%= version %>` | the version of chartgen |

`validate.tpl` appends a sentence to `$check.problems` to refuse values, and may use:

| variable | value |
|---|---|
| `.Values` | the chart's values; also `$v`, as rules name them |
| `$machine` | `gpus`, `gpu`, `capacity` and `fabric` of the machine type, with numbers as floats: `int64` |
| `$launcher` | `task`, `processes`, `image`, ... of the chosen launcher |
| `$gpus` | GPUs that the run uses of each machine |
| `$fact` | the facts of rules, as a map |

`beforeLaunch.sh` runs with bash, `set -euo pipefail`, on each machine. `NODE_RANK` is the machine's number, the `env`
of `container.yaml` is set, and `source_profile FILE` reads a vendor's environment file; variables of the release keep
their values.
"""
_HELPERS = """\
Include a helper with `{{ include "<%= chart %>.NAME" . }}`, or with the list that it takes. A helper of a fragment
exists in charts that list the fragment. Its result is text: convert it with `int64`, `fromYaml` or `fromYamlArray`.
"""


def extending_pages() -> dict[str, str]:
    """Return the pages in Markdown, without a mark of their generator: the index as README, and one for each noun."""
    library, pages = Library((BUILTIN,)), {"README": _HEAD}
    for title, (meaning, kind) in DEFINITIONS.items():
        rows = _rows(keys(definition_schema(kind)))
        pages[title.strip("`").partition("/")[0]] = (
            f"# {title}\n\n{meaning}\n\n{_table(('key', 'type', 'meaning'), rows)}"
        )
    pages["fragments"] += f"\n## Slots\n\n{_SLOTS}\n"
    pages["fragments"] += _table(("slot", "content", "what it fills"), _rows(slots(library)))
    pages["fragments"] += f"\n{_FIELDS}\n"
    pages["fragments"] += _table(("field", "content", "what it fills", "earlier file"), _fields())
    described = [(f"`{row.name}`", row.fragment, row.description) for row in helpers(library)]
    pages["templates"] = f"# Text of templates\n\n{_TEXT}\n## Helpers\n\n{_HELPERS}\n"
    pages["templates"] += _table(("helper", "fragment", "result"), described)
    return pages


def keys(schema: dict[str, Any], prefix: str = "", without: dict[str, Any] | None = None) -> Iterator[ListRow]:
    """Yield the keys of a definition file, nested ones with dots.

    Args:
        without: What the schema requires besides of a file that extends none.
    """
    more: dict[str, Any] = schema.get("else", without or {})
    for name, key in schema.get("properties", {}).items():
        words = ": ".join([key["description"], *([", ".join(key["enum"])] if "enum" in key else [])])
        required = name in (*schema.get("required", ()), *more.get("required", ()))
        yield ListRow(f"{prefix}{name}", f"{words}; required" if required else words, key["type"])
        below = more.get("properties", {}).get(name, {})
        for step, mark in (("items", "[]."), ("additionalProperties", ".NAME.")):
            if isinstance(key.get(step), dict):
                yield from keys(key[step], f"{prefix}{name}{mark}", below.get(step))
        yield from keys(key, f"{prefix}{name}.", below)


def _rows(words: Iterable[ListRow]) -> Iterator[tuple[str, str, str]]:
    for row in words:
        yield f"`{row.name}`", row.type, row.description


def _fields() -> Iterator[tuple[str, ...]]:
    for name, slot in SLOTS.items():
        if slot.file:
            content = f"{slot.shape} by {slot.key}" if slot.key else slot.shape
            yield f"`{slot.field}` in `{slot.file}`", content, slot.meaning, f"`{name}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
