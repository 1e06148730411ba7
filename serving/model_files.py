"""Model versions on disk: HOME/models/VERSION holds model.safetensors, manifest.json and maybe report.json.

A folder appears whole with one rename and is never changed. Its manifest has the SHA-256 of each file, which
are checked again whenever the version is loaded or promoted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from inspect_vit.config import Frozen
from inspect_vit.errors import CheckpointError
from serving.errors import ModelRefusedError, NotFoundError, VersionGoneError

if TYPE_CHECKING:
    from inspect_vit.checkpoint import CheckpointMetadata

MODEL, MANIFEST, REPORT = "model.safetensors", "manifest.json", "report.json"
HALF_WRITTEN = ".writing-"
CHUNK = 1 << 20
_VERSION = re.compile(r"[0-9a-f]{12}")


class Manifest(Frozen):
    """What a version's folder holds and where it came from."""

    format: Literal[1] = 1
    version: str
    name: str
    parent: str | None
    added: str
    actor: str
    files: dict[str, str]
    """Name to SHA-256, the manifest itself left out."""


def folder_of(home: Path, version: str) -> Path:
    """Where the files of a version lie. Raises NotFoundError for what cannot be a version."""
    if not _VERSION.fullmatch(version):
        raise NotFoundError(
            f"{version[:40]!r} is no model version, which is 12 hex digits",
            hint="GET /v1/models or inspect-vit models list shows those there are",
        )
    return home / "models" / version


def write_version(
    home: Path,
    checkpoint: Path,
    *,
    parent: str | None,
    added: str,
    actor: str,
    report: dict[str, Any] | None,
) -> CheckpointMetadata:
    """Copy a checkpoint into the folder of its version; when this returns it is on disk.

    What is checked is the copy. A folder that is there and whole stays as it is, a damaged one is replaced.

    Raises:
        CheckpointError: the file cannot be loaded.
        ModelRefusedError: the version is there with other thresholds or another need of a reference.
        OSError: nothing half-written stays.
    """
    from inspect_vit.checkpoint import load_checkpoint

    root = home / "models"
    root.mkdir(parents=True, exist_ok=True)
    staging = root / f"{HALF_WRITTEN}{secrets.token_hex(8)}"
    staging.mkdir()
    try:
        _copy(checkpoint, staging / MODEL)
        try:
            metadata = load_checkpoint(staging / MODEL)[1]
        except CheckpointError as error:
            raise CheckpointError(str(error).replace(str(staging / MODEL), str(checkpoint))) from error
        if report is not None:
            _write(staging / REPORT, json.dumps(report, indent=2, allow_nan=False).encode())
        manifest = Manifest(
            version=metadata.version,
            name=metadata.name,
            parent=parent,
            added=added,
            actor=actor,
            files={path.name: sha256_of(path) for path in sorted(staging.iterdir())},
        )
        _write(staging / MANIFEST, manifest.model_dump_json(indent=2).encode())
        _sync(staging)
        return _put(staging, home, metadata)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_version(home: Path, version: str) -> Path:
    """The model file of a version whose folder is as it was written.

    Raises:
        VersionGoneError: the folder is not there.
        ModelRefusedError: a file is missing, cut short or changed.
    """
    folder = folder_of(home, version)
    if not folder.is_dir():
        raise VersionGoneError(
            f"model version {version} is not on this server: there is no folder {folder}",
            hint="inspect-vit models add FILE brings it back, with the checkpoint it came from",
        )
    manifest = read_manifest(folder)
    for name, wanted in {MODEL: "", **manifest.files}.items():
        try:
            found = sha256_of(folder / name)
        except OSError as error:
            raise _corrupt(folder, f"{name} cannot be read: {error.strerror}") from error
        if found != wanted:
            raise _corrupt(folder, f"the SHA-256 of {name} is not the one in {MANIFEST}")
    return folder / MODEL


def read_manifest(folder: Path) -> Manifest:
    """Raises ModelRefusedError: not there, not readable, or of another version."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise _corrupt(folder, f"{MANIFEST} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise _corrupt(folder, f"{MANIFEST} is not valid") from error
    if manifest.version != folder.name:
        raise _corrupt(folder, f"{MANIFEST} is of version {manifest.version}")
    return manifest


def sweep_half_written(home: Path) -> int:
    """Remove what a process that died while adding left. Only for a home that nobody else uses."""
    found = list((home / "models").glob(f"{HALF_WRITTEN}*"))
    for folder in found:
        shutil.rmtree(folder)
    return len(found)


def _put(staging: Path, home: Path, metadata: CheckpointMetadata) -> CheckpointMetadata:
    """Rename the folder into place, unless a whole one is there; returns the metadata of what is there."""
    from inspect_vit.checkpoint import load_checkpoint

    folder = folder_of(home, metadata.version)
    try:
        there = load_checkpoint(check_version(home, metadata.version))[1]
    except VersionGoneError:
        pass
    except (ModelRefusedError, CheckpointError):
        # Renamed first: a reader finds a whole folder or none.
        aside = folder.with_name(f"{HALF_WRITTEN}{secrets.token_hex(8)}")
        folder.replace(aside)
        shutil.rmtree(aside)
    else:
        if (there.thresholds, there.needs_reference) != (metadata.thresholds, metadata.needs_reference):
            raise ModelRefusedError(
                f"model version {metadata.version} is in the store with other thresholds, or with another "
                "need of a reference, and a version never changes",
                hint="other thresholds for the same weights are a calibration: inspect-vit calibrate",
            )
        return there
    try:
        staging.replace(folder)
    except OSError:
        if not folder.is_dir():
            raise
        check_version(home, metadata.version)  # Another process added it meanwhile.
    _sync(folder.parent)
    return metadata


def _corrupt(folder: Path, fault: str) -> ModelRefusedError:
    return ModelRefusedError(
        f"model version {folder.name} is corrupt: {fault}, in {folder}",
        hint="inspect-vit models add FILE replaces it, with the checkpoint it came from",
    )


def _copy(source: Path, target: Path) -> None:
    try:
        with source.open("rb") as reading, target.open("xb") as writing:
            shutil.copyfileobj(reading, writing, CHUNK)
            writing.flush()
            os.fsync(writing.fileno())
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise CheckpointError(f"cannot read the checkpoint {source}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
