"""Defects drawn into the copper of a board: exact masks, and classes that are true by connectivity.

A defect's class is what it does to the copper (8-connected) and the laminate (4-connected). A shape is
proposed and kept only if it does what its class says. Locally this is counted in a window around the shape:
one piece of what it was cut from next to it, and at most one of the other, prove that no piece anywhere is
parted or joined. Only an open, which must part its piece, is followed through the whole picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy
from training.defect_kinds import BOX_MARGIN_PX, COPPER_KINDS, DEFECT_KINDS, DefectKind
from training.proposals import Proposer
from training.strokes import Mask, Patch

TRIES = 60
_ALL_AROUND = np.ones((3, 3), np.uint8)
_SIDES_ONLY = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3)).astype(np.uint8)


@dataclass(frozen=True)
class DrawnDefects:
    """A board with N defects."""

    copper: Mask
    """(H, W)."""
    boxes: NDArray[np.float32]
    """(N, 4) box_xyxy: the mask's bounds, wider by the margin where the picture allows."""
    labels: tuple[str, ...]
    patches: tuple[Patch, ...]
    """Exactly the pixels that each defect changed."""

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """The patches as masks of the whole picture, (H, W)."""
        height, width = self.copper.shape
        return tuple(patch.full((height, width)) for patch in self.patches)


def draw_defects(
    copper: Mask,
    rng: np.random.Generator,
    count: int,
    *,
    kinds: Sequence[str] | Mapping[str, float] = COPPER_KINDS,
    size_px: tuple[int, int] = (4, 64),
    scale: float = 1.0,
    even_sizes: bool = False,
    nets: NDArray[np.int32] | None = None,
    holes: Mask | None = None,
    free: Mask | None = None,
    clearance_px: int = 2,
    margin_px: int = BOX_MARGIN_PX,
) -> DrawnDefects:
    """Draw `count` defects, fewer where the board has no room for more, apart from each other.

    Args:
        copper: (H, W), True where there is copper.
        kinds: classes to draw, alike often, or each with its weight. "missing-hole" needs `holes`.
        size_px: least and most px of the longer side of a defect's bounds. An open is at least as long as its
            track is wide and a short as the gap it bridges, so small sizes leave few places for them.
        scale: multiplies the usual sizes; 1 is for 48 px per mm.
        even_sizes: lengths evenly spread (in logarithm) over `size_px` instead of each class's usual ones.
        nets: (H, W), net numbers where copper that is apart may yet be one net (joined on another layer): a
        short
            joins two nets. Default: each piece of copper is a net.
        holes: (H, W), drilled holes; those with copper all around can go missing.
        free: (H, W), where defects may lie; default everywhere.
        clearance_px: a defect that is neither open nor short stays what it is when it grows by this much.
        margin_px: of boxes.

    Raises:
        ConfigError: an unknown class, sizes out of order, "missing-hole" without holes.
    """
    weights = checked_weights(kinds, size_px)
    if "missing-hole" in weights and holes is None:
        raise ConfigError("'missing-hole' needs to know the holes; give `holes`, or leave the class out")
    board = _Board(copper, nets, margin_px, clearance_px, scale)
    if free is not None:
        board.taken |= ~free
    proposer = Proposer(board.copper, rng, size_px, scale=scale, even=even_sizes, clearance_px=clearance_px)
    boxes: list[BoxXyxy] = []
    labels: list[str] = []
    patches: list[Patch] = []
    while len(patches) < count and weights:
        chances = np.array(list(weights.values()))
        label = list(weights)[int(rng.choice(len(chances), p=chances / chances.sum()))]
        patch = board.place(label, proposer, holes)
        if patch is None:
            # Where it found no room once it will find none later: defects only take room.
            del weights[label]
            continue
        boxes.append(patch.box(margin_px, board.shape))
        labels.append(label)
        patches.append(patch)
    return DrawnDefects(
        board.copper.view(bool), np.array(boxes, np.float32).reshape(-1, 4), tuple(labels), tuple(patches)
    )


