"""Defects painted into a picture of a good board with the picture's own copper and laminate."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from training.defect_kinds import DEFECT_KINDS
from training.defects import DrawnDefects
from training.layers import Mask
from training.strokes import Patch

FEATHER_PX = 0.8
_REACH_PX = 60
"""Texture is taken from at most this far, where it lies in the same light."""
_CLEAR_PX = 2
"""Texture is taken this far from where copper and laminate meet."""
_JOIN_PX = 3


def paint_defects(
    picture: NDArray[np.uint8],
    copper: Mask,
    drawn: DrawnDefects,
    rng: np.random.Generator,
    *,
    known: Mask | None = None,
    feather_px: float = FEATHER_PX,
) -> NDArray[np.uint8]:
    """The picture with the defects in it.

    Removed copper is covered with laminate from near by, added copper with copper.

    Args:
        picture: (H, W) or (H, W, 3).
        copper: (H, W), before the defects.
        drawn: defects drawn on that copper.
        known: (H, W), where texture may be taken from; default everywhere.
        feather_px: softness of the painted edges; 0 for scans in two tones.

    Raises:
        ImageError: no copper, or no laminate, broad enough to take texture from.
    """
    painted = picture.copy()
    shape = (copper.shape[0], copper.shape[1])
    usable = np.ones(shape, bool) if known is None else known
    for label, patch in zip(drawn.labels, drawn.patches, strict=True):
        wanted_value = not DEFECT_KINDS[label].removes
        near = _around(patch, int(np.ceil(3 * feather_px)) + _JOIN_PX, shape)
        texture = _texture(picture, copper, usable, patch, rng, of_copper=wanted_value)
        cover = _cover(patch, near, copper[near] == wanted_value)
        if feather_px > 0:
            cover = np.asarray(cv2.GaussianBlur(cover, (0, 0), feather_px), np.float32)
        height, width = cover.shape
        new = texture[_mirrored(height, texture.shape[0])][:, _mirrored(width, texture.shape[1])]
        below = painted[near].astype(np.float32)
        weight = cover if picture.ndim == 2 else cover[..., None]
        painted[near] = np.rint(below + weight * (new - below)).astype(np.uint8)
    return painted


def _around(patch: Patch, reach_px: int, shape: tuple[int, int]) -> tuple[slice, slice]:
    left, top, right, bottom = (int(side) for side in patch.box(reach_px, shape))
    return slice(top, bottom), slice(left, right)


def _cover(patch: Patch, near: tuple[slice, slice], own: Mask) -> NDArray[np.float32]:
    """The patch in its surroundings, and a little of its own material beside it, so that no gap is left."""
    cover = np.zeros(own.shape, np.uint8)
    rows, columns = patch.view
    top, left = rows.start - near[0].start, columns.start - near[1].start
    cover[top : top + patch.mask.shape[0], left : left + patch.mask.shape[1]] = patch.mask
    beside = cv2.dilate(cover, np.ones((2 * _JOIN_PX + 1,) * 2, np.uint8)) > 0
    return ((cover > 0) | (beside & own)).astype(np.float32)


def _texture(
    picture: NDArray[np.uint8],
    copper: Mask,
    usable: Mask,
    patch: Patch,
    rng: np.random.Generator,
    *,
    of_copper: bool,
) -> NDArray[np.float32]:
    """A rectangle of copper or laminate out of the picture, the larger and nearer the better."""
    shape = (copper.shape[0], copper.shape[1])
    for reach_px in (_REACH_PX, 4 * _REACH_PX, max(shape)):
        window = _around(patch, reach_px, shape)
        wanted = (copper[window] == of_copper) & usable[window]
        depth = cv2.distanceTransform(np.pad(wanted, 1).astype(np.uint8), cv2.DIST_C, 3)[1:-1, 1:-1]
        if depth.max() > _CLEAR_PX:
            break
    else:
        raise ImageError(
            f"the picture has no {'copper' if of_copper else 'laminate'} {2 * _CLEAR_PX + 1} px wide to "
            "paint with; give a larger picture"
        )
    needed = max(patch.mask.shape) / 2 + _CLEAR_PX
    rows, columns = np.nonzero(depth >= min(needed, float(depth.max())))
    y, x = patch.top + patch.mask.shape[0] / 2, patch.left + patch.mask.shape[1] / 2
    away = np.hypot(rows + window[0].start - y, columns + window[1].start - x)
    nearest = np.argpartition(away, min(8, len(away) - 1))[:8]
    pick = int(nearest[rng.integers(len(nearest))])
    row, column = int(rows[pick]), int(columns[pick])
    half = max(int(min(float(depth[row, column]) - 1 - _CLEAR_PX, needed + 4)), 0)
    return picture[window][row - half : row + half + 1, column - half : column + half + 1].astype(np.float32)


def _mirrored(length: int, period: int) -> NDArray[np.int64]:
    """Indices into a texture of `period` that repeat it back and forth over `length`."""
    if period == 1:
        return np.zeros(length, np.int64)
    at = np.arange(length) % (2 * period - 2)
    return np.where(at < period, at, 2 * period - 2 - at)
