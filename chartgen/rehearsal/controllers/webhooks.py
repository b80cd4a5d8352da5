"""Shared parts of the controllers: connections of the API server to their webhooks, and certificates."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from chartgen.kube import ClusterError, Kind, Object
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.probes import answers

Client = Callable[[str], Object]


def namespace_object(name: str) -> Object:
    """Return the manifest of a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def serve_by_url(plane: ControlPlane, folder: Path) -> Callable[[int], Client]:
    """Put a certificate into a folder, and return a maker of client configurations for webhooks that serve with it.

    The API server's self-signed certificate is valid for 127.0.0.1, and its file contains its signing authority.
    """
    folder.mkdir(parents=True)
    for suffix in ("crt", "key"):
        shutil.copyfile(plane.folder / "apiserver" / f"apiserver.{suffix}", folder / f"tls.{suffix}")
    authority = base64.b64encode((folder / "tls.crt").read_bytes()).decode()
    return lambda port: lambda path: {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}


def serve_by_service(space: str, name: str) -> Callable[[int], Client]:
    """Return the client configuration of webhooks behind a Service; see `loopback_service`."""
    return lambda port: lambda path: {"service": {"namespace": space, "name": name, "path": path, "port": port}}


def loopback_service(space: str, name: str) -> Object:
    """Return a Service that directs the API server to this machine; this type of Service needs no DNS."""
    metadata, spec = {"namespace": space, "name": name}, {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def redirect(configuration: Object, client: Client) -> None:
    """Replace the client configuration of each webhook, and keep its path."""
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"] = client(webhook["clientConfig"]["service"]["path"])


def is_ready(ports: Sequence[int]) -> bool:
    """Report whether a controller is ready according to the second of its ports."""
    return answers(f"http://127.0.0.1:{ports[1]}/readyz")


def serves(plane: ControlPlane, kind: Kind, probe: Object, ports: Sequence[int]) -> bool:
    """Report whether a controller is ready and its webhooks answer: it may report ready before they have paths."""
    return is_ready(ports) and accepts(plane, kind, probe)


def accepts(plane: ControlPlane, kind: Kind, item: Object) -> bool:
    """Report whether the API server reaches the webhooks of a kind, TLS included, with a valid object."""
    try:
        plane.cluster.create(kind, {"apiVersion": kind.api_version, "kind": kind.name, **item}, dry_run=True)
    except ClusterError:
        return False
    return True
