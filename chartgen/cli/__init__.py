"""The command line: options in, one library call, its result printed. Nothing else is decided here.

Modules of the library are imported inside the commands that use them, so that `--help` and completion stay instant.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from chartgen import __version__
from chartgen.cli.output import guarded
from chartgen.errors import ChartgenError, Problem
from chartgen.visible import one_line

_EPILOG = """\b
Examples:
  chartgen build gke-a3mega
  chartgen rehearse gke-a3mega -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
  chartgen install gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml

\b
Exit codes: 0 clean, 1 findings or a failed action, 2 usage, 3 a needed tool or cluster is missing.
Completion: eval "$(_CHARTGEN_COMPLETE=bash_source chartgen)", or zsh_source, fish_source.
"""


# Which module holds a command, so that one command does not pay for the others.
_COMMANDS = {
    "build": "build",
    "check": "check",
    "convert": "convert",
    "diff": "revisions",
    "doctor": "doctor",
    "engines": "engines",
    "exec": "exec",
    "fit": "check",
    "history": "revisions",
    "install": "install",
    "lint": "lint",
    "list": "build",
    "logs": "follow",
    "metrics": "metrics",
    "rehearse": "engines",
    "render": "render",
    "rollback": "install",
    "sandbox": "engines",
    "show": "build",
    "status": "follow",
    "uninstall": "install",
    "upgrade": "install",
    "wait": "follow",
}


_INTERRUPTED = 130  # 128 + SIGINT, as shells count


class _Group(click.Group):
    """Imports a command when it is asked for; prints chartgen's errors, a line each, with their exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(_COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Find a command by its name."""
        if name not in _COMMANDS:
            return None
        commands: tuple[click.Command, ...] = import_module(f"chartgen.cli.{_COMMANDS[name]}").COMMANDS
        return next(command for command in commands if command.name == name)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run with both standard streams guarded, so that also usage errors are harmless."""
        with guarded():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a failure that chartgen foresaw ends it without a traceback."""
        try:
            return super().invoke(ctx)
        except ChartgenError as error:
            found = error
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)
        except BrokenPipeError:
            if _reader_has_gone():
                raise  # it has seen enough; click ends quietly
            found = ChartgenError("a program that chartgen wrote to has ended")
        except OSError as error:
            found = ChartgenError(Problem(error.strerror or str(error), error.filename))
        for problem in found.problems:
            click.echo(f"{click.style('error', fg='red')}: {one_line(str(problem))}", err=True)
        sys.exit(found.exit_code)


def _reader_has_gone() -> bool:
    """Report whether nobody reads stdout or stderr any more; another broken pipe is a failure."""
    import select

    poller = select.poll()
    for stream in (1, 2):
        poller.register(stream, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


@click.group(cls=_Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chartgen")
def main() -> None:
    """Composes, checks and runs Helm charts for NeMo and Megatron training on GPU machines."""
