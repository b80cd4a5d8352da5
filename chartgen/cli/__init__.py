"""The command line: each command parses options, makes one library call and prints its result.

Commands import library modules only when they run, so that `--help` and completion stay fast.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from chartgen import __version__
from chartgen.cli.output import guarded, remark
from chartgen.errors import ChartgenError, Problem, did_you_mean

_EPILOG = """\b
Examples:
  chartgen init gke-a3mega --preset gpt3-175b
  chartgen check
  chartgen rehearse
  chartgen install my-run
  chartgen check gke-a3mega --preset gpt3-175b -f site.yaml --set nodes=64

\b
Exit codes: 0 clean, 1 findings or a failed action, 2 usage, 3 a needed tool or cluster is missing.
Completion: eval "$(_CHARTGEN_COMPLETE=bash_source chartgen)", or zsh_source, fish_source.
"""


# Each command has a module of its name, so that a command does not import the others.
GROUPS = {
    "Choose": ("list", "show", "init", "estimate", "fit", "plan"),
    "Check without a cluster": ("check", "render", "diff", "lint"),
    "Rehearse": ("rehearse", "sandbox", "exec", "engines"),
    "Run": ("doctor", "install", "upgrade", "rollback", "uninstall", "history"),
    "Follow": ("status", "top", "wait", "logs", "shell", "why", "stacks"),
    "Measure": ("metrics",),
    "Extend": ("build", "new", "preset"),
}
_COMMANDS = tuple(sorted(name for names in GROUPS.values() for name in names))
# New objects until Python looks for cycles among them, instead of 700: documents and pages of answers are thousands of
# objects without a cycle, and to look at them again and again is up to half of the time to read them.
_OBJECTS = 100_000
_INTERRUPTED = 130  # 128 + SIGINT, as shells count
# https://no-color.org; None is click's own choice, colours on a terminal only.
_COLOR = False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


class _Group(click.Group):
    """Imports a command on demand; prints chartgen's errors, one per line, and exits with their exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*_COMMANDS]

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Return a command by its name."""
        if name not in _COMMANDS:
            return None
        found = vars(import_module(f"chartgen.cli.{name}")).values()
        return next(each for each in found if isinstance(each, click.Command) and each.name == name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, read from its file: importing all of them takes five times as long."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:9}", _summary(name)) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest the nearest ones for a name that is none."""
        if args[0] == "help":
            args = [*args[1:2], "--help"]
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"unknown command {args[0]!r}; {did_you_mean(args[0], _COMMANDS) or 'see chartgen --help'}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help."""
        ctx.terminal_width = _columns()
        return super().get_help(ctx)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run with both standard streams guarded, so that usage errors are harmless too."""
        gc.set_threshold(_OBJECTS)
        atexit.register(gc.freeze)  # the search for cycles among what ends anyway takes 5 ms of any command
        with guarded():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end it without a traceback on an error of chartgen."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise _with_key(error) from None
        except ChartgenError as error:
            found = error
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)
        except BrokenPipeError:
            if _reader_has_gone():
                raise  # the reader has closed the pipe; click exits quietly
            found = ChartgenError("a program that chartgen wrote to has ended")
        except OSError as error:
            found = ChartgenError(Problem(error.strerror or str(error), error.filename))
        for problem in found.problems:
            remark("error", problem, "red")
        sys.exit(found.exit_code)


def _summary(command: str) -> str:
    """Return what a command does: the first line of the docstring below the decorators in its file."""
    with open(f"{__path__[0]}/{command}.py", encoding="utf-8") as file:  # noqa: PTH123  pathlib is a tenth of the time
        decorated = file.read().partition("\n@click.")[2]
    return decorated.partition('"""')[2].partition("\n")[0].removesuffix('"""')


def _columns() -> int:
    """Return the width of help, as click finds it with shutil, whose imports are a tenth of the time of `--help`."""
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        columns = 0
    return max(min(columns or 80, 80) - 2, 50)


def _with_key(error: click.NoSuchOption) -> click.NoSuchOption:
    """Suggest --set for an option that is called as a key of values."""
    from chartgen.cli.completion import key_of_option

    takes_values = error.ctx and any(param.name == "set_values" for param in error.ctx.command.params)
    if takes_values and (key := key_of_option(error.option_name)):
        message = f"no such option {error.option_name}; use --set {key}=VALUE"
        return click.NoSuchOption(error.option_name, message, ctx=error.ctx)
    return error


def _reader_has_gone() -> bool:
    """Report whether the reader of stdout or stderr has gone; any other broken pipe is a failure."""
    import select

    poller = select.poll()
    for stream in (1, 2):
        poller.register(stream, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


@click.group(cls=_Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "color": _COLOR})
@click.version_option(__version__, prog_name="chartgen")
def main() -> None:
    """Composes, checks and runs Helm charts for NeMo and Megatron training on GPU machines."""
