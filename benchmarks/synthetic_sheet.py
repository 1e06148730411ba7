"""A sheet of synthetic boards, defects outlined, each beside its golden reference: docs/images/synthetic.png.

    python benchmarks/synthetic_sheet.py docs/images/synthetic.png [--designs FOLDER]
    python benchmarks/synthetic_sheet.py compare.png --beside real1.png --beside real2.png

`--designs` adds a KiCad board; `--beside` puts crops of real pictures at the left of the rows, to be looked
at: no real picture is shipped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.drawing import INK, PAPER, draw_text
from inspect_vit.image_io import read_image
from training.artwork import make_layers
from training.colour_style import draw_style
from training.layers import Layers
from training.pairs import DefectPlan, Pair, colour_pair, scan_pair
from training.sources import draw_artwork, find_source

SIDE, GAP, TITLE = 288, 6, 22
COLOURS = 256
"""Of the sheet: grain costs bytes."""
MARK = (255, 0, 200)
BOARDS = (
    ("scan", 14, ""),
    ("scan", 9, ""),
    ("green mask, tinned", 4, "green/hasl"),
    ("blue mask, gold", 1, "blue/enig"),
    ("red mask, tinned", 6, "red/hasl"),
    ("no mask, copper", 3, "none/copper"),
)
"""Title, seed, and mask and finish."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--designs", type=Path, help="folder of KiCad designs; one board is drawn from them")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="a real picture; repeat")
    options = parser.parse_args()
    cells = [cell(title, draw(make_layers(seed, SIDE), look, seed)) for title, seed, look in BOARDS]
    if options.designs is not None:
        rng = np.random.default_rng(2)
        layers = draw_artwork(find_source(options.designs), rng, SIDE, 40.0).layers
        cells[-1] = cell("KiCad design, green mask", draw(layers, "green/enig", 2))
    real = [titled("real", centre_of(read_image(path)[0])) for path in options.beside]
    rows = [beside(cells[i : i + 2]) for i in range(0, len(cells), 2)]
    if real:
        rows = [beside([real[i % len(real)], row]) for i, row in enumerate(rows)]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    sheet = Image.fromarray(stacked(rows)).quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    sheet.save(options.out, "PNG", optimize=True)
    print(f"wrote {options.out}, {options.out.stat().st_size / 1000:.0f} kB")


def draw(layers: Layers, look: str, seed: int) -> Pair:
    """A pair of the board, as a scan or in colour ("mask/finish")."""
    rng, plan = np.random.default_rng(seed), DefectPlan(count=(5, 7), good_share=0.0, size_px=(8, 40))
    if not look:
        return scan_pair(layers, rng, plan=plan)
    mask, finish = look.split("/")
    return colour_pair(layers, rng, plan=plan, style=draw_style(rng, mask=mask, finish=finish))


def cell(title: str, pair: Pair) -> NDArray[np.uint8]:
    """Board with the outlines of its defects, and reference."""
    board, reference = (
        np.repeat(picture[..., None], 3, 2) if picture.ndim == 2 else picture.copy()
        for picture in (pair.board, pair.reference)
    )
    for left, top, right, bottom in pair.drawn.boxes.astype(int).tolist():
        cv2.rectangle(board, (left, top), (right - 1, bottom - 1), MARK, 1)
    return titled(f"{title}: {', '.join(sorted(set(pair.drawn.labels)))}", beside([board, reference]))


def titled(title: str, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    head = np.full((TITLE, picture.shape[1], 3), PAPER, np.uint8)
    draw_text(head, title, (2, TITLE - 7), 13, ink=INK)
    return np.vstack([head, picture])


def centre_of(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = picture.shape[:2]
    top, left = max(height - SIDE, 0) // 2, max(width - SIDE, 0) // 2
    return np.ascontiguousarray(picture[top : top + SIDE, left : left + SIDE])


def beside(pictures: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """In one row, a gap between them; all of one height, or filled up below."""
    height = max(picture.shape[0] for picture in pictures)
    parts = []
    for picture in pictures:
        below = ((0, height - picture.shape[0]), (0, GAP), (0, 0))
        parts.append(np.pad(picture, below, constant_values=255))
    return np.hstack(parts)[:, :-GAP]


def stacked(rows: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    width = max(row.shape[1] for row in rows)
    parts = [np.pad(row, ((0, GAP), (0, width - row.shape[1]), (0, 0)), constant_values=255) for row in rows]
    return np.vstack(parts)[:-GAP]


if __name__ == "__main__":
    main()
