"""Compose targets, fragments, launchers and workload kinds into one chart for each target."""
