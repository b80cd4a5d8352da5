"""Why a run ended: one verdict from logs, exit codes, stacks and the Flight Recorder, with or without a cluster."""
