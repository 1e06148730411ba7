"""The tags of a TIFF or BigTIFF file's first page, in both byte orders, and how many pages there are.

References: TIFF 6.0 (1992); BigTIFF as libtiff documents it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

ByteOrder = Literal["<", ">"]

MAGIC: dict[bytes, tuple[ByteOrder, bool]] = {
    b"II*\0": ("<", False),
    b"MM\0*": (">", False),
    b"II+\0": ("<", True),
    b"MM\0+": (">", True),
}
"""First four bytes: (byte order, whether it is a BigTIFF)."""

SUBFILE_TYPE, WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 254, 256, 257, 258, 259, 262
FILL_ORDER, STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS_PER_STRIP, STRIP_BYTES = 266, 273, 274, 277, 278, 279
X_RESOLUTION, Y_RESOLUTION, PLANAR, RESOLUTION_UNIT, PREDICTOR = 282, 283, 284, 296, 317
TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES = 322, 323, 324, 325
EXTRA_SAMPLES, SAMPLE_FORMAT, XMP, ICC_PROFILE = 338, 339, 700, 34675

_RATIONAL = 5
_TYPES = {1: "u1", 2: "u1", 3: "u2", 4: "u4", _RATIONAL: "u4", 7: "u1", 13: "u4", 16: "u8", 18: "u8"}
_MAX_TAGS = 4096
_SLACK_PX = 2**22
"""A tile may be larger than the picture, but not by more than this."""


@dataclass(frozen=True)
class Page:
    """The first page of a TIFF file, from its header."""

    order: ByteOrder
    is_big: bool
    tags: dict[int, NDArray[Any]]
    """The tags as flat arrays; a rational is two numbers. Tags of other types than unsigned are left out."""
    num_pages: int
    is_whole: bool
    """Whether the chain of pages ended as it should; if not, there may be more."""

    def number(self, tag: int, default: int) -> int:
        """The first value of a tag."""
        return int(self.tags[tag][0]) if tag in self.tags else default

    def ratio(self, tag: int) -> float:
        """A rational, or NaN where there is none."""
        over, under = (*self.tags.get(tag, ()), 0, 0)[:2]
        return float(over / under) if under else math.nan

    @property
    def bits(self) -> int:
        """Bits per sample, of the deepest channel."""
        return int(self.tags[BITS].max()) if BITS in self.tags else 1

    @property
    def sample_format(self) -> int:
        """1 unsigned, 2 signed, 3 float."""
        return int(self.tags[SAMPLE_FORMAT].max()) if SAMPLE_FORMAT in self.tags else 1

    @property
    def num_samples(self) -> int:
        return self.number(SAMPLES, 1)

    @property
    def num_colours(self) -> int:
        """3 for RGB, YCbCr and Lab, 4 for CMYK, else 1; samples beyond it are alpha or something else."""
        return {2: 3, 5: 4, 6: 3, 8: 3}.get(self.number(PHOTOMETRIC, 1), 1)

    @property
    def alpha(self) -> Literal["", "straight", "premultiplied"]:
        """What the first channel beyond the colours is; a fourth with RGB is alpha unless said otherwise."""
        if self.num_samples <= self.num_colours:
            return ""
        kind = self.number(EXTRA_SAMPLES, 2 if (self.num_colours, self.num_samples) == (3, 4) else 0)
        return "premultiplied" if kind == 1 else "straight" if kind == 2 else ""


def read_page(file: BinaryIO) -> Page:
    """Read the tags of the first page and count the pages; no pixel is read.

    Raises:
        ValueError: the header is damaged or cut short.
    """
    file.seek(0)
    order, is_big = MAGIC[file.read(4)]
    number, pointer, entry_bytes = order + "HQ"[is_big], order + "IQ"[is_big], 20 if is_big else 12
    file.seek(8 if is_big else 4)
    offset = _unpack(file, pointer)
    tags: dict[int, NDArray[Any]] | None = None
    seen: set[int] = set()
    # The chain of pages ends at 0; a damaged one leaves the file or comes back to itself.
    while offset and offset not in seen:
        try:
            file.seek(offset)
            num_tags = _unpack(file, number)
            if num_tags > _MAX_TAGS:
                raise ValueError(f"a TIFF page with {num_tags} tags; at most {_MAX_TAGS} are read")
            entries = read_exactly(file, num_tags * entry_bytes)
            following = _unpack(file, pointer)
            if tags is None:
                tags = dict(_read_tags(file, entries, order, is_big=is_big))
        except (OSError, OverflowError, ValueError):
            if tags is None:
                raise
            break
        seen.add(offset)
        offset = following
    if tags is None:
        raise ValueError("a TIFF file without a page")
    page = Page(order, is_big, tags, num_pages=len(seen), is_whole=offset == 0)
    _check_tiles(page)
    return page


def read_exactly(file: BinaryIO, size: int) -> bytes:
    """The next `size` bytes. Raises ValueError, without reading, where the file ends before."""
    start = file.tell()
    missing = start + size - file.seek(0, 2)
    if missing > 0:
        raise ValueError(f"the file ends {missing} bytes too early")
    file.seek(start)
    return file.read(size)


def _check_tiles(page: Page) -> None:
    """Decoders reserve memory for one tile, whatever the picture's size."""
    width, height = page.number(TILE_WIDTH, 0), page.number(TILE_HEIGHT, 0)
    if width * height > page.number(WIDTH, 0) * page.number(HEIGHT, 0) + _SLACK_PX:
        raise ValueError(f"TIFF tiles of {width} x {height} px")


def _read_tags(
    file: BinaryIO, entries: bytes, order: ByteOrder, *, is_big: bool
) -> Iterator[tuple[int, NDArray[Any]]]:
    layout, pointer = (order + "HHQ8s", order + "Q") if is_big else (order + "HHI4s", order + "I")
    for tag, kind, count, field in struct.iter_unpack(layout, entries):
        if kind not in _TYPES or not count:
            continue
        dtype = np.dtype(order + _TYPES[kind])
        num_values = count * (2 if kind == _RATIONAL else 1)
        if num_values * dtype.itemsize > len(field):
            file.seek(*struct.unpack(pointer, field))
            field = read_exactly(file, num_values * dtype.itemsize)
        yield tag, np.frombuffer(field, dtype, num_values)


def _unpack(file: BinaryIO, layout: str) -> int:
    return int(struct.unpack(layout, read_exactly(file, struct.calcsize(layout)))[0])
