"""Rehearsals: a release on a real, throw-away Kubernetes control plane with simulated machines.

Modules: engines (programs and their locations), engine_get (gets them by engine_download or
engine_build), controlplane, processes and supervisor (run them), controllers, simulated_nodes,
references and foreign_kinds (what a real cluster has already), and sandbox (a persistent control plane).
"""
