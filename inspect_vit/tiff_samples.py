"""The samples of a TIFF page of more than 8 bit, without loss, and of the BigTIFFs that Pillow cannot open.

Pillow cuts 16-bit colour to 8 bit and has no big-endian BigTIFF; OpenCV mixes up separate planes. So the
layout (strips or tiles, planes, byte order, predictor) is read here. One strip or tile at a time is
decompressed by libtiff, which gets it wrapped as a small grey picture of bytes.

References: TIFF 6.0 (1992), sections 14, 15; Adobe Photoshop TIFF Technical Note 3 (float predictor).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inspect_vit import tiff_header as tag
from inspect_vit.errors import ImageTooLargeError, UnsupportedImageError
from inspect_vit.tiff_header import Page, read_exactly

_DTYPES = {(1, 8): "u1", (1, 12): "u2", (1, 16): "u2", (3, 16): "f2", (3, 32): "f4", (3, 64): "f8"}
"""(sample format, bits) that are read."""
_BYTE_CODECS = {5: "LZW", 8: "Deflate", 32773: "PackBits", 32946: "Deflate", 34925: "LZMA", 50000: "Zstd"}
"""Compressions whose result is the plain bytes of the samples, whatever these mean."""


def read_samples(file: BinaryIO, page: Page, *, max_bytes: int) -> NDArray[Any]:
    """Decode a page as stored: (H, W, S), unsigned or float, in the machine's byte order.

    Args:
        max_bytes: size of the result above which nothing is decoded.

    Raises:
        UnsupportedImageError: a compression, depth or layout that is not read.
        ImageTooLargeError: more than `max_bytes`.
        ValueError: damaged or cut short.
    """
    height, width, num_samples = page.number(tag.HEIGHT, 0), page.number(tag.WIDTH, 0), page.num_samples
    dtype = _stored_dtype(page)
    size = height * width * num_samples * dtype.itemsize
    if size > max_bytes:
        raise ImageTooLargeError(
            f"the picture takes {size} bytes with {num_samples} samples of {page.bits} bit a pixel; "
            f"the limit is {max_bytes}: send it in parts or as 8 bit"
        )
    is_planar = page.number(tag.PLANAR, 1) == 2 and num_samples > 1
    samples = np.empty((height, width, num_samples), dtype.newbyteorder("="))
    for part in _segments(page, num_planes=num_samples if is_planar else 1):
        values = _decode_segment(file, page, part, dtype)
        bottom, right = min(part.top + part.height, height), min(part.left + part.width, width)
        channels = slice(part.plane, part.plane + 1) if is_planar else slice(None)
        samples[part.top : bottom, part.left : right, channels] = values[
            : bottom - part.top, : right - part.left
        ]
    return samples


@dataclass(frozen=True)
class _Segment:
    """One strip or tile: where it lies in the file and in the picture (px)."""

    offset: int
    num_bytes: int
    plane: int
    top: int
    left: int
    height: int
    width: int
    num_samples: int


def _segments(page: Page, *, num_planes: int) -> Iterator[_Segment]:
    height, width = page.number(tag.HEIGHT, 0), page.number(tag.WIDTH, 0)
    is_tiled = tag.TILE_OFFSETS in page.tags
    if is_tiled:
        tile_height, tile_width = page.number(tag.TILE_HEIGHT, 0), page.number(tag.TILE_WIDTH, 0)
    else:
        tile_height, tile_width = min(page.number(tag.ROWS_PER_STRIP, height), height), width
    if min(tile_height, tile_width) <= 0:
        raise ValueError(f"TIFF tiles of {tile_width} x {tile_height} px in {width} x {height} px")
    down, across = -(-height // tile_height), -(-width // tile_width)
    wanted = down * across * num_planes
    offsets = page.tags.get(tag.TILE_OFFSETS if is_tiled else tag.STRIP_OFFSETS, np.empty(0, int))
    counts = page.tags.get(tag.TILE_BYTES if is_tiled else tag.STRIP_BYTES, np.empty(0, int))
    if page.number(tag.COMPRESSION, 1) == 1 and not counts.size:
        counts = np.zeros(offsets.size, int)  # old writers leave them out or zero: the layout tells the size
    if (found := min(offsets.size, counts.size)) < wanted:
        raise ValueError(f"{found} TIFF strips or tiles, wanted {wanted}")
    for index in range(wanted):
        plane, place = divmod(index, down * across)
        row, column = divmod(place, across)
        top, left = row * tile_height, column * tile_width
        yield _Segment(
            offset=int(offsets[index]),
            num_bytes=int(counts[index]),
            plane=plane,
            top=top,
            left=left,
            height=tile_height if is_tiled else min(tile_height, height - top),
            width=tile_width,
            num_samples=page.num_samples if num_planes == 1 else 1,
        )


def _decode_segment(file: BinaryIO, page: Page, part: _Segment, dtype: np.dtype[Any]) -> NDArray[Any]:
    """One strip or tile as (h, w, S)."""
    shape = part.height, part.width, part.num_samples
    num_values = part.width * part.num_samples
    row_bytes = (num_values * page.bits + 7) // 8
    raw = _read_bytes(file, page, part, row_bytes)
    native = dtype.newbyteorder("=")
    predictor = page.number(tag.PREDICTOR, 1) if page.number(tag.COMPRESSION, 1) != 1 else 1
    if predictor == 3 and dtype.kind == "f":
        return _undo_float_predictor(raw, part, dtype).reshape(shape).astype(native)
    if page.bits == 12:
        values = _unpack_12_bit(raw, num_values).reshape(shape)
    else:
        values = np.ascontiguousarray(raw).view(dtype).reshape(shape).astype(native)
    if predictor == 2 and page.bits != 12:
        whole = values.view(f"u{values.itemsize}")
        np.add.accumulate(whole, axis=1, dtype=whole.dtype, out=whole)
    elif predictor != 1:
        raise UnsupportedImageError(f"TIFF predictor {predictor} with {page.bits} bit is not read")
    return values


def _read_bytes(file: BinaryIO, page: Page, part: _Segment, row_bytes: int) -> NDArray[np.uint8]:
    """The plain bytes of one strip or tile, (h, row_bytes)."""
    size = part.height * row_bytes
    compression = page.number(tag.COMPRESSION, 1)
    file.seek(part.offset)
    if compression == 1:
        if 0 < part.num_bytes < size:
            raise ValueError(f"a TIFF strip or tile of {part.num_bytes} bytes, wanted {size}")
        raw = np.frombuffer(read_exactly(file, size), np.uint8)
        return raw.reshape(part.height, row_bytes)
    # No codec needs ten times the plain size: what claims more is damaged, as libtiff holds too.
    packed = read_exactly(file, min(part.num_bytes, 10 * size + 4096))
    return _inflate(packed, compression, height=part.height, row_bytes=row_bytes)


def _inflate(packed: bytes, compression: int, *, height: int, row_bytes: int) -> NDArray[np.uint8]:
    """Decompress by libtiff, which gets the bytes as a grey picture of one strip: (height, row_bytes)."""
    tags = {
        tag.WIDTH: row_bytes,
        tag.HEIGHT: height,
        tag.BITS: 8,
        tag.COMPRESSION: compression,
        tag.PHOTOMETRIC: 1,
        tag.STRIP_OFFSETS: 0,
        tag.SAMPLES: 1,
        tag.ROWS_PER_STRIP: height,
        tag.STRIP_BYTES: len(packed),
        tag.PLANAR: 1,
    }
    tags[tag.STRIP_OFFSETS] = 8 + 2 + 12 * len(tags) + 4
    header = struct.pack("<4sIH", b"II*\0", 8, len(tags))
    header += b"".join(struct.pack("<HHII", name, 4, 1, value) for name, value in tags.items())
    with Image.open(io.BytesIO(header + bytes(4) + packed), formats=("TIFF",)) as image:
        return np.asarray(image)


def _undo_float_predictor(raw: NDArray[np.uint8], part: _Segment, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Bytes of a row are stored as differences, all highest bytes first -> big-endian floats."""
    differences = raw.reshape(part.height, -1, part.num_samples)
    sorted_bytes = np.add.accumulate(differences, axis=1, dtype=np.uint8)
    by_value = sorted_bytes.reshape(part.height, dtype.itemsize, -1).transpose(0, 2, 1)
    return np.ascontiguousarray(by_value).view(dtype.newbyteorder(">"))


