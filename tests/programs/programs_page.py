"""The page that says which programs train the models of the presets."""

from __future__ import annotations

from chartgen.composer.library import open_library
from chartgen.composer.presets import VALUES, presets, programs

_TEXT = """# Programs of the presets

A preset names one program. `--set launcher=NAME` trains its model with another one:

```sh
chartgen check gke-a3ultra --preset llama3-8b -f site.yaml --set launcher=automodel
```

- A program that builds models from sizes gets those of the preset.
- One with models of its own gets the overlay `values/LAUNCHER/PRESET.yaml`: it names the recipe, tokenizer and weights,
  and resets what the program has no option for. The target's overlay, a layout of the preset's own program, does not
  apply then. Plain Helm takes both files: `-f values/llama3-8b.yaml -f values/automodel/llama3-8b.yaml`.
- Commands list the settings that the preset has for its own program alone, such as `config.model.hidden_dropout`.
- Your own overlays are in `values/LAUNCHER` of a folder of `--path`.

| preset | its own program | others, by sizes | others, by overlay |
|---|---|---|---|
"""


def programs_page() -> str:
    """Return the page docs/reference/programs.md."""
    library = open_library(settings=False)
    rows = []
    for name in presets(library):
        own, *others = programs(name, library) or [""]
        by_overlay = [each for each in others if (VALUES / each / f"{name}.yaml").is_file()]
        by_sizes = [each for each in others if each not in by_overlay]
        cells = (f"`{name}`", *(", ".join(map("`{}`".format, each)) or "-" for each in ([own], by_sizes, by_overlay)))
        rows += [f"| {' | '.join(cells)} |\n"] if own and own != "nccl-test" else []
    return _TEXT + "".join(rows)
