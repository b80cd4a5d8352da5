"""Map data, tokenizer, checkpoints and logs of a recipe to chartgen's storage roles and further mounts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from chartgen.helm.yaml import Keys
from chartgen.linter.recipes.document import Recipe

_GCS = "gcsfuse.csi.storage.gke.io"
# Paths of checkpoints and results in the recipes' scripts (src/launchers/nemo-10-launcher.sh, nemo-training-v2).
_CHECKPOINTS = (("workload", "checkpointsRootDir"), "CHECKPOINTS_ROOT_DIR")
_RESULTS = (("workload", "experimentRootDir"), "EXPERIMENT_ROOT_DIR", "EXPLICIT_LOG_DIR")


@dataclass
class Mount:
    """One volume of a recipe's pods.

    Args:
        keys: Its place in the values.
        kind: `gs` or `pvc`.
        name: Bucket or claim; empty if the recipe leaves it to the user.
        path: Mount path in the pods.
        options: Mount options.
    """

    keys: Keys
    kind: str
    name: str
    path: str
    options: str

    def holds(self, path: str) -> bool:
        """Report whether a path of the recipe lies in this volume."""
        return PurePosixPath(path).is_relative_to(self.path)


class Storage:
    """Storage of the converted run; `place` maps a path of the recipe to it."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.mounts = list(_mounts(recipe))
        self.scratch = str(recipe.take("volumes", "ssdMountPath") or "")
        self.download = recipe.map("gcsDownload")
        self.staged = False
        self._roles: dict[str, Mount] = {}
        self._extra: list[Mount] = []
        self._bucket = ""

    def assign(self, prefixes: Iterable[str], tokenizer: str, *, checkpoints: bool) -> None:
        """Assign a role to each volume that the run uses; a second volume of a role keeps its path."""
        prefixes = list(prefixes)
        kept = self._named(_CHECKPOINTS)
        outputs = self._mount_of(kept) if checkpoints else None
        results = self._mount_of(self._named(_RESULTS)) or next(
            (each for each in self.mounts if "log" in each.path), None
        )
        self._role("outputs", outputs or results)
        if outputs and results and outputs is not results:
            self.recipe.leave(results.keys, f"({results.path}) is not mounted", "logs go to /outputs, with checkpoints")
        self._download(prefixes)
        for path in filter(None, (*prefixes, tokenizer)):
            mount = self._mount_of(path)
            if mount and mount not in (*self._roles.values(), *self._extra):
                if "data" in self._roles or self._bucket:
                    self._extra.append(mount)
                else:
                    self._role("data", mount)
        for mount in self.mounts:
            if mount not in (*self._roles.values(), *self._extra, results, outputs):
                message = f"({mount.name or 'no name'} at {mount.path or 'no path'}) is not mounted"
                self.recipe.leave(mount.keys, message, "nothing of the configuration is there; see extraVolumes")

    def place(self, path: str) -> str:
        """Return a recipe's path in the converted run's pods; empty when it is not in any volume."""
        if self._bucket and self._downloaded(path):
            return f"/data/{PurePosixPath(path).relative_to(self.download['target'])}"
        for role, mount in self._roles.items():
            if mount.holds(path):
                return str(PurePosixPath(f"/{role}") / PurePosixPath(path).relative_to(mount.path))
        if any(mount.holds(path) for mount in self._extra):
            return path
        if self.scratch and PurePosixPath(path).is_relative_to(self.scratch):
            return str(PurePosixPath("/scratch") / PurePosixPath(path).relative_to(self.scratch))
        return ""

    def is_own(self, text: str) -> bool:
        """Report whether a text is a path in one of the recipe's volumes."""
        paths = [*(mount.path for mount in self.mounts), self.scratch]
        return any(path and PurePosixPath(text).is_relative_to(path) for path in paths)

    def site(self) -> dict[str, Any]:
        """Return the values of the storage, and leave the names that the site must state."""
        storage: dict[str, Any] = {}
        for role, mount in self._roles.items():
            if mount.name:
                options = {"mountOptions": mount.options} if mount.options else {}
                storage[role] = {"from": f"{mount.kind}://{mount.name}", **options}
            else:
                hint = f"set storage.{role}.from to {mount.kind}://NAME in your site file"
                self.recipe.leave(mount.keys, "has no name, by design", hint)
        if self._bucket:
            storage["data"] = {"from": self._bucket, "mountOptions": "implicit-dirs", "readOnly": True}
        if self.scratch:
            storage["scratch"] = {"from": "disk://"}
        made: dict[str, Any] = {"storage": storage} if storage else {}
        if self._extra:
            made["extraVolumes"] = [_volume(mount) for mount in self._extra]
            made["extraVolumeMounts"] = [{"name": _name(each), "mountPath": each.path} for each in self._extra]
        return made

    def stand_ins(self) -> list[str]:
        """Return flags with placeholders for the names that the site must state, for a check without them."""
        return [f"storage.{role}.from={each.kind}://name" for role, each in self._roles.items() if not each.name]

    @property
    def annotations(self) -> dict[str, str]:
        """Return annotations that mount buckets when no storage role is a bucket."""
        fuse = bool(self.recipe.take("volumes", "gcsVolumes"))
        roles = bool(self._bucket) or any(mount.kind == "gs" for mount in self._roles.values())
        return {"gke-gcsfuse/volumes": "true"} if fuse and not roles else {}

    def _named(self, names: tuple[tuple[str, str] | str, ...]) -> str:
        found = (
            str(self.recipe.take(*each) or "") if isinstance(each, tuple) else self.recipe.variable(each)
            for each in names
        )
        return next(filter(None, found), "")

    def _mount_of(self, path: str) -> Mount | None:
        holding = [mount for mount in self.mounts if path and mount.path and mount.holds(path)]
        return max(holding, key=lambda mount: len(mount.path), default=None)

    def _role(self, role: str, mount: Mount | None) -> None:
        if mount:
            self._roles[role] = mount

    def _download(self, prefixes: list[str]) -> None:
        """Handle recipes that first copy a folder of a bucket to the local disks, as data.stage does."""
        source, target = (str(self.download.get(key) or "") for key in ("source", "target"))
        if not source or not target:
            return
        if source.startswith("gs://") and prefixes and all(map(self._downloaded, prefixes)):
            self._bucket, self.staged = source.rstrip("/"), True
        else:
            self.recipe.leave(
                ("gcsDownload",), f"({source} to {target}) is not copied", "no data set is read from there"
            )

    def _downloaded(self, path: str) -> bool:
        target = str(self.download.get("target") or "")
        return bool(target) and PurePosixPath(path).is_relative_to(target)


def _mounts(recipe: Recipe) -> Iterator[Mount]:
    for key, kind, name in (("gcsMounts", "gs", "bucketName"), ("pvcMounts", "pvc", "claimName")):
        for keys, entry in recipe.items("volumes", key):
            path, options = str(entry.get("mountPath") or ""), str(entry.get("mountOptions") or "")
            yield Mount(keys, kind, str(entry.get(name) or ""), path, options)


def _name(mount: Mount) -> str:
    return f"recipe{re.sub('[^a-z0-9]+', '-', mount.path.lower())}".rstrip("-")


def _volume(mount: Mount) -> dict[str, Any]:
    if mount.kind == "pvc":
        return {"name": _name(mount), "persistentVolumeClaim": {"claimName": mount.name}}
    options = {"mountOptions": mount.options} if mount.options else {}
    attributes = {"bucketName": mount.name, **options}
    return {"name": _name(mount), "csi": {"driver": _GCS, "volumeAttributes": attributes}}
