"""Sets drawn by chance that every writer is asked to hold, and how outlines are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Ring, Shape
from training.formats.dataset import DataSet

CLASSES = ("open", "kurzschluß", "no", "假 缺陷", "never seen")
WIDTH, HEIGHT = 160, 120


@pytest.fixture
def mixed_set(tmp_path: Path) -> Callable[[int], DataSet]:
    """(seed) -> six boards: boxes, polygons with holes and in parts, pixels, one of them good."""

    def make(seed: int) -> DataSet:
        rng = np.random.default_rng(seed)
        root = (tmp_path / f"source{seed}").resolve()
        names = ("a/board 1.png", "b/board 1.png", "plätine.png", "板.png", "x.y.z.png", "good.png")
        samples = [_board(root / name, rng) for name in names[:-1]]
        samples.append(Sample(_picture(root / names[-1], rng), np.zeros((0, 4), np.float32), (), split="val"))
        return DataSet(tuple(samples), CLASSES, (), "", root)

    return make


def _picture(path: Path, rng: np.random.Generator) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, 256, (HEIGHT, WIDTH), np.uint8)).save(path)
    return path


def _board(path: Path, rng: np.random.Generator) -> Sample:
    """Defects in cells of 40 x 40 px, so that none overlaps another."""
    boxes, shapes = [], []
    for cell in rng.permutation(12)[: rng.integers(4, 10)]:
        corner = np.array([cell % 4 * 40.0, cell // 4 * 40.0])
        shape = _shape(corner, rng)
        low, high = np.sort(corner + rng.uniform(0, 40, (2, 2)), 0)
        boxes.append(shape.bounds() if shape else (*low, *high))
        shapes.append(shape)
    labels = tuple(CLASSES[int(i)] for i in rng.integers(0, 4, len(boxes)))
    return Sample(
        _picture(path, rng),
        np.array(boxes, np.float32),
        labels,
        origin=path.name,
        masks=tuple(shapes) if any(shapes) else None,
        split=str(rng.choice(["train", "val", "test"])),
    )


def _shape(corner: Ring, rng: np.random.Generator) -> Shape | None:
    kind = rng.integers(4)
    if kind == 0:
        return None
    if kind == 1:
        pixels = np.zeros((HEIGHT, WIDTH), np.bool_)
        left, top = (corner + 2).astype(int)
        pixels[top : top + 20, left : left + 25] = rng.random((20, 25)) < rng.uniform(0.3, 0.9)
        return Shape.from_mask(pixels)
    if kind == 2:
        holes = [_round(corner + np.array([20 + dx, 20]), 3.0, rng) for dx in (-8.0, 0.5, 8.5)]
        return Shape(polygons=(Polygon(_round(corner + 20, 18.0, rng), tuple(holes[: rng.integers(1, 4)])),))
    parts = [
        Polygon(_round(corner + np.array([x, y]), 8.0, rng))
        for x, y in ((9.5, 9.5), (29.0, 10.0), (18.0, 29.5))
    ]
    return Shape(polygons=tuple(parts[: rng.integers(1, 4)]))


def _round(centre: Ring, radius: float, rng: np.random.Generator) -> Ring:
    """A convex ring of 7 to 15 vertices on a circle, none of its gaps wider than two of its steps."""
    count = int(rng.integers(7, 16))
    angles = (np.arange(count) + rng.uniform(0, 0.8, count)) / count * 2 * math.pi
    return centre + radius * np.stack([np.cos(angles), np.sin(angles)], 1)


@pytest.fixture
def same_outline() -> Callable[[Shape | None, Shape | None, float], bool]:
    """(first, second, within px): the same pixels, or rings, wherever they begin and however they run."""

    def same(first: Shape | None, second: Shape | None, within_px: float) -> bool:
        if first is None or second is None:
            return first is second
        if first.runs is not None or second.runs is not None:
            return first.runs == second.runs and first.size == second.size
        return len(first.polygons) == len(second.polygons) and all(
            any(_same_polygon(a, b, within_px) for b in second.polygons) for a in first.polygons
        )

    return same


def _same_polygon(first: Polygon, second: Polygon, within_px: float) -> bool:
    return (
        _same_ring(first.exterior, second.exterior, within_px)
        and len(first.holes) == len(second.holes)
        and all(any(_same_ring(a, b, within_px) for b in second.holes) for a in first.holes)
    )


def _same_ring(first: Ring, second: Ring, within_px: float) -> bool:
    if len(first) != len(second):
        return False
    for ring in (second, second[::-1]):
        start = int(((ring - first[0]) ** 2).sum(1).argmin())
        if np.abs(np.roll(ring, -start, 0) - first).max() <= within_px:
            return True
    return False


@pytest.fixture
def damaged() -> Callable[[Path, int, int], Iterator[Path]]:
    """(folder, seed, how many): damage one of its files at a time, and mend it again."""

    def damage(folder: Path, seed: int, tries: int) -> Iterator[Path]:
        rng = np.random.default_rng(seed)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for _ in range(tries):
            path = files[rng.integers(len(files))]
            whole = path.read_bytes()
            data = bytearray(whole)
            for _ in range(rng.integers(1, 6)):
                at = int(rng.integers(len(data) + 1))
                data[at : at + int(rng.integers(12))] = _DEBRIS[rng.integers(len(_DEBRIS))]
            path.write_bytes(bytes(data))
            yield path
            path.write_bytes(whole)

    return damage


_DEBRIS = (
    b"",
    b"nan",
    b"1e400",
    b"-1",
    b"\0",
    b"\xff",
    b"[",
    b"}",
    b'"',
    b"<",
    b"&",
    b"null",
    b"\r\n",
    b"/..",
)