def checked_weights(kinds: Sequence[str] | Mapping[str, float], size_px: tuple[int, int]) -> dict[str, float]:
    """The weight of each class that has one.

    Raises:
        ConfigError: an unknown class, a weight below 0, sizes out of order.
    """
    weights = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    for label, weight in weights.items():
        if label not in DEFECT_KINDS:
            raise ConfigError(
                f"cannot draw defects of class {label!r}; take some of {', '.join(DEFECT_KINDS)}"
            )
        if not 0 <= weight < np.inf:
            raise ConfigError(f"the weight of {label!r} is {weight}; give a number from 0 up")
    if not 2 <= size_px[0] <= size_px[1]:
        raise ConfigError(f"defect sizes run from {size_px[0]} to {size_px[1]} px; give 2 <= least <= most")
    return {label: weight for label, weight in weights.items() if weight > 0}


class _Board:
    """The copper as drawn so far, and what each further defect would do to it."""

    def __init__(
        self, copper: Mask, nets: NDArray[np.int32] | None, margin_px: int, clearance_px: int, scale: float
    ) -> None:
        self.copper = copper.astype(np.uint8)
        self.taken = np.zeros(copper.shape, bool)
        """Where no further defect may lie: the boxes of those that are there, and the picture's border."""
        self.border_px = 3
        self.margin_px = margin_px
        self.clearance_px = clearance_px
        self.least_piece_px = round(80 * scale**2)
        """An open leaves at least this much copper on both sides: it cuts off a conductor, not a crumb."""
        size = 2 * clearance_px + 1
        self._grown_by = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)).astype(np.uint8)
        self._nets = nets
        self._joined: dict[int, int] = {}

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.copper.shape
        return height, width

    @cached_property
    def pieces(self) -> NDArray[np.int32]:
        """Number of the piece of copper before any defect, 0 on laminate."""
        return np.asarray(cv2.connectedComponents(self.copper, connectivity=8)[1], np.int32)

    def place(self, label: str, proposer: Proposer, holes: Mask | None) -> Patch | None:
        """Draw one defect of this class and return its pixels, or None where no try fits."""
        kind = DEFECT_KINDS[label]
        if kind.site == "hole":
            assert holes is not None
            proposals = proposer.holes(holes)
        else:
            pieces = self.pieces if label == "short" else None
            proposals = proposer.shapes(kind, pieces, TRIES)
        for patch in proposals:
            if self._is_clear(patch) and self._does(kind, label, patch):
                self.copper[patch.view] ^= patch.mask
                left, top, right, bottom = (round(side) for side in patch.box(self.margin_px, self.shape))
                self.taken[top:bottom, left:right] = True
                return patch
        return None

    def _is_clear(self, patch: Patch) -> bool:
        (height, width), border = self.shape, self.border_px
        rows, columns = patch.view
        inside = rows.start >= border and columns.start >= border
        inside = inside and rows.stop <= height - border and columns.stop <= width - border
        return inside and not (self.taken[patch.view] & patch.mask).any()

    def _does(self, kind: DefectKind, label: str, patch: Patch) -> bool:
        window, mask = self._window(patch)
        copper = self.copper[window]
        material = copper if kind.removes else 1 - copper
        if kind.site == "across":
            return self._parts(window, copper, mask) if kind.removes else self._joins(window, copper, mask)
        if not _changes(kind, material, mask):
            return False
        if kind.site == "hole":
            return True
        grown = _grown(mask, self._grown_by) & material
        return _changes(kind, material, grown)

    def _window(self, patch: Patch) -> tuple[tuple[slice, slice], NDArray[np.uint8]]:
        """Rows and columns around the patch, and its mask in them, (h, w) of 0 and 1."""
        reach = self.clearance_px + 6
        (height, width), (rows, columns) = self.shape, patch.view
        top, left = max(rows.start - reach, 0), max(columns.start - reach, 0)
        bottom, right = min(rows.stop + reach, height), min(columns.stop + reach, width)
        mask = np.zeros((bottom - top, right - left), np.uint8)
        mask[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = patch.mask
        return (slice(top, bottom), slice(left, right)), mask

    def _joins(self, window: tuple[slice, slice], copper: NDArray[np.uint8], mask: NDArray[np.uint8]) -> bool:
        """Whether the added copper touches exactly two nets that were apart; notes that they are one now."""
        rim = (_grown(mask, _ALL_AROUND) & copper) > 0
        pieces = set(self.pieces[window][rim].tolist())
        if len(pieces) != 2 or (self._nets is not None and len(set(self._nets[window][rim].tolist())) != 2):
            return False
        first, second = (self._root(piece) for piece in pieces)
        if first == second or 0 in pieces:
            return False
        self._joined[first] = second
        return True

    def _root(self, piece: int) -> int:
        while piece in self._joined:
            piece = self._joined[piece]
        return piece

    def _parts(self, window: tuple[slice, slice], copper: NDArray[np.uint8], mask: NDArray[np.uint8]) -> bool:
        """Whether removing the copper leaves its piece in exactly two, none of them a crumb."""
        rest = copper & ~mask
        seeds = _seeds(rest, mask)
        if len(seeds) < 2:
            return False
        top, left = window[0].start, window[1].start
        copper &= ~mask  # a view: the board itself, until it is put back below
        areas: list[int] = []
        filled: list[tuple[int, int]] = []
        for row, column in seeds:
            if self.copper[row + top, column + left] == 1 and len(areas) < 3:
                areas.append(self._flood((column + left, row + top), 2))
                filled.append((column + left, row + top))
        for seed in filled:
            self._flood(seed, 1)
        copper |= mask
        return len(areas) == 2 and min(areas) >= self.least_piece_px

    def _flood(self, seed: tuple[int, int], value: int) -> int:
        """Number of pixels of the piece of copper at `seed` (x, y), which become `value`."""
        return int(cv2.floodFill(self.copper, None, seed, value, flags=8)[0])


def _changes(kind: DefectKind, material: NDArray[np.uint8], mask: NDArray[np.uint8]) -> bool:
    """Whether the mask touches and leaves as many pieces as its kind does, all arrays (h, w) of 0 and 1."""
    other, other_reach = 1 - material, _SIDES_ONLY if kind.removes else _ALL_AROUND
    own_reach = _ALL_AROUND if kind.removes else _SIDES_ONLY
    touched = _pieces_next_to(mask, other, other_reach, limit=kind.touches)
    return touched and _pieces_next_to(mask, material & ~mask, own_reach, limit=kind.leaves)


def _pieces_next_to(
    mask: NDArray[np.uint8], material: NDArray[np.uint8], reach: NDArray[np.uint8], *, limit: int | None
) -> bool:
    """Whether exactly `limit` pieces of the material lie next to the mask; `reach` says what is next."""
    if limit is None:
        return True
    rim = (_grown(mask, reach) & material) > 0
    if limit == 0 or not rim.any():
        return bool(rim.any()) == (limit > 0)
    connectivity = 8 if reach is _ALL_AROUND else 4
    labels = cv2.connectedComponents(material, connectivity=connectivity)[1][rim]
    return len(set(labels.tolist())) == limit


def _grown(mask: NDArray[np.uint8], reach: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.asarray(cv2.dilate(mask, reach), np.uint8)


def _seeds(rest: NDArray[np.uint8], mask: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """One (row, column) next to the mask in each piece of what is left of the copper in the window."""
    rim = np.argwhere((_grown(mask, _ALL_AROUND) & rest) > 0)
    labels = cv2.connectedComponents(rest, connectivity=8)[1]
    found = {int(labels[row, column]): (row, column) for row, column in rim.tolist()}
    return list(found.values())
