"""Real board artwork: KiCad designs found, read, and drawn as the layers that a camera sees.

    board = read_board(path)
    layers = draw_layers(board, side="front", px_per_mm=48, window_mm=windows(board, rng, 640, 48))

A pixel belongs to a shape when its centre lies inside it: exact for tracks, discs, ovals, rounded corners and
polygons, within 0.5 um for arcs and rings. There is no anti-aliasing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from training.kicad_board import SIDES, Drill, Feature, KicadBoard, Note, Side
from training.kicad_raster import Flat, Grid, draw_mask, draw_values
from training.kicad_reader import parse_board
from training.layers import Layers, Mask

__all__ = [
    "BoardFile",
    "Drill",
    "Feature",
    "KicadBoard",
    "Note",
    "draw_layers",
    "list_boards",
    "net_faults",
    "read_board",
    "windows",
]
MAX_PX = 400_000_000
Window = tuple[float, float, float, float]
_COARSE_PX_PER_MM = 4.0
_CHECK_PX_PER_MM = 20.0


@dataclass(frozen=True)
class BoardFile:
    path: Path
    name: str
    licence: str
    """SPDX name in lower case, "" where the folder does not say."""


def list_boards(root: Path) -> list[BoardFile]:
    """The designs under `root`, by name: each `.kicad_pcb` with the licence from `metadata.json` beside it.

    Raises:
        ConfigError: no such folder, no design in it, or a metadata.json that is not JSON.
    """
    root = root.resolve()
    found = sorted(root.rglob("*.kicad_pcb")) if root.is_dir() else []
    if not found:
        raise ConfigError(f"no .kicad_pcb file under {root}; give a folder of KiCad designs")
    boards: list[BoardFile] = []
    for path in found:
        # A file called raw says nothing; its folder does.
        name = path.parent.name if path.stem == "raw" else path.stem
        boards.append(BoardFile(path, name, _licence(path.parent / "metadata.json")))
    return boards


def read_board(path: Path, *, name: str = "", check_nets: bool = True) -> KicadBoard:
    """Read a `.kicad_pcb` file of KiCad 4 to 8.

    Args:
        name: shown with the pictures; the file's stem unless given.
        check_nets: draw both sides at 20 px per mm and note copper of different nets that overlaps.

    Raises:
        ConfigError: no such file, not a KiCad board, damaged, or nothing on it to draw.
    """
    board = parse_board(path, name)
    if not check_nets:
        return board
    return replace(board, notes=(*board.notes, *(note for side in SIDES for note in net_faults(board, side))))


def draw_layers(
    board: KicadBoard, *, side: Side, px_per_mm: float, window_mm: Window | None = None
) -> Layers:
    """Draw one side of a board as its camera sees it: the back is mirrored left to right.

    Copper without a net gets the number of the net that it overlaps, else each connected piece of it a number
    above the board's highest. Where nets overlap the lowest number wins. Silk is clipped off mask openings.

    Args:
        window_mm: (x, y, width, height) in the design's coordinates, for the back too; the board if None.
    """
    x, y, w, h = board.bounds if window_mm is None else window_mm
    if not (min(w, h, px_per_mm) > 0 and 1 <= w * px_per_mm * h * px_per_mm <= MAX_PX):
        raise ConfigError(
            f"cannot draw {w} x {h} mm at {px_per_mm} px per mm; draw 1 to {MAX_PX} px, e.g. a window"
        )
    # An edge that falls on a pixel border must not cost a row by rounding.
    width, height = int(np.ceil(w * px_per_mm - 1e-6)), int(np.ceil(h * px_per_mm - 1e-6))
    # Seen from behind, the picture's last column is the window's left end.
    left = x + w - width / px_per_mm if side == "back" else x
    grid = Grid(left, y, px_per_mm, width, height, mirrored=side == "back")
    inside = draw_mask(board.flat["edge", ""], grid, even_odd=True)
    holes = draw_mask(board.flat["drill", side], grid) & inside
    nets, _, _ = _draw_nets(board, side, grid)
    nets[holes | ~inside] = 0
    mask_open = _mask_openings(board, side, grid) & inside
    silk = _draw(board, "silk", side, grid) & inside & ~holes & ~mask_open
    return Layers(nets > 0, nets, holes, mask_open, silk, inside, px_per_mm, f"{board.name} {side}")


def windows(
    board: KicadBoard,
    rng: np.random.Generator,
    size_px: int,
    px_per_mm: float,
    *,
    side: Side = "front",
    min_copper: float = 0.1,
    max_copper: float = 0.9,
) -> Window:
    """A random square window (x, y, width, height) in mm worth drawing at `size_px` x `size_px`.

    It lies inside the board's bounding box where it fits, is at least nine tenths board where there is such a
    place, and its share of copper is within the limits, else as near to them as the board has.
    """
    edge = size_px / px_per_mm
    x, y, w, h = board.bounds
    span = np.array([max(w, edge), max(h, edge)])
    low = np.array([x + (w - span[0]) / 2, y + (h - span[1]) / 2])
    scale = _COARSE_PX_PER_MM
    columns, rows = np.ceil(span * scale).astype(int).tolist()
    grid = Grid(float(low[0]), float(low[1]), scale, columns, rows)
    inside = draw_mask(board.flat["edge", ""], grid, even_odd=True)
    copper = _draw(board, "copper", side, grid) & inside
    cells = max(1, round(edge * scale))
    board_share, copper_share = _window_means(inside, cells), _window_means(copper, cells)
    # How far each position is from what is wanted; 0 where nothing is wrong.
    wrong = np.maximum(0.0, min(0.9, float(board_share.max())) - board_share)
    wrong += np.maximum(0.0, min_copper - copper_share) + np.maximum(0.0, copper_share - max_copper)
    choices = np.argwhere(wrong <= wrong.min() + 1e-9)
    row, column = choices[rng.integers(len(choices))]
    corner = low + (np.array([column, row]) + rng.random(2)) / scale
    corner = np.clip(corner, low, low + span - edge)
    return float(corner[0]), float(corner[1]), edge, edge


def net_faults(board: KicadBoard, side: Side, *, px_per_mm: float = _CHECK_PX_PER_MM) -> list[Note]:
    """Copper of different nets that overlaps: a fault of the design, or a net tie.

    Overlaps that hold no pixel centre are not found.
    """
    x, y, w, h = board.bounds
    grid = Grid(x, y, px_per_mm, int(np.ceil(w * px_per_mm)), int(np.ceil(h * px_per_mm)))
    _, clashes, ties = _draw_nets(board, side, grid)
    notes: list[Note] = []
    for (low, high), (row, column) in sorted(clashes.items()):
        at = f"({x + (column + 0.5) / px_per_mm:.2f}, {y + (row + 0.5) / px_per_mm:.2f}) mm"
        message = f"{side}: copper of nets {_named(board, low)} and {_named(board, high)} overlaps at {at}"
        notes.append(Note("net-overlap", message))
    for nets in ties:
        names = " and ".join(_named(board, net) for net in nets)
        kind = "net-tie" if len(nets) > 1 else "copper-without-net"
        notes.append(
            Note(kind, f"{side}: copper without a net lies on {names} and counts as {_named(board, nets[0])}")
        )
    return notes


def _draw_nets(
    board: KicadBoard, side: Side, grid: Grid
) -> tuple[NDArray[np.int32], dict[tuple[int, int], tuple[int, int]], list[tuple[int, ...]]]:
    """The net of each copper pixel, pairs of nets that overlap with a place, nets under netless copper."""
    flat = board.flat.get(("copper", side))
    if flat is None:
        return np.zeros((grid.height, grid.width), np.int32), {}, []
    nets, clashes = draw_values(_chosen(flat, netless=False), grid)
    nets -= nets > 0
    clashes = {(low - 1, high - 1): place for (low, high), place in clashes.items()}
    loose = draw_mask(_chosen(flat, netless=True), grid)
    if not loose.any():
        return nets, clashes, []
    count, pieces = cv2.connectedComponents(loose.astype(np.uint8), connectivity=8)
    number = max([0, *board.nets]) + np.arange(count, dtype=np.int32)
    under: dict[int, list[int]] = {}
    both = loose & (nets > 0)
    for piece, net in np.unique(np.column_stack([pieces[both], nets[both]]), axis=0).tolist():
        under.setdefault(piece, []).append(net)
    for piece, found in under.items():
        number[piece] = found[0]
    alone = loose & ~both
    nets[alone] = number[pieces[alone]]
    return nets, clashes, sorted(tuple(found) for found in under.values())


def _chosen(flat: Flat, *, netless: bool) -> Flat:
    """The part of a copper plane without a net (value 1), or the rest."""
    discs, edges = (flat.disc_values == 1) == netless, (flat.polygon_values == 1)[flat.owners] == netless
    return Flat(
        flat.discs[discs], flat.disc_values[discs], flat.edges[edges], flat.owners[edges], flat.polygon_values
    )


def _draw(board: KicadBoard, kind: str, side: Side, grid: Grid) -> Mask:
    flat = board.flat.get((kind, side))
    return np.zeros((grid.height, grid.width), bool) if flat is None else draw_mask(flat, grid)


def _mask_openings(board: KicadBoard, side: Side, grid: Grid) -> Mask:
    """Openings of the solder mask, joined where the bridge between them would be too narrow to hold."""
    reach = board.mask_min_width / 2 * grid.px_per_mm
    if reach < 0.5:
        return _draw(board, "mask", side, grid)
    # Openings outside the window reach into it.
    rim = int(np.ceil(2 * reach)) + 1
    shift = rim / grid.px_per_mm
    wide = replace(
        grid, x=grid.x - shift, y=grid.y - shift, width=grid.width + 2 * rim, height=grid.height + 2 * rim
    )
    opened = _draw(board, "mask", side, wide)
    if opened.any():
        grown = _distance(~opened) <= reach
        opened |= _distance(grown) > reach
    return opened[rim:-rim, rim:-rim]


def _distance(mask: Mask) -> NDArray[np.float32]:
    """(H, W) how far each True pixel is from the nearest False one, in px."""
    return np.asarray(
        cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE), np.float32
    )


def _window_means(mask: Mask, cells: int) -> NDArray[np.float64]:
    """The mean of every square of `cells` pixels inside the mask, by its upper left corner."""
    height, width = mask.shape
    tall, wide = min(cells, height), min(cells, width)
    total = cv2.integral(mask.astype(np.uint8)).astype(np.float64)
    sums = total[tall:, wide:] - total[:-tall, wide:] - total[tall:, :-wide] + total[:-tall, :-wide]
    return np.asarray(sums / (tall * wide))


def _named(board: KicadBoard, net: int) -> str:
    return board.nets.get(net, "") or f"number {net}"


def _licence(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}; mend or remove it") from error
    return str(data.get("license", "")).lower() if isinstance(data, dict) else ""
