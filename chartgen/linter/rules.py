"""All lint rules in one table: the functions that inspect objects, and the findings of whole steps."""

from __future__ import annotations

from chartgen.findings import LEFT_OUT, NOT_RENDERED, UNFINISHED, Level, Rule
from chartgen.linter.api_schemas import kinds_are_known, kinds_are_served, objects_fit_their_schema
from chartgen.linter.dependencies import DEPENDENCIES
from chartgen.linter.dumps import environment_is_not_printed
from chartgen.linter.machines import EACH_TYPE, FABRIC, ONE_MACHINE
from chartgen.linter.names import names_are_set, values_are_printed
from chartgen.linter.placement import LABELS, LEVELS, RESOURCES, TAINTS
from chartgen.linter.policy import POLICY
from chartgen.linter.schema_references import FOREIGN
from chartgen.linter.scripts import scripts_are_sound, scripts_parse
from chartgen.linter.size import configmaps_fit
from chartgen.linter.structure import RULES as STRUCTURE
from chartgen.linter.tokens import TOKENS
from chartgen.linter.unknown_values import UNKNOWN_VALUES
from chartgen.linter.wiring import WIRING

# Good practice: a chart without it still installs, upgrades and runs. All other rules report what breaks.
STYLE = frozenset(
    (
        *("standard-labels", "security-context-is-explicit", "quantities-are-text", "limits-are-set"),
        *("no-host-access", "no-added-capabilities", "no-unconfined-containers", "tokens-are-not-mounted"),
        *("readme-names-values", "schema-describes-values", "no-banned-functions", "helm-lint-strict"),
        *("scripts-are-sound", "images-are-pinned", "finished-jobs-expire", "volumes-are-used"),
    )
)
SCHEMAS = "kubernetes schemas"
UNIQUE = "keys-are-unique"
_SCHEMAS = "chartgen/data/schemas.yaml"
RULES = (
    *STRUCTURE,
    Rule.of(names_are_set, "kubernetes.io, API reference, Pod", step="structure"),
    Rule.of(
        values_are_printed,
        "pkg.go.dev/fmt, Format errors",
        step="structure",
        remedy="correct the name of the value in the template, or give the value",
    ),
    *WIRING,
    Rule.of(environment_is_not_printed, step="wiring"),
    *POLICY,
    Rule.of(objects_fit_their_schema, _SCHEMAS, step=SCHEMAS, remedy="write its …"),
    Rule.of(kinds_are_served, _SCHEMAS, step=SCHEMAS, remedy="use a version of the API that it serves"),
    Rule.of(
        kinds_are_known,
        _SCHEMAS,
        severity="unchecked",
        step=SCHEMAS,
        remedy="rehearse it, or ignore the finding with the reason",
    ),
    Rule.of(scripts_parse, "bash -n", step="scripts", remedy="correct the script"),
    Rule.of(
        scripts_are_sound,
        "shellcheck --severity=warning",
        severity="warning",
        step="scripts",
        remedy="correct the script",
    ),
    Rule.of(configmaps_fit, "kubernetes.io, ConfigMaps", step="release size", remedy="move the data to a volume"),
)

STEP_RULES = (
    *(DEPENDENCIES, EACH_TYPE, FABRIC, FOREIGN, LABELS, LEVELS, ONE_MACHINE, RESOURCES, TAINTS, TOKENS, UNKNOWN_VALUES),
    Rule(
        "chart-files",
        "Helm cannot or must not read a file: a broken Chart.yaml, a link out of the chart, a circle, a huge file.",
        "correct or remove the file, or replace a link by a copy; until then, Helm is not run",
        "helm.sh/helm/v4, pkg/chart/loader/archive",
    ),
    Rule(
        UNFINISHED,
        "A step of lint, or the lint of a whole chart, took more time or memory than it may, or failed.",
        "make the chart smaller, give it more time, or correct what the message names; the rest was not checked",
        "chartgen/linter/limits.py",
    ),
    Rule(
        "helm-lint",
        "Helm's own lint finds an error, or warns of an object that an API server refuses.",
        "correct the file that Helm names",
        "helm lint",
    ),
    Rule(
        "helm-lint-strict",
        "Helm's own lint warns of an old API version in a template, or of something beside the templates, which "
        "`helm lint --strict` counts as an error.",
        "correct the file that Helm names",
        "helm lint --strict",
    ),
    Rule(
        LEFT_OUT,
        "A chart, or the presets of a linted folder, were not checked: the repository's own settings leave them out, "
        "they are not where lint looks for charts, or the time of the call ended.",
        "name the chart on the command line; give more time with --deadline",
        severity="unchecked",
    ),
    Rule(
        NOT_RENDERED,
        "The chart asks its user for values, includes templates of subcharts that are not in charts/, or has a link to "
        "another folder of the checkout: nothing was rendered, and so nothing of what it installs was checked.",
        f"give values with -f, or keep some in ci/*-values.yaml; or {DEPENDENCIES.remedy}",
        severity="unchecked",
    ),
    Rule(
        "helm-template",
        "Helm cannot render the chart with a preset or for a Kubernetes version, or the chart refuses the values.",
        "change the value or the template that the message names",
        "helm template",
    ),
    Rule(
        UNIQUE,
        "A map of an object or of values.yaml has a key twice with different values, of which Helm takes the last.",
        "keep one of the two",
        "sigs.k8s.io/yaml, YAMLToJSON",
    ),
    Rule(
        "no-banned-functions",
        "A template calls a function whose result differs from render to render, or between Helm and GitOps tools.",
        "take what it gives from the values",
    ),
    Rule(
        "renders-are-identical",
        "Two renders of the same values differ, or those for an install and for an upgrade: an upgrade that changes "
        "nothing changes objects, and tools that render for themselves, such as Argo CD, never come to rest.",
        "take from the values what depends on the time, on chance, on a cluster or on .Release.IsUpgrade",
    ),
    Rule(
        "chart-is-as-built",
        "A chart of a target differs from what chartgen builds: edited by hand, or older than its fragments.",
        "change the target or a fragment, and build the chart again",
        severity="warning",
    ),
    Rule(
        "release-fits",
        "The chart and its manifests do not fit into the Secret in which Helm keeps a release.",
        "move data out of the chart, to a volume or an image",
        "helm.sh, Advanced Helm Techniques, Storage backends",
    ),
    Rule(
        "values-are-used",
        "A key of values.yaml is used by no template, so that setting it changes nothing.",
        "remove the key, or use it",
        severity="warning",
    ),
    Rule(
        "readme-names-values",
        "A key of values.yaml is not in the README, so that users do not find it.",
        "describe the key in the README",
        severity="warning",
    ),
    Rule(
        "schema-describes-values",
        "A key of values.yaml is not in values.schema.json, so that wrong values of it pass.",
        "describe the key in the schema",
        severity="warning",
    ),
    Rule(
        "ignore-has-reason",
        "A comment that ignores a rule gives no reason; it has no effect.",
        "write the reason behind the brackets",
    ),
)


def level_of(rule: str) -> Level:
    """Return the level of a rule by its id."""
    return "style" if rule in STYLE else "breaks"
