"""The pages of docs/reference/commands: every command with its options, as `--help` shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from inspect import cleandoc

import click

from chartgen.cli import GROUPS, main

_SHARED = 4  # an option with the same help in so many commands is described once
_HEAD = """# Commands

Each command shows this with `--help` too. Exit codes: 0 clean, 1 findings or a failed action, 2 usage, 3 a needed tool
or cluster is missing ([what stays stable](../stability.md)). Options of many commands are explained at the end of this
page alone.
"""


def commands_pages() -> dict[str, str]:
    """Return the pages, in Markdown: options that many commands share as README, then a page of each group."""
    with click.Context(main, info_name="chartgen") as ctx:
        commands = dict(_commands(main, ctx))
    rows = Counter(row for command in commands.values() for row in _rows(command))
    shared = sorted(row for row, count in rows.items() if count >= _SHARED)
    index, pages = [_HEAD], {}
    for title, group in GROUPS.items():
        page, parts = title.split()[0].lower(), [f"# {title}: {', '.join(group)}\n"]
        index += [f"## [{title}]({page}.md)\n\n| command | purpose |\n|---|---|"]
        for name, command in commands.items():
            if name.split()[0] in group:
                summary = _cell(cleandoc(command.help or "").partition("\n")[0])
                index.append(f"| [`{name}`]({page}.md#chartgen-{name.replace(' ', '-')}) | {summary} |")
                parts += [f"## chartgen {name}\n", _text(command), _usage(name, command, shared)]
                parts += [_table(own)] if (own := [row for row in _rows(command) if row not in shared]) else []
        index.append("")
        pages[page] = "\n".join(parts)
    return {"README": "\n".join([*index, "## Options of several commands\n", _table(shared)]), **pages}


def _commands(group: click.Group, ctx: click.Context, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from _commands(command, ctx, f"{prefix}{name} ")
        elif command and not command.hidden:
            yield f"{prefix}{name}", command


def _rows(command: click.Command) -> Iterator[tuple[str, str]]:
    """Return the rows of a command's options: how one is written, and its meaning."""
    with click.Context(command) as ctx:
        for option in command.params:
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)):
                yield record


def _table(rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{name.replace('|', ' or ')}` | {_cell(meaning)} |" for name, meaning in rows]
    return "\n".join(["| option | meaning |", "|---|---|", *lines, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _text(command: click.Command) -> str:
    """Return the command's description; paragraphs that keep their lines, such as examples, become blocks."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_block(part) if part.startswith("\b") else _cell(part) for part in paragraphs) + "\n"


def _block(paragraph: str) -> str:
    title, *lines = paragraph.removeprefix("\b").strip("\n").splitlines()
    return "\n".join([title, "", "```console", *(f"$ {line.strip()}" for line in lines), "```"])


def _usage(name: str, command: click.Command, shared: list[tuple[str, str]]) -> str:
    """Return the form of the command, with the names of its shared options."""
    arguments = [
        part.make_metavar(click.Context(command)) for part in command.params if isinstance(part, click.Argument)
    ]
    options = ", ".join(f"`{row[0].split(' ')[0].rstrip(',')}`" for row in _rows(command) if row in shared)
    form = f"`{' '.join(['chartgen', name, *arguments])}`"
    return f"{form}{f', and {options}' if options else ''}\n"
