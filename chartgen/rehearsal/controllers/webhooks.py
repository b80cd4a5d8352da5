"""What the controllers share: how the API server reaches their webhooks on this machine, and their certificates."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from chartgen.kube import ClusterError, Kind, Object
from chartgen.rehearsal.controlplane import ControlPlane, answers

Client = Callable[[str], Object]


def namespace(name: str) -> Object:
    """Return the manifest of a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def serve_by_url(plane: ControlPlane, folder: Path) -> Callable[[int], Client]:
    """Put a certificate into a folder, and give the client configuration of webhooks that serve with it.

    The API server's self-signed certificate is valid for 127.0.0.1, and its file holds the authority that signed it.
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
    """Return a Service that leads the API server to this machine: it asks no DNS for this type of Service."""
    metadata, spec = {"namespace": space, "name": name}, {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def redirect(configuration: Object, client: Client) -> None:
    """Let the webhooks of a configuration be reached in another way, each by its own path."""
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"] = client(webhook["clientConfig"]["service"]["path"])


def is_ready(ports: Sequence[int]) -> bool:
    """Report whether a controller says that it is ready, on the second of its ports."""
    return answers(f"http://127.0.0.1:{ports[1]}/readyz")


def accepts(plane: ControlPlane, kind: Kind, item: Object) -> bool:
    """Report whether the API server reaches the webhooks of a kind, authority and all, with an object that is valid."""
    try:
        plane.cluster.create(kind, {"apiVersion": kind.api_version, "kind": kind.name, **item}, dry_run=True)
    except ClusterError:
        return False
    return True
