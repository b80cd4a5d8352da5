"""State of a release in a cluster: its runs, their pods, queues, events and logs."""
