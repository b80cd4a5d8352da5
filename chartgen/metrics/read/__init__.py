"""Logs to events: lines, clocks, the formats of programs, and the track of a run."""
