"""Packed facts, each row with its source, and their loaders."""
