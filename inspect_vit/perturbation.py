"""What happens to one defect's score when parts of the board are replaced by another picture.

Shape letters: H, W pixels of the picture, h, w = ceil(H / 4), ceil(W / 4) cells, r, c cells of the region
around the defect, B pictures of a batch, K defect classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.cells import label_index
from inspect_vit.close_up import close_up
from inspect_vit.config import ModelConfig
from inspect_vit.errors import ImageError
from inspect_vit.inspector import Inspector
from inspect_vit.results import BoxXyxy, Defect

CELL_PX = 4
MARGIN_PX = 32
"""The region around a defect reaches at least this far beyond its box, where the picture does."""
MAX_CROP_ERROR = 0.02
"""A defect is looked at in its region alone if that moves its score by no more than this."""
FILL_REACH_PX = 5
"""How far around a hole its filling looks."""
BATCH_PX = 8 * 320 * 320
"""Pixels that go through the model at a time; larger batches are not faster on a CPU."""

BoolMap = NDArray[np.bool_]
FloatMap = NDArray[np.float32]
ScalarT = TypeVar("ScalarT", bound=np.generic)


@dataclass(frozen=True)
class Region:
    """A rectangle of whole cells, right and bottom exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.bottom - self.top, self.right - self.left

    def holds(self, other: Region) -> bool:
        within = self.left <= other.left and other.right <= self.right
        return within and self.top <= other.top and other.bottom <= self.bottom

    def of(self, cells: NDArray[ScalarT]) -> NDArray[ScalarT]:
        """The region's part of a (..., h, w) map."""
        return cells[..., self.top : self.bottom, self.left : self.right]

    def under(self, box: BoxXyxy) -> BoolMap:
        """(r, c): cells that share area with a box; those without area touch none."""
        rows, columns = self.shape
        y, x = (np.arange(n) * CELL_PX for n in (rows, columns))
        left, top, right, bottom = box
        down = (y + CELL_PX > top - self.top * CELL_PX) & (y < bottom - self.top * CELL_PX)
        across = (x + CELL_PX > left - self.left * CELL_PX) & (x < right - self.left * CELL_PX)
        return np.asarray(down[:, None] & across[None, :], np.bool_)


