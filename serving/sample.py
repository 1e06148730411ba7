"""Inspect a sample board on a running server, as a first visitor would."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_vit.errors import ConfigError

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class SampleAnswer:
    """What the server answered about one sample pair."""

    image: Path
    reference: Path
    report: dict[str, Any]
    overlay: Path


def find_sample(folder: Path) -> tuple[Path, Path]:
    """The first board of a folder that has its golden reference beside it: X_test.png with X_temp.png.

    Raises:
        ConfigError: there is none.
    """
    for image in sorted(folder.glob("*_test.*")):
        reference = image.with_name(image.name.replace("_test.", "_temp."))
        if reference.is_file():
            return image, reference
    raise ConfigError(
        f"no sample pair in {folder}; wanted two pictures named as board_test.png and board_temp.png"
    )


def inspect_sample(url: str, folder: Path, *, out: Path) -> SampleAnswer:
    """Post the first pair of a folder to the server at `url` and save the overlay it draws under `out`.

    Raises:
        ConfigError: no pair in the folder, or the server does not answer as it should.
    """
    image, reference = find_sample(folder)
    body, content_type = _multipart({"image": image, "reference": reference})
    request = urllib.request.Request(f"{url}/v1/inspect", data=body, headers={"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            report: dict[str, Any] = json.load(response)
        with urllib.request.urlopen(f"{url}{report['links']['overlay']}", timeout=TIMEOUT_S) as response:
            picture = response.read()
    except urllib.error.HTTPError as error:
        raise ConfigError(
            f"{error.url} answered {error.code}: {error.read().decode(errors='replace')}"
        ) from error
    except OSError as error:
        raise ConfigError(f"no answer from {url}: {error}") from error
    out.mkdir(parents=True, exist_ok=True)
    overlay = out / f"{image.stem}_overlay.png"
    overlay.write_bytes(picture)
    return SampleAnswer(image, reference, report, overlay)


def _multipart(files: dict[str, Path]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{path.name}"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n".encode()
        + path.read_bytes()
        + b"\r\n"
        for field, path in files.items()
    ]
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
