"""Read logs into events: lines, times, the formats of programs, and the track of a run."""
