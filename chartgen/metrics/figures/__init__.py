"""Events to figures: facts of a run, its window, operations, timeline and cost."""
