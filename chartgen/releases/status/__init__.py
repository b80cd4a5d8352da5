"""What runs in a cluster: the runs of a release, their pods and queues, and what they say of themselves."""
