"""Small pictures of what a check found, as JPEG, for its page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from inspect_vit.results import BoxXyxy
from training.checks.alignment import Picture
from training.checks.differences import to_grey
from training.checks.findings import Finding

PANEL_PX = 232
"""Side of a square panel; a whole picture is as high."""
EXAMPLE_PX = 112
CONTEXT = 2.5
"""Side of a crop over the longest side of its box."""
MIN_CROP_PX = 96
OVERLAY_PX = 256
"""Side of the crop in which a board is laid over its reference."""
COLOUR = (230, 0, 126)
"""RGB; on boards nothing is magenta."""
WHOLE = frozenset({"labels-rotated", "painted-labels", "turned-by-exif", "size-mismatch"})
"""Kinds that show in the whole picture with all its boxes."""
OVERLAID = frozenset({"reference-shifted", "reference-warped", "reference-mismatch", "many-differences"})
"""Kinds that show where board and reference are laid over each other."""


@dataclass(frozen=True)
class Panel:
    caption: str
    jpeg: bytes


def draw_panels(finding: Finding) -> list[Panel]:
    """The pictures that show a finding; none where they cannot be read."""
    if finding.examples:
        return [
            p for e in finding.examples if (p := _crop(e.caption, e.image, (e.box,), EXAMPLE_PX)) is not None
        ]
    if finding.image is None:
        return []
    other = finding.others[0] if finding.others else None
    if finding.kind in OVERLAID and other is not None:
        return [panel for panel in (_overlay(finding.image, other),) if panel is not None]
    panels = []
    for path in (finding.image, other):
        if path is not None and finding.boxes and finding.kind not in WHOLE:
            panels.append(_crop(path.name, path, finding.boxes, PANEL_PX))
        elif path is not None:
            # Our frames would hide the painted ones.
            boxes = () if finding.kind == "painted-labels" else finding.boxes
            panels.append(_whole(path.name, path, boxes))
    return [panel for panel in panels if panel is not None]


@lru_cache(maxsize=4)
def _read(path: Path) -> Picture | None:
    try:
        return read_image(path)[0]
    except ImageError:
        return None


def _crop(caption: str, path: Path, boxes: tuple[BoxXyxy, ...], side_px: int) -> Panel | None:
    """A square around the first box, with all boxes that reach into it."""
    picture = _read(path)
    if picture is None:
        return None
    left, top, right, bottom = boxes[0]
    side = round(max(CONTEXT * max(right - left, bottom - top), MIN_CROP_PX))
    side = min(side, max(picture.shape[:2]))
    x, y = round((left + right - side) / 2), round((top + bottom - side) / 2)
    window = _window(picture, x, y, side)
    scale = side_px / side
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST if scale > 2 else cv2.INTER_LINEAR
    panel = np.asarray(cv2.resize(window, (side_px, side_px), interpolation=method), np.uint8)
    for box in boxes:
        _draw(panel, np.array(box) - (x, y, x, y), scale, 2 if side_px > EXAMPLE_PX else 1)
    return Panel(caption, _encode(panel))


def _whole(caption: str, path: Path, boxes: tuple[BoxXyxy, ...]) -> Panel | None:
    picture = _read(path)
    if picture is None:
        return None
    scale = min(PANEL_PX / picture.shape[0], 2 * PANEL_PX / picture.shape[1])
    size = (max(round(picture.shape[1] * scale), 1), max(round(picture.shape[0] * scale), 1))
    panel = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    for box in boxes:
        _draw(panel, np.array(box), scale)
    return Panel(caption, _encode(panel))


def _overlay(image: Path, reference: Path) -> Panel | None:
    """Board red, reference green and blue: what agrees is grey. The part with most to see."""
    board, other = _read(image), _read(reference)
    if board is None or other is None or board.shape != other.shape:
        return None
    grey, reference_grey = to_grey(board), to_grey(other)
    mixed = np.dstack([grey, reference_grey, reference_grey])
    side = min(OVERLAY_PX, *grey.shape)
    corners = [
        ((grey.shape[1] - side) * column // 4, (grey.shape[0] - side) * row // 4)
        for row in range(5)
        for column in range(5)
    ]
    gaps = np.asarray(cv2.absdiff(grey, reference_grey), np.uint8)
    x, y = max(corners, key=lambda corner: float(_window(gaps, corner[0], corner[1], side).mean()))
    panel = cv2.resize(
        _window(mixed, x, y, side), (2 * OVERLAY_PX, 2 * OVERLAY_PX), interpolation=cv2.INTER_NEAREST
    )
    return Panel(f"{image.name} in red over {reference.name}", _encode(np.asarray(panel, np.uint8)))


def _window(picture: Picture, x: int, y: int, side: int) -> Picture:
    """A square; beyond the picture it is grey."""
    height, width = picture.shape[:2]
    window = np.full((side, side, *picture.shape[2:]), 128, np.uint8)
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + side, width), min(y + side, height)
    if right > left and bottom > top:
        window[top - y : bottom - y, left - x : right - x] = picture[top:bottom, left:right]
    return window


def _draw(panel: Picture, box: NDArray[np.float64], scale: float, thickness_px: int = 2) -> None:
    """A frame just outside the box, with a white rim so that it shows on any ground."""
    left, top, right, bottom = np.round(box * scale).astype(int).tolist()
    corners = (left - thickness_px, top - thickness_px), (right + thickness_px - 1, bottom + thickness_px - 1)
    cv2.rectangle(panel, *corners, (255, 255, 255), thickness_px + 1)
    cv2.rectangle(panel, *corners, COLOUR, thickness_px)


def _encode(panel: Picture) -> bytes:
    done, data = cv2.imencode(".jpg", panel[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 85])
    assert done
    return bytes(data)