@dataclass(frozen=True)
class Scene:
    """One defect of one board, and what may stand in for the board's pixels.

    The tensors are (1, c, H', W') uint8: the padded pictures, or their part in the region where the model
    answers the same there.
    """

    inspector: Inspector
    board: Tensor
    reference: Tensor
    """Zeros without one."""
    infill: Tensor | None
    """None without a reference: cells are then filled from the board around them."""
    region: Region
    """Where cells may be replaced, in cells of the picture."""
    view: Region
    """What the tensors show, in cells of the padded picture."""
    cells: tuple[int, int]
    """(h, w) of the picture."""
    defect: Defect
    label: int
    has_reference: bool = True
    is_cropped: bool = False
    """Whether the model sees the region alone."""

    def scores(self, replaced: BoolMap) -> NDArray[np.float64]:
        """Centre scores inside the defect's box with some cells taken from the infill.

        replaced: (B, r, c), True where the infill shows. Returns (B, K): the highest score of each class.
        """
        masks = self._masks(replaced)
        batch = max(BATCH_PX // (masks.shape[1] * masks.shape[2]), 1)
        rows, columns = np.nonzero(self.view.under(self.defect.box_xyxy))
        inside = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
        answers = []
        with torch.inference_mode():
            for part in torch.from_numpy(masks).split(batch):
                mask = part[:, None].to(self.board.device)
                infill = fill_locally(self.board, part) if self.infill is None else self.infill
                boards = torch.where(mask, infill, self.board)
                present = torch.full((len(boards),), float(self.has_reference), device=boards.device)
                output = self.inspector.model(boards, self.reference.expand_as(boards), present)
                centres = output.head.centre_logits[:, :, *inside].float().sigmoid()
                answers.append(centres.amax((2, 3)).double().cpu().numpy())
        return np.concatenate(answers)

    def _masks(self, replaced: BoolMap) -> BoolMap:
        """(B, r, c) cells of the region to (B, H', W') pixels of the view.

        Padding repeats the edge of the picture, so it goes with the cells at the edge.
        """
        whole = np.zeros((len(replaced), *self.cells), np.bool_)
        self.region.of(whole)[...] = replaced
        beyond = [(0, max(self.view.bottom - self.cells[0], 0)), (0, max(self.view.right - self.cells[1], 0))]
        cells = self.view.of(np.pad(whole, [(0, 0), *beyond], mode="edge"))
        return np.asarray(cells.repeat(CELL_PX, 1).repeat(CELL_PX, 2), np.bool_)


def pose(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defect: Defect,
    infill: NDArray[np.uint8] | None = None,
    whole: bool = False,
) -> Scene:
    """Make one defect ready for replacing parts of its board.

    The model sees the region alone where that changes the defect's score by at most MAX_CROP_ERROR, both on
    the board as it is and with the whole region replaced (without reference: with the defect's box filled):
    it costs a quarter on a picture of 640 x 640 px.

    Args:
        image, reference: (H, W, 3) uint8 RGB, aligned, as `Inspector.inspect` takes them.
        infill: what replaced cells show; the reference unless given, and without one `fill_locally`.
        whole: show the model the whole picture in any case; on a board in tiles, the tile around the defect.

    Raises:
        ImageError: pictures of different sizes.
    """
    infill = reference if infill is None else infill
    for name, picture in (("reference", reference), ("infill", infill)):
        if picture is not None and picture.shape != image.shape:
            raise ImageError(f"{name} has shape {picture.shape}, wanted the board's {image.shape}")
    config = inspector.metadata.model
    height, width = image.shape[:2]
    cells = math.ceil(height / CELL_PX), math.ceil(width / CELL_PX)
    view = view_around(defect.box_xyxy, height, width, config)
    around = close_up(inspector, image, reference=reference, box=defect.box_xyxy).tile
    shown = Region(*(side // CELL_PX for side in (around.left, around.top, around.right, around.bottom)))
    if not shown.holds(view):
        view = shown
    region = replace(view, right=min(view.right, cells[1]), bottom=min(view.bottom, cells[0]))
    golden_part = None if reference is None else around.of(reference)
    board, golden, _ = inspector.tensors(around.of(image), golden_part)
    good = None
    if infill is not None:
        good = golden if infill is reference else inspector.tensors(around.of(image), around.of(infill))[1]
    full = Scene(
        inspector=inspector,
        board=board,
        reference=golden,
        infill=good,
        region=region,
        view=shown,
        cells=cells,
        defect=defect,
        label=label_index(defect, config.class_names),
        has_reference=reference is not None,
    )
    if whole or view == full.view:
        return full
    crop = (
        ...,
        slice((view.top - shown.top) * CELL_PX, (view.bottom - shown.top) * CELL_PX),
        slice((view.left - shown.left) * CELL_PX, (view.right - shown.left) * CELL_PX),
    )
    cut = replace(
        full,
        board=full.board[crop],
        reference=full.reference[crop],
        infill=None if full.infill is None else full.infill[crop],
        view=view,
        is_cropped=True,
    )
    end = np.ones(region.shape, np.bool_) if good is not None else region.under(defect.box_xyxy)
    ends = np.stack([np.zeros(region.shape, np.bool_), end])
    error = np.abs(full.scores(ends)[:, full.label] - cut.scores(ends)[:, full.label])
    return cut if error.max() <= MAX_CROP_ERROR else full


def fill_locally(board: Tensor, masks: Tensor) -> Tensor:
    """The board with each mask's pixels continued from around them (Telea 2004): (B, c, H', W') uint8.

    A guess at what a good board shows there, not knowledge: a fault may stay, or be made.
    board: (1, c, H', W') uint8, c 1 or 3. masks: (B, H', W') bool.
    """
    picture = np.ascontiguousarray(board[0].permute(1, 2, 0).cpu().numpy())
    filled = [
        cv2.inpaint(picture, mask.astype(np.uint8), FILL_REACH_PX, cv2.INPAINT_TELEA).reshape(picture.shape)
        for mask in masks.cpu().numpy()
    ]
    return torch.from_numpy(np.stack(filled)).permute(0, 3, 1, 2).to(board.device)


def view_around(box: BoxXyxy, height: int, width: int, config: ModelConfig) -> Region:
    """The smallest part of the padded picture that the model takes and that holds the box with its margin.

    Its corner lies where attention windows of all levels begin, so that tokens and windows are those of the
    whole picture.
    """
    step = config.size_multiple
    snap = math.lcm(*(level.patch_size * max(level.window, 1) for level in config.levels))
    across, down = (math.ceil(size / step) * step for size in (width, height))
    side = step
    while True:
        columns = _span(box[0], box[2], width, across, min(side, across), snap)
        rows = _span(box[1], box[3], height, down, min(side, down), snap)
        if columns and rows:
            return Region(columns[0], rows[0], columns[1], rows[1])
        side += step


def _span(low: float, high: float, size: int, padded: int, length: int, snap: int) -> tuple[int, int] | None:
    """Along one axis, in cells: the stretch of `length` px that has low..high px nearest to its middle.

    None if it does not reach MARGIN_PX beyond, or to the end of the picture.
    """
    start = min(range(0, padded - length + 1, snap), key=lambda at: abs(at + length / 2 - (low + high) / 2))
    if start > max(low - MARGIN_PX, 0) or start + length < min(high + MARGIN_PX, size):
        return None
    return start // CELL_PX, (start + length) // CELL_PX


def free_cells(region: Region, defect: Defect, others: Sequence[BoxXyxy]) -> BoolMap:
    """(r, c): cells that may be replaced, all but those under the boxes of other defects alone.

    To replace another defect says nothing about this one, and would punish every map that shows both.
    """
    foreign = np.zeros(region.shape, np.bool_)
    for box in others:
        foreign |= region.under(box)
    return ~foreign | region.under(defect.box_xyxy)


def rank_cells(evidence: FloatMap, allowed: BoolMap, rng: np.random.Generator) -> NDArray[np.int64]:
    """Flat indices of the allowed cells, most relevant first; equal ones in random order.

    evidence, allowed: (r, c).
    """
    cells = rng.permutation(np.flatnonzero(allowed))
    return np.asarray(cells[np.argsort(-evidence.ravel()[cells], kind="stable")], np.int64)


def take_cells(order: NDArray[np.int64], counts: Sequence[int], shape: tuple[int, int]) -> BoolMap:
    """The first of `order`, by each count: (len(counts), *shape), True where taken."""
    taken = np.zeros((len(counts), shape[0] * shape[1]), np.bool_)
    for row, count in zip(taken, counts, strict=True):
        row[order[:count]] = True
    return taken.reshape(-1, *shape)


def difference_map(image: NDArray[np.uint8], other: NDArray[np.uint8]) -> FloatMap:
    """|image - other|, grey, 0..1, averaged over each 4 px cell: (h, w). Both (H, W, 3) uint8 RGB."""
    grey = [cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in (image, other)]
    difference = cv2.absdiff(*grey)
    rows, columns = -difference.shape[0] % CELL_PX, -difference.shape[1] % CELL_PX
    padded = np.pad(difference, ((0, rows), (0, columns)), mode="edge").astype(np.float32) / 255
    blocks = padded.reshape(padded.shape[0] // CELL_PX, CELL_PX, -1, CELL_PX)
    return np.asarray(blocks.mean((1, 3)), np.float32)
