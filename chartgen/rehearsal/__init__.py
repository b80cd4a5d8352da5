"""Rehearsals: a release on a real, throw-away Kubernetes control plane with simulated machines.

Modules: engines (programs and their locations), engine_download (downloads them, or lets engine_build
build them), controlplane, processes and supervisor (run them), controllers, simulated_nodes,
foreign (what a real cluster has already), and sandbox (a persistent control plane).
"""
