"""A second picture of the same good board: what a line sees when it inspects a board without a defect.

Binary scans as DeepPCB's get their edges redrawn. Of the two pixels along an edge, 17 to 42 % differ in a
pair there (deciles of the test pairs, in register to the pixel, away from defects); 17 to 32 % do here.
Photographs are taken again by training/camera.py.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.intake import is_binary_scan
from training.camera import retake
from training.imaging import Warp

SHIFT_PX = (1.0, 3.0)
EDGE_OFFSET_PX = 0.75
"""All copper wider or narrower by up to this, each side: another exposure or threshold."""
EDGE_NOISE_PX = (0.3, 0.6)
"""Standard deviation of the edge's position along the edge."""
BLUR_PX = (0.3, 0.6)
JPEG_QUALITY = (85, 95)
_EDGE_BLUR_PX = 1.0
_MAX_OFFSET = 100.0
"""Grey levels; under 127.5, so that noise moves edges and never draws a speck on plain ground."""


def is_scan(picture: NDArray[np.uint8]) -> bool:
    """Whether a picture, (H, W, 3) RGB or (H, W, 1), is a scan of two levels."""
    grey = _grey(picture)
    return is_binary_scan(np.bincount(grey.ravel(), minlength=256) / grey.size)


def reimage(
    picture: NDArray[np.uint8], rng: np.random.Generator, *, as_scan: bool | None = None
) -> tuple[NDArray[np.uint8], float]:
    """Take the picture again: moved by 1 to 3 px, imaged anew, JPEG.

    Args:
        picture: (H, W, 3) RGB, 0..255.
        as_scan: with the edges of a scan, or as a photograph; None: as `is_scan` says of it.

    Returns:
        The new picture, (H, W, 3), a scan grey in all channels, and the length of the shift in px.
    """
    height, width = picture.shape[:2]
    shift, angle = rng.uniform(*SHIFT_PX), rng.uniform(0.0, 2.0 * np.pi)
    if not (is_scan(picture) if as_scan is None else as_scan):
        columns, rows = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
        off_x, off_y = np.float32(shift * np.cos(angle)), np.float32(shift * np.sin(angle))
        return retake(picture, rng, Warp(columns - off_x, rows - off_y)), float(shift)
    grey = _grey(picture).astype(np.float32)
    move = np.array([[1, 0, shift * np.cos(angle)], [0, 1, shift * np.sin(angle)]], np.float32)
    moved = cv2.warpAffine(grey, move, (width, height), borderMode=cv2.BORDER_REPLICATE)
    soft = cv2.GaussianBlur(moved, (0, 0), _EDGE_BLUR_PX)
    noise = cv2.GaussianBlur(rng.standard_normal((height, width)).astype(np.float32), (0, 0), _EDGE_BLUR_PX)
    offset_px = noise / noise.std() * rng.uniform(*EDGE_NOISE_PX) + rng.uniform(
        -EDGE_OFFSET_PX, EDGE_OFFSET_PX
    )
    # A blurred edge falls by 255 / (sigma sqrt(2 pi)) a px, so an offset in px is one in grey levels.
    slope = 255.0 / (_EDGE_BLUR_PX * np.sqrt(2.0 * np.pi))
    sharp = 255.0 * (soft + (offset_px * slope).clip(-_MAX_OFFSET, _MAX_OFFSET) > 127.5)
    blurred = cv2.GaussianBlur(sharp, (0, 0), rng.uniform(*BLUR_PX))
    quality = int(rng.integers(JPEG_QUALITY[0], JPEG_QUALITY[1] + 1))
    _, jpeg = cv2.imencode(".jpg", blurred.round().astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(jpeg, cv2.IMREAD_GRAYSCALE)
    return np.repeat(np.asarray(decoded, np.uint8)[..., None], 3, axis=2), float(shift)


def _grey(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return (
        picture[..., 0]
        if picture.shape[2] == 1
        else np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)
    )
