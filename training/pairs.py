"""A board with drawn defects and its golden reference, each imaged on its own.

Between the two: shift, turn, local stretch, etching, dust, light and noise. None of that is a defect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from training.camera import retake
from training.colour_style import NO_MASK, ColourStyle, draw_style
from training.copper import CopperMap
from training.defect_kinds import BOX_MARGIN_PX, DEFECT_KINDS
from training.defects import DrawnDefects, draw_defects
from training.holes import cover_holes, find_holes
from training.imaging import Warp, draw_etch, draw_warp, etch_copper
from training.layers import Layers, Mask
from training.paint import FEATHER_PX, paint_defects
from training.render import ScanStyle, finish_scan, scan_copper
from training.render_colour import render_colour

_USUAL_PX_PER_MM = 48.0


@dataclass(frozen=True)
class DefectPlan:
    """Which defects boards get."""

    count: tuple[int, int] = (4, 10)
    """Least and most on a board: what nine in ten boards of DeepPCB have."""
    kinds: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(DEFECT_KINDS, 1.0))
    """Weight of each class; holes go missing only where there are holes."""
    size_px: tuple[int, int] = (4, 64)
    """Least and most px of a defect's longer side."""
    even_sizes: bool = False
    """Sizes evenly spread (in logarithm) instead of as usual for each class."""
    margin_px: int = BOX_MARGIN_PX
    """Boxes are this much wider than the mask on each side."""
    good_share: float = 0.1
    """Share of boards without a defect."""


@dataclass(frozen=True)
class Pair:
    """Pictures are (H, W) or (H, W, 3) RGB, uint8; boxes and masks are in the frame of `board`."""

    board: NDArray[np.uint8]
    reference: NDArray[np.uint8]
    drawn: DrawnDefects


def scan_pair(
    layers: Layers,
    rng: np.random.Generator,
    *,
    plan: DefectPlan | None = None,
    style: ScanStyle | None = None,
) -> Pair:
    """Scans of a board with defects and of a good one, copper dark, (H, W)."""
    plan, style = plan or DefectPlan(), style or ScanStyle()
    style = replace(style, etch=style.etch * min(layers.px_per_mm / _USUAL_PX_PER_MM, 1.0))
    warp = _misplaced(rng, layers, style)
    copper = scan_copper(layers.copper, rng, style, warp)
    drawn = _draw(copper, warp.layers(layers), rng, plan, free=None)
    reference = finish_scan(scan_copper(layers.copper, rng, style, _placed(rng, layers, style)), rng, style)
    return Pair(finish_scan(drawn.copper, rng, style), reference, drawn)


