"""Commands that take from `chartgen.yaml` of the working folder what their arguments do not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_TARGET = "chartgen.target-of-folder"


class FolderCommand(click.Command):
    """A command on a target, with its values: the folder's own where the arguments name none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, with the target of the folder before them if they lack one."""
        from chartgen.composer.folder_settings import folder_settings

        named = [param.name for param in self.params if isinstance(param, click.Argument)]
        target = "" if ctx.resilient_parsing or "target" not in named else folder_settings().target
        if target:
            options = self.make_parser(ctx).parse_args(list(args))[0]
            words = [word for name in named if isinstance(word := options.get(str(name)), str)]
            if len(words) < len(named) and not (words and _is_target(words[0], options.get("path") or ())):
                ctx.meta[_TARGET] = target
                args = [target, *args]
        return super().parse_args(ctx, args)


def _is_target(word: str, path: tuple[str, ...]) -> bool:
    """Report whether the first of fewer words than arguments is a target or a chart, and not a release."""
    from chartgen.composer.library import open_library

    return "/" in word or Path(word).exists() or word in open_library([*map(Path, path)]).names("target")


def with_folder(given: dict[str, Any], target: str) -> tuple[dict[str, Any], str]:
    """Return values options with the preset and the files of the folder where none is given, and a line with them.

    Args:
        given: The options.
        target: The target that they are for; another one than the folder's gets nothing.
    """
    from chartgen.composer.folder_settings import SETTINGS, folder_settings

    context = click.get_current_context()
    if not isinstance(context.command, FolderCommand) or target != (settings := folder_settings()).target:
        return given, ""
    # a program of one's own brings its own model
    own = given["code"] or given["program_file"] or not settings.preset
    named = {"preset_names": () if own else (settings.preset,), "files": settings.values}
    taken = {key: value for key, value in named.items() if value and not given[key]}
    words = {"target": (context.meta.get(_TARGET),), "preset": taken.get("preset_names"), "values": taken.get("files")}
    shown = ", ".join(f"{key} {' '.join(map(str, names))}" for key, names in words.items() if names and names[0])
    return {**given, **taken}, f"from {SETTINGS}: {shown}" if shown else ""