def _unpack_12_bit(raw: NDArray[np.uint8], num_values: int) -> NDArray[np.uint16]:
    """Rows of 12-bit values, high bits first, two in three bytes -> (rows, num_values)."""
    triples = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 3))).astype(np.uint16).reshape(len(raw), -1, 3)
    first = triples[..., 0] << 4 | triples[..., 1] >> 4
    second = (triples[..., 1] & 15) << 8 | triples[..., 2]
    return np.stack([first, second], axis=-1).reshape(len(raw), -1)[:, :num_values]


def _stored_dtype(page: Page) -> np.dtype[Any]:
    """How one sample is stored; what this module does not read is refused here."""
    compression = page.number(tag.COMPRESSION, 1)
    if compression != 1 and compression not in _BYTE_CODECS:
        known = ", ".join(sorted(set(_BYTE_CODECS.values())))
        raise UnsupportedImageError(
            f"TIFF compression {compression} with {page.bits} bit is not read; save it with {known} or none"
        )
    if page.number(tag.FILL_ORDER, 1) != 1:
        raise UnsupportedImageError(f"TIFF with {page.bits} bit and reversed bits (FillOrder 2) is not read")
    name = _DTYPES.get((page.sample_format, page.bits))
    if name is None or len(np.unique(page.tags[tag.BITS])) > 1:
        kind = {1: "unsigned", 2: "signed", 3: "float"}.get(page.sample_format, "unknown")
        raise UnsupportedImageError(
            f"TIFF samples of {page.bits} bit, {kind}, are not read; send 8 or 16 bit, unsigned"
        )
    return np.dtype(page.order + name)
