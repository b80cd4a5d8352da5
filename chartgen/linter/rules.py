"""All rules of lint in one table: the functions that look at objects, and the findings of whole steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chartgen.findings import NOT_RENDERED, TARGET_UNKNOWN, Level, Severity
from chartgen.linter.api_schemas import kinds_are_known, kinds_are_served, objects_fit_their_schema
from chartgen.linter.dependencies import HINT as DEPENDENCIES_HINT
from chartgen.linter.dependencies import RULE as DEPENDENCIES
from chartgen.linter.dumps import environment_is_not_printed
from chartgen.linter.limits import UNFINISHED
from chartgen.linter.names import names_are_set
from chartgen.linter.policy import POLICY
from chartgen.linter.schema_references import RULE as FOREIGN
from chartgen.linter.scripts import scripts_are_sound, scripts_parse
from chartgen.linter.size import configmaps_fit
from chartgen.linter.structure import RULES as STRUCTURE
from chartgen.linter.tokens import RULE as TOKENS
from chartgen.linter.wiring import WIRING


@dataclass(frozen=True)
class Rule:
    """A rule that is a function: its docstring says what it asks for, the hints in its code what to do.

    Args:
        check: Takes a rendered object, or all objects of a release, and yields what is wrong.
        step: The step that it belongs to.
        severity: Whether it fails the chart.
        source: Where the limit comes from; empty when it is chartgen's own.
    """

    check: Callable[..., Any]
    step: str
    severity: Severity = "error"
    source: str = ""

    @property
    def id(self) -> str:
        """The stable id: the function's name with dashes."""
        return rule_id(self.check)


@dataclass(frozen=True)
class StepRule:
    """A finding of a whole step, which no single function stands for.

    Args:
        id: The stable id.
        meaning: What is looked for, and why.
        remedy: What to do.
        source: Where the limit comes from; empty when it is chartgen's own.
        severity: Whether it fails the chart.
    """

    id: str
    meaning: str
    remedy: str
    source: str = ""
    severity: Severity = "error"


def rule_id(check: Callable[..., object]) -> str:
    """Return the stable id of a rule: its name with dashes."""
    return check.__name__.replace("_", "-")


# Good practice: a chart without it installs, upgrades and runs all the same. Every other rule is about what breaks.
STYLE = frozenset(
    (
        *("standard-labels", "security-context-is-explicit", "quantities-are-text", "limits-are-set"),
        *("no-privileged-containers", "no-host-access", "no-added-capabilities", "tokens-are-not-mounted"),
        *("readme-names-values", "schema-describes-values", "no-banned-functions", "helm-lint-strict"),
        # System daemons of others mount such folders for a living; of chartgen's own charts it is always reported.
        *("scripts-are-sound", "images-are-pinned", "no-system-folders", "finished-jobs-expire"),
    )
)
SCHEMAS = "kubernetes schemas"
UNIQUE = "keys-are-unique"
_SCHEMAS = "chartgen/data/schemas.yaml"
RULES = (
    *(Rule(check, "structure") for check in STRUCTURE),
    Rule(names_are_set, "structure", source="kubernetes.io, API reference, Pod"),
    *(Rule(check, "wiring") for check in WIRING),
    Rule(environment_is_not_printed, "wiring"),
    *(Rule(each.rule, "policy", each.severity) for each in POLICY),
    Rule(objects_fit_their_schema, SCHEMAS, source=_SCHEMAS),
    Rule(kinds_are_served, SCHEMAS, source=_SCHEMAS),
    Rule(kinds_are_known, SCHEMAS, "unchecked", _SCHEMAS),
    Rule(scripts_parse, "scripts", source="bash -n"),
    Rule(scripts_are_sound, "scripts", "warning", "shellcheck --severity=warning"),
    Rule(configmaps_fit, "release size", source="kubernetes.io, ConfigMaps"),
)

