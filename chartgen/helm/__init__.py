"""Parts that must behave exactly like Helm: values, `--set`, YAML, schemas, charts, and the Helm program."""
