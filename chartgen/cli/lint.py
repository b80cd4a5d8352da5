"""`chartgen lint`: check charts, for people and for CI."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.options import LAYERS, FiniteRange, layer_options, path_option, workload_option
from chartgen.cli.output import emit, known_rules, note, show_answer
from chartgen.visible import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chartgen.findings import Finding
    from chartgen.linter.confined import Outcome

_FORMS = ("text", "json", "sarif", "junit", "github")
_LEVELS = ("breaks", "style")
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("charts", nargs=-1, metavar="[PATH|ARCHIVE|oci://CHART|TARGET]...", shell_complete=complete_target)
@layer_options
@click.option("--presets", type=_PATH, help="Folder of presets, overlays and example sites; default: values.")
@click.option("--output", type=click.Choice(_FORMS), default="text", show_default=True, help="Form of the findings.")
@click.option("--output-file", type=_PATH, help="File for the findings, instead of the standard output.")
@click.option("--level", type=click.Choice(_LEVELS), help="Only what breaks, or good practice too; see below.")
@click.option("--list", "listed", is_flag=True, help="List all rules with their levels, and check nothing.")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--select", multiple=True, metavar="ID,...", help="Rules to check; default: all.")
@click.option("--ignore", multiple=True, metavar="ID[:CHART],...", help="Rules to ignore, in all charts or in one.")
@click.option("--baseline", type=_PATH, help="File of known findings; report only new ones.")
@click.option("--write-baseline", type=_PATH, help="Write all findings to such a file, and exit 0.")
@click.option("--kubernetes", multiple=True, metavar="X.Y", help="Kubernetes versions; default: oldest and newest.")
@click.option("--limit", type=FiniteRange(min=1), default=120, show_default=True, help="Seconds for one chart.")
@click.option("--deadline", type=FiniteRange(min=1), default=1800, show_default=True, help="Seconds for all charts.")
@click.option("--cache/--no-cache", default=True, help="Reuse the findings of unchanged charts.")
@click.option("-v", "--verbose", is_flag=True, help="Print the duration of each step to stderr.")
@click.option("--plain-http", is_flag=True, help="Ask the registry of an oci:// chart without TLS.")
@workload_option
@path_option
def lint(charts: tuple[str, ...], path: tuple[Path, ...], *, listed: bool, **options: Any) -> None:
    """Check charts, of chartgen or third-party: files, values, structure, determinism, Helm, schemas, policy, scripts.

    Each chart is checked with the given values, or else with none and with every preset of its target, for the oldest
    and the newest Kubernetes that it supports. Presets are those of --presets, and of values/ in the folders of --path.
    The example of a site file replaces the defaults of a chart that refuses them. Without given values, the chart of a
    target is rendered on each machine type too. Its pods are compared with the machine type's row. The default is the
    charts of the configuration, of ./charts or the one in the current folder. A packaged chart (.tgz) is unpacked
    first; your Helm, with its logins, fetches a chart of a registry (oci://) or a web server (https://). A values file
    of a hand-written chart is checked against the rules known for such charts. Exit 1 on an error, with --strict on any
    finding.

    Rules have two levels: defects (breaks), reported for every chart, and good practice (style), reported for charts of
    chartgen and, with --level style, for third-party charts. A rule that --select names is always reported.

    Settings: [tool.chartgen.lint] in pyproject.toml or [lint] in chartgen.toml: charts, presets, select, ignore,
    kubernetes, level, strict, baseline. Exceptions: a comment `# chartgen: ignore[ID] reason`.

    \b
    Examples:
      chartgen lint gke-a3mega
      chartgen lint oci://registry.example.com/charts/train:1.2.0
      chartgen lint charts/gke-a3mega -f site.yaml --output sarif --output-file lint.sarif
    """
    from chartgen.composer.folder_settings import SETTINGS
    from chartgen.findings import exit_code
    from chartgen.helm.values import load_values
    from chartgen.linter.run import Settings, lint_all
    from chartgen.reports import format_findings

    if listed:
        _list(options["output"])
        return
    if Path(SETTINGS).exists():
        note(f"lint does not use {SETTINGS}, which a pull request may change: name folders with --path")
    values = load_values(**{name: options[name] for name in LAYERS})
    settings = Settings.of(Path.cwd(), charts, path, values, **_given(options))
    checked: list[Outcome] = []
    findings = lint_all(settings, partial(_steps, verbose=options["verbose"], checked=checked))
    if options["write_baseline"]:
        _write_baseline(findings, options["write_baseline"])
        return
    _show_extent(checked)
    output, file = options["output"], options["output_file"]
    if output == "text" and file is None:
        _show(findings)
    else:
        _write(format_findings(findings, output, checked=settings.name, rules=known_rules), file)
    if settings.config.strict and any(finding.severity == "warning" for finding in findings):
        sys.exit(1)
    sys.exit(exit_code(findings))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are set, with lists as lists: --select a,b is --select a --select b."""
    from chartgen.linter.limits import Limits

    found = {key: options[key] for key in ("presets", "baseline", "strict", "level") if options[key]}
    for key in ("select", "ignore", "kubernetes"):
        if options[key]:
            found[key] = tuple(word.strip() for words in options[key] for word in words.split(",") if word.strip())
    found["limits"] = Limits.of(options["limit"], options["deadline"])
    return {
        **found,
        "workload": options["workload"],
        "cache": options["cache"] and not options["write_baseline"],
        "plain_http": options["plain_http"],
    }


def _steps(name: str, done: Outcome, *, verbose: bool, checked: list[Outcome]) -> None:
    """Report a checked chart: its hidden findings, if asked the duration of each step, else on a terminal its name."""
    checked.append(done)
    steps = [f"{step.name} {step.seconds:.2f} s" for step in done.steps or ()] if verbose else []
    state = "unchanged" if done.steps is None else "checked"
    parts = [", ".join(steps) or state] if verbose or sys.stderr.isatty() else []
    if done.hidden:
        parts.append(f"{done.hidden} of good practice not shown, --level style shows them")
    if parts:
        note(f"{name}: {'; '.join(parts)}")


def _show_extent(checked: list[Outcome]) -> None:
    """Report how much was checked: charts, renders and versions of Kubernetes."""
    from chartgen.data.compatibility import version

    renders = [each for done in checked for each in done.renders]
    parts = [f"{counted(len(renders), 'render')} for Kubernetes {' and '.join(sorted({*renders}, key=version))}"]
    unchanged = sum(done.steps is None for done in checked)
    parts = [*(parts if renders else []), *([f"{unchanged} unchanged since the last lint"] if unchanged else [])]
    note(f"checked {counted(len(checked), 'chart')}: {', '.join(parts) or 'nothing to render'}")


def _list(form: str) -> None:
    """Print all rules of lint: id, level, severity and description."""
    from chartgen.linter.catalogue import rules_of_lint
    from chartgen.linter.rules import level_of

    entries = rules_of_lint()
    if form == "json":
        rows = [
            {"rule": entry.id, "level": level_of(entry.id), "severity": entry.severity, "meaning": entry.meaning}
            for entry in entries
        ]
        show_answer("rules/v1", {"rules": rows})
        return
    for entry in entries:
        click.echo(f"{entry.id:<32}  {level_of(entry.id):<6}  {entry.severity:<9}  {entry.meaning}")


def _show(findings: Sequence[Finding]) -> None:
    """Print findings below their file, and their number."""
    from chartgen.reports import counts, finding_path, line_of

    last = None
    for finding in findings:
        file = finding_path(finding)
        if file != last and file:
            click.secho(file, bold=True)
        last = file
        colour = "red" if finding.severity == "error" else "yellow"
        number = str(finding.problem.line) if finding.problem.line else "-"
        click.echo(f"  {number:>5}  {click.style(f'{finding.severity:<9}', fg=colour)}  {line_of(finding)}")
    click.echo(counts(findings))


def _write(text: str, file: Path | None) -> None:
    from chartgen.files import write_whole

    if file is None:
        emit(text, nl=False)
    else:
        write_whole(file, text)


def _write_baseline(findings: Sequence[Finding], file: Path) -> None:
    from chartgen.linter.selection import NEVER, baseline_text

    known = [finding for finding in findings if finding.rule not in NEVER]
    _write(baseline_text(known, file.parent), file)
    note(f"{file} knows {len(known)} findings")
