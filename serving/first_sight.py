"""What a person sees first of a large board: all of it small, and its first call as it is.

Kept with the maps of an inspection, so that nobody waits until dozens of megapixels are decoded and the
reference is laid under them once more. A board of usual size is decoded faster than a person looks, and by
the second call of a large one its pyramid is there.
"""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import cv2
import numpy as np

from inspect_vit.drawing import Picture, Rect
from inspect_vit.overlay import encode_jpeg, encode_png
from inspect_vit.results import BoxXyxy
from serving.crops import Window
from serving.tiles_pyramid import TILE_PX, halve

LARGE_PIXELS = 4_000_000
OVERVIEW_PX = 2048
"""Longer side of the largest level that is kept whole."""
EXACT_PX = 320
"""Side of the square around the call that is kept without loss, for its close-up."""
NAME = "first_sight"

SightLayer = Literal["image", "reference"]


@dataclass(frozen=True)
class Part:
    """A part of one level of a picture's pyramid."""

    layer: SightLayer
    step: int
    """Times that the picture is halved."""
    rect: Rect
    """px of that level."""
    is_exact: bool
    """Every pixel is as it was posted."""


class FirstSight:
    """Parts of a board and of the reference laid under it, decoded when asked for; for several threads."""

    def __init__(self, parts: Sequence[Part], data: Sequence[bytes]) -> None:
        self.parts, self.data = tuple(parts), tuple(data)
        self._pictures: dict[int, Picture] = {}
        self._decoding = [threading.Lock() for _ in parts]
        sides = ((part.rect[2] - part.rect[0], part.rect[3] - part.rect[1]) for part in parts)
        self.nbytes = sum(map(len, data)) + sum(3 * width * height for width, height in sides)

    def cut(self, layer: SightLayer, window: Window) -> Picture | None:
        """The window's part of a layer, (rows, columns, 3) RGB; None where it was not kept."""
        for number, part in enumerate(self.parts):
            if part.layer != layer or (window.is_lossless and not part.is_exact):
                continue
            place = _place_in(part, window)
            if place is not None:
                left, top, right, bottom = place
                picture = self._picture(number)[top:bottom, left:right]
                for _ in range(window.step - part.step):
                    picture = halve(picture)
                return picture
        return None

    def smallest(self) -> Picture:
        """All of the board, at the smallest level, (rows, columns, 3) RGB."""
        # The last one: of a square board at full size the close-up has the same step.
        return self._picture(max(n for n, part in enumerate(self.parts) if part.layer == "image"))

    def _picture(self, number: int) -> Picture:
        # A browser asks for several tiles at once.
        with self._decoding[number]:
            if number not in self._pictures:
                self._pictures[number] = _decode(self.data[number])
            return self._pictures[number]

    @property
    def has_reference(self) -> bool:
        return any(part.layer == "reference" for part in self.parts)


def first_sight(board: Picture, reference: Picture | None, call: BoxXyxy | None) -> FirstSight | None:
    """What is kept of a large board, None of a usual one.

    Args:
        board: (H, W, 3) RGB.
        reference: the same, as it was laid under the board.
        call: box of the call that is shown first.
    """
    if board.shape[0] * board.shape[1] < LARGE_PIXELS:
        return None
    parts, data = [], []
    layers: tuple[tuple[SightLayer, Picture | None], ...] = (("image", board), ("reference", reference))
    for layer, picture in layers:
        for part, pixels in () if picture is None else _parts(layer, picture, call):
            parts.append(part)
            data.append(encode_png(pixels) if part.is_exact else encode_jpeg(pixels))
    return FirstSight(parts, data)


def add_to_maps(maps: bytes, sight: FirstSight | None) -> bytes:
    """The .npz of `archive.pack_maps` with a sight in it; pictures are not compressed again."""
    if sight is None:
        return maps
    buffer = io.BytesIO(maps)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as file:
        file.writestr(f"{NAME}/parts.json", json.dumps([asdict(part) for part in sight.parts]))
        for number, data in enumerate(sight.data):
            file.writestr(f"{NAME}/{number}", data)
    return buffer.getvalue()


def read_from_maps(maps: bytes) -> FirstSight | None:
    """What `add_to_maps` put there; None where there is nothing."""
    with zipfile.ZipFile(io.BytesIO(maps)) as file:
        if f"{NAME}/parts.json" not in file.namelist():
            return None
        parts = [
            Part(one["layer"], one["step"], tuple(one["rect"]), one["is_exact"])
            for one in json.loads(file.read(f"{NAME}/parts.json"))
        ]
        return FirstSight(parts, [file.read(f"{NAME}/{number}") for number in range(len(parts))])


def _parts(layer: SightLayer, picture: Picture, call: BoxXyxy | None) -> Iterator[tuple[Part, Picture]]:
    """The call's close-up, the tiles around it at every level, and all of the first level that is small."""
    height, width = picture.shape[:2]
    middle = None
    if call is not None:
        x, y = middle = _inside((call[0] + call[2]) / 2, width), _inside((call[1] + call[3]) / 2, height)
        close = _square_around(x, y, width, height)
        yield Part(layer, 0, close, is_exact=True), _cut(picture, close)
    step = 0
    while max(picture.shape) > OVERVIEW_PX:
        if middle is not None:
            around = _tiles_around(middle[0] >> step, middle[1] >> step, picture)
            yield Part(layer, step, around, is_exact=False), _cut(picture, around)
        picture, step = halve(picture), step + 1
    yield Part(layer, step, (0, 0, picture.shape[1], picture.shape[0]), is_exact=False), picture


def _inside(at: float, size: int) -> int:
    return min(max(int(at), 0), size - 1)


def _tiles_around(x: int, y: int, picture: Picture) -> Rect:
    """A place's tile and those around it: most of what a screen shows at the level's own size."""
    left, top = (max(at // TILE_PX - 1, 0) * TILE_PX for at in (x, y))
    right, bottom = ((at // TILE_PX + 2) * TILE_PX for at in (x, y))
    return left, top, min(right, picture.shape[1]), min(bottom, picture.shape[0])


def _cut(picture: Picture, rect: Rect) -> Picture:
    left, top, right, bottom = rect
    return picture[top:bottom, left:right]


def _square_around(x: int, y: int, width: int, height: int) -> Rect:
    left = max(min(x - EXACT_PX // 2, width - EXACT_PX), 0)
    top = max(min(y - EXACT_PX // 2, height - EXACT_PX), 0)
    return left, top, min(left + EXACT_PX, width), min(top + EXACT_PX, height)


def _place_in(part: Part, window: Window) -> Rect | None:
    """The window in px of a part that covers it, or None."""
    finer = window.step - part.step
    if finer < 0:
        return None
    side = 1 << finer
    left, top, right, bottom = part.rect
    # Means of 2 x 2 are those of the pyramid only where the part begins at such a square.
    if left % side or top % side:
        return None
    # The last column of a halved picture may cover less than a whole square.
    asked = [edge * side for edge in window.rect]
    if asked[0] < left or asked[1] < top or asked[2] - side >= right or asked[3] - side >= bottom:
        return None
    return asked[0] - left, asked[1] - top, min(asked[2], right) - left, min(asked[3], bottom) - top


def _decode(data: bytes) -> Picture:
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), np.uint8)