STEP_RULES = (
    StepRule(
        "chart-files",
        "Helm cannot or must not read a file: a broken Chart.yaml, a link out of the chart, a circle, a huge file.",
        "mend or remove the file, or copy what a link stands for; while one is left, Helm is not run",
        "helm.sh/helm/v4, pkg/chart/loader/archive",
    ),
    StepRule(
        UNFINISHED,
        "A step of lint, or the lint of a whole chart, took more time or memory than it may, or failed.",
        "make the chart smaller, or mend what the message names; what is behind it was not checked",
        "chartgen/linter/limits.py",
    ),
    StepRule(
        FOREIGN,
        "A JSON Schema of the chart or of a subchart refers to a URL or a file, which rendering the chart would fetch.",
        "copy what it refers to into the schema's definitions; until then the schema is not used",
        "santhosh-tekuri/jsonschema v6, the validator of Helm",
    ),
    StepRule(
        "helm-lint",
        "Helm's own lint finds an error, or warns of an object that an API server refuses.",
        "mend the file that Helm names",
        "helm lint",
    ),
    StepRule(
        "helm-lint-strict",
        "Helm's own lint warns of something beside the templates, which `helm lint --strict` counts as an error.",
        "mend the file that Helm names",
        "helm lint --strict",
    ),
    StepRule(
        DEPENDENCIES,
        "Subcharts that Chart.yaml names are not in charts/, so that the chart was checked without what they render.",
        DEPENDENCIES_HINT,
        severity="unchecked",
    ),
    StepRule(
        NOT_RENDERED,
        "The chart asks its user for values, or includes templates of subcharts that are not in charts/: nothing was "
        "rendered, and so nothing of what it installs was checked.",
        f"give values with -f, or keep some in ci/*-values.yaml; or {DEPENDENCIES_HINT}",
        severity="unchecked",
    ),
    StepRule(
        "helm-template",
        "Helm cannot render the chart with a preset or for a Kubernetes version, or the chart refuses the values.",
        "change the value or the template that the message names",
        "helm template",
    ),
    StepRule(
        UNIQUE,
        "A map of an object or of values.yaml has a key twice with different values, of which Helm takes the last.",
        "keep one of the two",
        "sigs.k8s.io/yaml, YAMLToJSON",
    ),
    StepRule(
        "no-banned-functions",
        "A template calls a function whose result differs from render to render, or between Helm and GitOps tools.",
        "take what it gives from the values",
    ),
    StepRule(
        "renders-are-identical",
        "Two renders of the same values differ, or those for an install and for an upgrade: an upgrade that changes "
        "nothing changes objects, and tools that render for themselves, such as Argo CD, never come to rest.",
        "take from the values what depends on the time, on chance, on a cluster or on .Release.IsUpgrade",
    ),
    StepRule(
        "chart-is-as-built",
        "A chart of a target differs from what chartgen builds: edited by hand, or older than its fragments.",
        "change the target or a fragment, and build the chart again",
        severity="warning",
    ),
    StepRule(
        "release-fits",
        "The chart and its manifests do not fit into the Secret in which Helm keeps a release.",
        "move data out of the chart, to a volume or an image",
        "helm.sh, Advanced Helm Techniques, Storage backends",
    ),
    StepRule(
        "values-are-used",
        "A key of values.yaml is used by no template, so that setting it changes nothing.",
        "remove the key, or use it",
        severity="warning",
    ),
    StepRule(
        "readme-names-values",
        "A key of values.yaml is not in the README, so that users do not find it.",
        "describe the key in the README",
        severity="warning",
    ),
    StepRule(
        "schema-describes-values",
        "A key of values.yaml is not in values.schema.json, so that wrong values of it pass.",
        "describe the key in the schema",
        severity="warning",
    ),
    StepRule(
        TOKENS,
        "A template writes a value that is called after a secret into a manifest, or values.yaml asks for one as text.",
        "keep it in a Secret, name that Secret in the values, and use valueFrom.secretKeyRef",
        "kubernetes.io, Good practices for Kubernetes Secrets",
    ),
    StepRule(
        "ignore-has-reason",
        "A comment that ignores a rule does not say why; it has no effect.",
        "write the reason behind the brackets",
    ),
)


def level_of(rule: str) -> Level:
    """Return the level of a rule by its id."""
    return "style" if rule in STYLE else "breaks"


def known_ids() -> set[str]:
    """Return the ids of all findings that lint can report, those of values included."""
    from chartgen.checks import CHECKS, SCHEMA
    from chartgen.checks.yaml_pitfalls import PITFALLS
    from chartgen.linter.recipes.rules import HANDWRITTEN

    functions = {*(each.id for each in CHECKS), *(each.id for each in PITFALLS), *(each.id for each in RULES)}
    return {SCHEMA, TARGET_UNKNOWN, *functions, *(each.id for each in STEP_RULES), *(each.id for each in HANDWRITTEN)}
