"""Whatever has to behave exactly as Helm does: values, `--set`, YAML, schemas, charts, and the program itself."""
