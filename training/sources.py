"""Where good boards come from: procedural artwork, a folder of KiCad designs, a folder of good pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import read_image
from training.artwork import make_layers
from training.copper import CopperMap, Which, segment_copper
from training.kicad import draw_layers, list_boards, read_board, windows
from training.kicad_board import KicadBoard, Side
from training.layers import Layers

PROCEDURAL = "procedural"
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Source:
    """One kind of good boards."""

    kind: Literal["procedural", "kicad", "pictures"]
    paths: tuple[Path, ...] = ()
    """Designs or pictures, sorted by name."""
    names: tuple[str, ...] = ()
    """Of the boards, for `group`."""
    licences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Artwork:
    """A board as drawn, and where it is from."""

    layers: Layers
    group: str
    licence: str = ""


def find_source(given: str | Path) -> Source:
    """What `given` is: the word "procedural", a folder with .kicad_pcb files, or a folder of pictures.

    Raises:
        ConfigError: none of the three.
    """
    if str(given) == PROCEDURAL:
        return Source("procedural")
    root = Path(given).resolve()
    if not root.is_dir():
        raise ConfigError(
            f"no such folder: {root}; give {PROCEDURAL!r}, a folder of KiCad designs or one of good pictures"
        )
    if any(root.rglob("*.kicad_pcb")):
        boards = list_boards(root)
        return Source(
            "kicad",
            tuple(board.path for board in boards),
            tuple(board.name for board in boards),
            tuple(board.licence for board in boards),
        )
    pictures = sorted(path for path in root.rglob("*") if path.suffix.lower() in _PICTURES)
    if not pictures:
        raise ConfigError(f"no .kicad_pcb and no picture under {root}; give a folder that has some")
    names = tuple(path.relative_to(root).with_suffix("").as_posix() for path in pictures)
    return Source("pictures", tuple(pictures), names, ("",) * len(pictures))


def draw_artwork(source: Source, rng: np.random.Generator, size: int, px_per_mm: float) -> Artwork:
    """A random square of `size` px of a random board of a source that is not pictures."""
    if source.kind == "procedural":
        layers = make_layers(int(rng.integers(2**31)), size, px_per_mm=px_per_mm)
        return Artwork(layers, layers.name)
    number = int(rng.integers(len(source.paths)))
    board = _kicad_board(source.paths[number])
    has_back = ("copper", "back") in board.flat
    side: Side = "back" if has_back and rng.random() < 0.5 else "front"
    window = windows(board, rng, size, px_per_mm, side=side)
    layers = draw_layers(board, side=side, px_per_mm=px_per_mm, window_mm=window)
    height, width = layers.size
    layers = layers.crop((0, 0, min(size, width), min(size, height)))
    return Artwork(layers, source.names[number], source.licences[number])


def cut_picture(
    source: Source, rng: np.random.Generator, size: int, copper: Which
) -> tuple[NDArray[np.uint8], CopperMap, str, tuple[str, ...]]:
    """A random square of `size` px (the picture, where it is smaller) of a random picture of the source.

    Returns:
        The picture (H, W, 3), its copper, the group, and the pictures that were refused before it.

    Raises:
        ImageError: copper was found in none of the pictures.
    """
    refused: list[str] = []
    for number in rng.permutation(len(source.paths)).tolist():
        picture, found = _read_picture(source.paths[number], copper)
        if isinstance(found, ImageError):
            refused.append(f"{source.paths[number].name}: {found}")
            continue
        height, width = found.copper.shape
        y, x = (int(rng.integers(max(side - size, 0) + 1)) for side in (height, width))
        view = (slice(y, y + size), slice(x, x + size))
        part = CopperMap(
            np.ascontiguousarray(found.copper[view]),
            np.ascontiguousarray(found.known[view]),
            found.kind,
            found.copper_is,
            found.sureness,
            found.notes,
        )
        return np.ascontiguousarray(picture[view]), part, source.names[number], tuple(refused)
    raise ImageError(f"copper was found in none of {len(source.paths)} pictures; the first: {refused[0]}")


@lru_cache(maxsize=16)
def _kicad_board(path: Path) -> KicadBoard:
    return read_board(path, check_nets=False)


@lru_cache(maxsize=4)
def _read_picture(path: Path, copper: Which) -> tuple[NDArray[np.uint8], CopperMap | ImageError]:
    try:
        picture = read_image(path)[0]
        return picture, segment_copper(picture, copper=copper)
    except ImageError as error:
        return np.zeros((1, 1, 3), np.uint8), error


def find_sources(given: str | Path | Sequence[str | Path]) -> tuple[Source, ...]:
    """One source or several; see `find_source`."""
    several = [given] if isinstance(given, (str, Path)) else list(given)
    if not several:
        raise ConfigError(f"no source of boards; give {PROCEDURAL!r} or a folder")
    return tuple(find_source(one) for one in several)
