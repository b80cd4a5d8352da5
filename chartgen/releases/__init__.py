"""Safe changes of releases: previewed, rejected before anything changes, recoverable at any point."""
