"""Figures from events: facts of a run, its window, operations, timeline and cost."""