def colour_pair(
    layers: Layers,
    rng: np.random.Generator,
    *,
    plan: DefectPlan | None = None,
    style: ColourStyle | None = None,
    placing: ScanStyle | None = None,
    nuisance: float = 1.0,
) -> Pair:
    """Colour pictures of a board with defects and of a good one, (H, W, 3).

    Args:
        style: what both share; drawn at random if None.
        placing: shift, turn, stretch and etching of the board against its reference.
        nuisance: strength of dust, scratches, smudges and glare; 0 for none.
    """
    plan, style, placing = plan or DefectPlan(), style or draw_style(rng), placing or ScanStyle()
    warp = _misplaced(rng, layers, placing)
    good = _made(warp.layers(layers), rng, placing)
    silk = cv2.dilate(good.silk.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    free = good.board if style.mask == NO_MASK else good.board & ~silk
    drawn = _draw(good.copper, good, rng, plan, free=free)
    board = render_colour(_with_defects(good, drawn, rng), rng, style, nuisance=nuisance)
    still = _placed(rng, layers, placing)
    reference = render_colour(_made(still.layers(layers), rng, placing), rng, style, nuisance=nuisance)
    return Pair(board, reference, drawn)


def picture_pair(
    picture: NDArray[np.uint8],
    found: CopperMap,
    rng: np.random.Generator,
    *,
    plan: DefectPlan | None = None,
    placing: ScanStyle | None = None,
    scale: float = 1.0,
) -> Pair:
    """A good board's picture with defects painted in, and the same board imaged again as reference.

    Args:
        picture: (H, W) or (H, W, 3) RGB.
        found: its copper (training/copper.py).
        scale: of the usual sizes of defects; 1 is for 48 px per mm.

    Holes go missing only where they are certain (training/holes.py).
    """
    plan, placing = plan or DefectPlan(), placing or ScanStyle()
    drawn, missing = _drawn_in_picture(picture, found, rng, plan, scale)
    feather = 0.0 if found.kind == "scan" else FEATHER_PX
    board = paint_defects(picture, found.copper, drawn, rng, known=found.known, feather_px=feather)
    if found.kind == "scan":
        board = paint_defects(board, found.copper, missing, rng, feather_px=feather)
    else:
        board = cover_holes(board, found, missing, rng)
    drawn = DrawnDefects(
        drawn.copper,
        np.concatenate([drawn.boxes, missing.boxes]),
        drawn.labels + missing.labels,
        drawn.patches + missing.patches,
    )
    shape = (picture.shape[0], picture.shape[1])
    warp = draw_warp(
        rng,
        shape,
        shift_px=placing.shift_px,
        turn_degrees=placing.turn_degrees,
        stretch_px=placing.stretch_px,
    )
    if found.kind == "scan":
        dark = found.copper if found.copper_is == "dark" else ~found.copper
        scanned = finish_scan(scan_copper(dark, rng, placing, warp), rng, placing)
        reference = scanned if picture.ndim == 2 else np.repeat(scanned[..., None], 3, axis=2)
    else:
        reference = retake(picture, rng, warp)
    return Pair(board, reference, drawn)


def _drawn_in_picture(
    picture: NDArray[np.uint8], found: CopperMap, rng: np.random.Generator, plan: DefectPlan, scale: float
) -> tuple[DrawnDefects, DrawnDefects]:
    """Defects in the copper, and missing holes clear of them; the copper of the former has both."""
    count, kinds = _count(rng, plan), dict(plan.kinds)
    weight = kinds.pop("missing-hole", 0.0)
    nothing = np.zeros(found.copper.shape, bool)
    holes = find_holes(picture, found) if weight > 0 and count else nothing
    share = weight / (weight + sum(kinds.values())) if holes.any() else 0.0
    drilled = found.copper & ~holes
    missing = draw_defects(
        drilled,
        rng,
        int(rng.binomial(count, share)),
        kinds=["missing-hole"],
        size_px=plan.size_px,
        holes=holes,
        free=holes,
        margin_px=plan.margin_px,
    )
    free = found.known.copy()
    for left, top, right, bottom in missing.boxes.astype(int).tolist():
        free[top:bottom, left:right] = False
    drawn = draw_defects(
        # In a photograph a hole counts as a part of its pad, which nothing else is drawn in.
        missing.copper | (found.copper & holes),
        rng,
        count - len(missing.labels),
        kinds=kinds,
        size_px=plan.size_px,
        even_sizes=plan.even_sizes,
        scale=scale,
        free=free,
        margin_px=plan.margin_px,
    )
    return drawn, missing


def _count(rng: np.random.Generator, plan: DefectPlan) -> int:
    """Defects for one board; none for a good one."""
    count = int(rng.integers(plan.count[0], plan.count[1] + 1))
    return 0 if rng.random() < plan.good_share else count


def _misplaced(rng: np.random.Generator, layers: Layers, style: ScanStyle) -> Warp:
    return draw_warp(
        rng,
        layers.size,
        shift_px=style.shift_px,
        turn_degrees=style.turn_degrees,
        stretch_px=style.stretch_px,
    )


def _placed(rng: np.random.Generator, layers: Layers, style: ScanStyle) -> Warp:
    """A reference lies on the pixels by chance, like any picture."""
    shift, turn = min(style.shift_px, 0.5), min(style.turn_degrees, 0.05)
    return draw_warp(rng, layers.size, shift_px=shift, turn_degrees=turn)


def _draw(
    copper: Mask, layers: Layers, rng: np.random.Generator, plan: DefectPlan, *, free: Mask | None
) -> DrawnDefects:
    """Defects in etched copper that lies as `layers` do."""
    kinds = dict(plan.kinds)
    holes = layers.holes & ~copper
    if not holes.any():
        kinds.pop("missing-hole", None)
    # Etching moves edges: each pixel of copper takes the net of what it was etched from.
    near = cv2.dilate(layers.nets.astype(np.float32), np.ones((9, 9), np.uint8))
    nets = np.where(copper, np.where(layers.nets > 0, layers.nets, near.astype(np.int32)), 0).astype(np.int32)
    scale = layers.px_per_mm / _USUAL_PX_PER_MM
    return draw_defects(
        copper,
        rng,
        _count(rng, plan),
        kinds=kinds,
        size_px=plan.size_px,
        even_sizes=plan.even_sizes,
        scale=scale,
        clearance_px=2 if scale > 0.6 else 1,
        nets=nets,
        holes=holes,
        free=free,
        margin_px=plan.margin_px,
    )


def _made(layers: Layers, rng: np.random.Generator, placing: ScanStyle) -> Layers:
    """One board off the line: copper etched, mask and silk printed a little off it."""
    scale = layers.px_per_mm / _USUAL_PX_PER_MM
    etch = draw_etch(rng, strength=placing.etch * min(scale, 1.0))
    # Holes are drilled, not etched: what is etched is the copper as it was before.
    solid = layers.copper | _in_copper(layers)
    copper = etch_copper(solid, rng, etch) & ~layers.holes & layers.board
    off = 1.5 * scale * min(placing.shift_px, 1.0)
    mask_open, silk = (
        draw_warp(rng, layers.size, shift_px=off, turn_degrees=0.0).mask(sheet)
        for sheet in (layers.mask_open, layers.silk)
    )
    return replace(layers, copper=copper, mask_open=mask_open, silk=silk & ~mask_open & layers.board)


def _in_copper(layers: Layers) -> Mask:
    """The holes that have copper around more than half of their rim, (H, W)."""
    count, numbers = cv2.connectedComponents(layers.holes.astype(np.uint8), connectivity=4)
    near = cv2.dilate(numbers.astype(np.float32), np.ones((3, 3), np.uint8)).astype(np.int32)
    rim = near[~layers.holes]
    around, copper = (
        np.bincount(rim, weights=weights, minlength=count)
        for weights in (None, layers.copper[~layers.holes].astype(np.float64))
    )
    held = copper > around / 2
    held[0] = False
    return np.asarray(held[numbers])


def _with_defects(good: Layers, drawn: DrawnDefects, rng: np.random.Generator) -> Layers:
    """The board after its defects; a missing hole shows bare pad, solder mask or resin."""
    copper, holes, mask_open = drawn.copper.copy(), good.holes.copy(), good.mask_open.copy()
    for label, patch in zip(drawn.labels, drawn.patches, strict=True):
        if label == "missing-hole":
            near = cv2.dilate(patch.full(good.size).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
            holes &= ~near
            look = rng.random()
            if look < 0.4:
                mask_open[patch.view] &= ~patch.mask
            elif look < 0.55:
                copper[patch.view] &= ~patch.mask
    return replace(good, copper=copper, holes=holes, mask_open=mask_open)
