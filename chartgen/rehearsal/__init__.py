"""Rehearsals: a release on a real, throw-away Kubernetes control plane with simulated machines.

Modules: engines (which programs, where), build (making them), controlplane, processes and supervisor (running them),
controllers (one module each), machines (simulated nodes), and sandbox (one that stays).
"""
