"""How well copper and holes are found in pictures of good boards: the table of docs/data.md.

    python benchmarks/copper.py [--boards 12] [--deeppcb FOLDER] [--designs FOLDER]

Photographs and scans are drawn from procedural boards, and scans from KiCad designs if given; in DeepPCB's
templates copper is black. A picture is refused, or copper is found in it; "tone wrong" counts those in which
laminate was taken for copper.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from training.artwork import make_layers
from training.colour_style import NO_MASK, SOLDER_MASKS, draw_style
from training.copper import segment_copper
from training.formats.deeppcb import read_deeppcb
from training.holes import find_holes
from training.layers import Layers, Mask
from training.render import ScanStyle, render_scan
from training.render_colour import render_colour
from training.sources import draw_artwork, find_source

SIDE, PX_PER_MM = 480, 48.0
EVERY = 6
"""Of DeepPCB's training templates."""
Truth = tuple[NDArray[np.uint8], Mask, Layers | None]
"""Picture, copper, and the layers that it was drawn from."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boards", type=int, default=12, help="procedural boards a row")
    parser.add_argument("--deeppcb", type=Path, help="folder that holds PCBData")
    parser.add_argument("--designs", type=Path, help="folder of KiCad designs")
    options = parser.parse_args()
    print(
        "| pictures | refused | tone wrong | sure pixels right: median, least | holes found, wrong, in all |"
    )
    print("|---|---|---|---|---|")
    if options.deeppcb is not None:
        report("scans: DeepPCB, templates", templates(options.deeppcb))
    report("scans: procedural boards", scans(make_layers(seed, SIDE) for seed in range(4 * options.boards)))
    if options.designs is not None:
        report("scans: KiCad designs", scans(designs(options.designs, 4 * options.boards)))
    for mask in (*SOLDER_MASKS, NO_MASK):
        title = "no mask" if mask == NO_MASK else f"{mask} mask"
        report(f"photographs: {title}", photographs(mask, options.boards))


def report(title: str, truths: Iterator[Truth]) -> None:
    """Print one row."""
    total = refused = wrong = 0
    right: list[float] = []
    holes = np.zeros(3, int)
    known = False
    for picture, copper, layers in truths:
        total += 1
        try:
            found = segment_copper(picture)
        except ImageError:
            refused += 1
            continue
        where = found.known if layers is None else found.known & layers.board
        share = float((found.copper == copper)[where].mean())
        if share < 0.5:
            wrong += 1
            continue
        right.append(share)
        if layers is not None:
            known = True
            holes += count_holes(find_holes(picture, found), layers.holes)
    pixels = f"{np.median(right):.1%}, {min(right):.1%}" if right else "-"
    counted = ", ".join(map(str, holes)) if known else "-"
    print(f"| {title} | {refused} of {total} | {wrong} | {pixels} | {counted} |", flush=True)


def count_holes(found: Mask, drilled: Mask) -> tuple[int, int, int]:
    """(found, wrong, in all): a disc is right that shares half of its area and of the hole's."""
    count, pieces = cv2.connectedComponents(found.astype(np.uint8))
    in_all, holes = cv2.connectedComponents(drilled.astype(np.uint8))
    right = 0
    for number in range(1, count):
        piece = pieces == number
        under = np.bincount(holes[piece], minlength=in_all)
        hole = int(under[1:].argmax()) + 1 if in_all > 1 else 0
        common = int(under[hole]) if hole else 0
        right += common > 0 and 2 * common >= (piece | (holes == hole)).sum()
    return right, count - 1 - right, in_all - 1


def templates(root: Path) -> Iterator[Truth]:
    for sample in read_deeppcb(root, "trainval")[::EVERY]:
        assert sample.reference is not None
        picture = read_image(sample.reference)[0]
        yield picture, picture[..., 0] < 128, None


def designs(root: Path, count: int) -> Iterator[Layers]:
    source, rng = find_source(root), np.random.default_rng(0)
    for _ in range(count):
        yield draw_artwork(source, rng, SIDE, PX_PER_MM).layers


def scans(boards: Iterator[Layers]) -> Iterator[Truth]:
    for number, layers in enumerate(boards):
        picture = render_scan(layers, np.random.default_rng(number), ScanStyle(dust=0.0))
        yield picture, picture < 128, layers


def photographs(mask: str, count: int) -> Iterator[Truth]:
    for seed in range(count):
        layers, rng = make_layers(seed, SIDE), np.random.default_rng(seed)
        style = draw_style(rng, mask=mask)
        yield render_colour(layers, rng, style, nuisance=0.3), layers.copper, layers


if __name__ == "__main__":
    main()
