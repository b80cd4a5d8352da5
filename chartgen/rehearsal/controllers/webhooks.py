"""Shared parts of the controllers: connections of the API server to their webhooks, and certificates."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from pathlib import Path

from chartgen.kube import ClusterError, Kind, Object
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane

Client = Callable[[str], Object]


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


def webhooks_of(engine: str, prefix: str = "") -> list[Object]:
    """Return the webhook configurations of an engine.

    Args:
        prefix: Before the installer's names, under which a certificate rotator would replace the authority.
    """
    objects = [item for file in engines.engine(engine).data for item in engines.engine_objects(engine, file)]
    found = [item for item in objects if item["kind"].endswith("WebhookConfiguration")]
    for configuration in found:
        configuration["metadata"] = {"name": f"{prefix}{configuration['metadata']['name']}"}
    return found


def redirect(configurations: list[Object], client: Client) -> None:
    """Replace the client configuration of each webhook, and keep its path."""
    for webhook in (webhook for each in configurations for webhook in each["webhooks"]):
        webhook["clientConfig"] = client(webhook["clientConfig"]["service"]["path"])


def accepts(plane: ControlPlane, kind: Kind, item: Object) -> bool:
    """Report whether the API server reaches the webhooks of a kind, TLS included, with a valid object."""
    try:
        plane.cluster.create(kind, {"apiVersion": kind.api_version, "kind": kind.name, **item}, dry_run=True)
    except ClusterError:
        return False
    return True
