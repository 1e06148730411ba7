"""Any board picture a factory sends -> (H, W, 3) uint8 RGB and an IntakeReport of what was done to it.

The header is read and judged before a pixel is decoded, so a small file cannot ask for much memory.
Pillow decodes first, because it notices truncation; 16-bit colour is then decoded by OpenCV, because Pillow
cuts it to 8 bit unsaid. Pillow's decoders raise whatever a damaged file provokes, so each conversation with
them is held inside `_refused_as_damaged`, which makes every fault of a file an ImageError.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, UnidentifiedImageError

from inspect_vit.errors import ImageError, ImageTooLargeError, UnsupportedImageError
from inspect_vit.intake import check_quality
from inspect_vit.pixels import on_black, scale_16_bit, scale_float, upright
from inspect_vit.results import IntakeReport

MAX_PIXELS = 300_000_000
"""Default limit: a line scan of 16384 x 16384 px and a little more."""
MIN_SIDE_PX = 16
"""A defect and its surroundings do not fit into less."""
MAX_ASPECT = 200
"""Longest side over shortest; a bare board strip of 2 m x 10 mm is the extreme of the trade."""

# Pillow's own pixel limit is process-wide, looser or tighter than the caller's `max_pixels`; this file
# applies that one, from the header, on every read. Truncation is an error whatever others set.
Image.MAX_IMAGE_PIXELS = None
ImageFile.LOAD_TRUNCATED_IMAGES = False

_READ_FORMATS = ("JPEG", "PNG", "BMP", "TIFF", "WEBP")
_WANTED = "send JPEG, PNG, BMP, TIFF or WebP"
_EXIF_ORIENTATION = 274
_TIFF_BITS_PER_SAMPLE, _TIFF_PHOTOMETRIC, _TIFF_PLANAR, _TIFF_EXTRA_SAMPLES = 258, 262, 284, 338
_MAGIC = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
    b"RIFF": "WebP",
}
_TEXT_BYTES = bytes(range(32, 127)) + b"\t\n\r\f"
_FOREIGN = {b"GIF8": "a GIF", b"%PDF": "a PDF", b"8BPS": "a Photoshop file", b"PK\x03\x04": "a ZIP archive"}


def read_image(
    source: bytes | str | Path, *, max_pixels: int = MAX_PIXELS
) -> tuple[NDArray[np.uint8], IntakeReport]:
    """Decode one picture, upright, as (H, W, 3) uint8 RGB.

    Args:
        source: the file's bytes, or its path.
        max_pixels: width x height above which the picture is refused before it is decoded.

    Returns:
        The pixels, and what came in, what was done to it, and whether it is fit to be inspected (`errors`).

    Raises:
        UnsupportedImageError: not a picture in a format we read.
        ImageTooLargeError: more pixels than `max_pixels`.
        ImageError: empty, truncated, damaged, too small or absurdly long.
    """
    data = source if isinstance(source, bytes) else _read_file(Path(source), max_pixels)
    if not data:
        raise ImageError(f"the picture is empty (0 bytes); {_WANTED}")
    header = _read_header(data)
    _check_size(header, max_pixels)
    rgb, grey, actions = _decode(data, header)
    warnings, errors = check_quality(grey)
    return rgb, IntakeReport(
        format=header.format,
        mode=header.mode,
        bit_depth=header.bit_depth,
        width=rgb.shape[1],
        height=rgb.shape[0],
        actions=actions,
        warnings=warnings,
        errors=errors,
    )


@dataclass(frozen=True)
class _Header:
    format: str
    mode: str
    bit_depth: int
    width: int
    height: int
    num_pages: int
    white_is_zero: bool
    """Only for more than 8 bit: up to 8 bit Pillow inverts such files itself."""
    premultiplied: bool


def _read_file(path: Path, max_pixels: int) -> bytes:
    limit = 8 * max_pixels + 64 * 2**20  # 16-bit RGBA uncompressed, and room for metadata
    try:
        if not path.is_file():
            raise ImageError(f"no such picture: {path}" if not path.exists() else f"{path} is not a file")
        if (size := path.stat().st_size) > limit:
            raise ImageTooLargeError(
                f"{path} has {size} bytes; a picture of {max_pixels} pixels has at most {limit}"
            )
        return path.read_bytes()
    except OSError as error:
        raise ImageError(f"cannot read {path}: {error.strerror}") from error


def _read_header(data: bytes) -> _Header:
    with _refused_as_damaged(data), Image.open(io.BytesIO(data), formats=_READ_FORMATS) as image:
        name = str(image.format)
        tags: dict[int, Any] = dict(getattr(image, "tag_v2", {}))
        depth = _bit_depth(data, name, image.mode, tags)
        if depth == 16 and tags.get(_TIFF_PLANAR, 1) == 2:
            raise UnsupportedImageError(
                "16-bit TIFF with separate colour planes is not read; save it interleaved"
            )
        return _Header(
            format=name,
            mode=image.mode,
            bit_depth=depth,
            width=image.width,
            height=image.height,
            num_pages=int(getattr(image, "n_frames", 1)),
            white_is_zero=depth > 8 and tags.get(_TIFF_PHOTOMETRIC) == 0,
            premultiplied=1 in np.atleast_1d(tags.get(_TIFF_EXTRA_SAMPLES, ())),
        )


def _bit_depth(data: bytes, name: str, mode: str, tags: dict[int, Any]) -> int:
    """Bits per channel in the file, which Pillow's mode does not tell for colour."""
    if name == "PNG":
        return data[24]  # IHDR is the first chunk; its ninth byte is the depth
    if name == "TIFF":
        return int(np.max(tags.get(_TIFF_BITS_PER_SAMPLE, (1,))))
    return 1 if mode == "1" else 8


def _orientation(image: Image.Image) -> int:
    """Only after the size was judged: a PNG may keep EXIF behind its pixels, and Pillow decodes to get it."""
    value = image.getexif().get(_EXIF_ORIENTATION, 1)
    return int(value) if value in range(1, 9) else 1


def _check_size(header: _Header, max_pixels: int) -> None:
    width, height = header.width, header.height
    size = f"{width} x {height} px"
    if width * height > max_pixels:
        raise ImageTooLargeError(
            f"the picture has {size}, {width * height / 1e6:.1f} Mpx; "
            f"the limit is {max_pixels / 1e6:.1f} Mpx: send it in parts or at a lower resolution"
        )
    if min(width, height) < MIN_SIDE_PX:
        raise ImageError(f"the picture has {size}; each side must have at least {MIN_SIDE_PX} px")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(f"the picture has {size}; sides of more than {MAX_ASPECT} to 1 are not inspected")


def _decode(data: bytes, header: _Header) -> tuple[NDArray[np.uint8], NDArray[np.uint8], tuple[str, ...]]:
    """Pixels as (RGB (H, W, 3), grey (H, W), actions), upright, for a header that was found acceptable."""
    actions: list[str] = []
    if header.num_pages > 1:
        actions.append(f"took the first of {header.num_pages} pages")
    with _refused_as_damaged(data):
        if header.format == "PNG":
            with Image.open(io.BytesIO(data), formats=_READ_FORMATS) as image:
                image.verify()  # checksums of the pixel data, which decoding alone does not compare
        with Image.open(io.BytesIO(data), formats=_READ_FORMATS) as image:
            orientation = _orientation(image)
            image.load()
            deep = header.bit_depth > 8
            pixels = _deep_to_8_bit(data, header, image, actions) if deep else _to_8_bit(image, actions)
    if orientation != 1:
        actions.append(f"rotated by EXIF orientation {orientation}")
        if header.format != "TIFF":  # both decoders have turned a TIFF already
            pixels = upright(pixels, orientation)
    if pixels.ndim == 2:
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB), np.uint8), pixels, tuple(actions)
    return pixels, np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8), tuple(actions)


def _to_8_bit(image: Image.Image, actions: list[str]) -> NDArray[np.uint8]:
    """A loaded Pillow picture of at most 8 bit a channel -> (H, W) grey or (H, W, 3) RGB."""
    if image.has_transparency_data:
        rgba = np.asarray(image.convert("RGBA"))
        return on_black(np.ascontiguousarray(rgba[..., :3]), rgba[..., 3], actions)
    if image.mode in ("1", "L"):
        return np.array(image.convert("L"))
    if image.mode not in ("RGB", "P", "CMYK", "YCbCr"):
        raise UnsupportedImageError(f"pixels of type {image.mode} are not read; send grey or RGB")
    if image.mode != "RGB":
        actions.append(f"converted {'the palette' if image.mode == 'P' else image.mode} to RGB")
    return np.array(image.convert("RGB"))


def _deep_to_8_bit(data: bytes, header: _Header, image: Image.Image, actions: list[str]) -> NDArray[np.uint8]:
    """A loaded picture of more than 8 bit a channel -> (H, W) grey or (H, W, 3) RGB."""
    if image.mode == "F":
        pixels = scale_float(np.asarray(image), actions)
    elif image.mode.startswith("I;16"):
        pixels = scale_16_bit(np.asarray(image).astype(np.uint16, copy=False), actions)
    elif image.mode in ("RGB", "RGBA") and header.bit_depth == 16:
        values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        if values is None or values.dtype != np.uint16 or values.ndim != 3:
            raise ImageError("the 16-bit colour picture cannot be decoded; send it again or as 8 bit")
        colour = np.ascontiguousarray(values[..., 2::-1]).astype(np.uint16, copy=False)
        if image.has_transparency_data and values.shape[2] == 4 and not header.premultiplied:
            colour = on_black(colour, np.asarray(values[..., 3], np.uint16), actions)
        pixels = scale_16_bit(colour, actions)
    else:
        raise UnsupportedImageError(
            f"pixels of {header.bit_depth} bit and type {image.mode} are not read; send 8 or 16 bit, unsigned"
        )
    if header.white_is_zero:
        actions.append("inverted: the file stores white as zero")
        pixels = 255 - pixels
    return pixels


@contextmanager
def _refused_as_damaged(data: bytes) -> Iterator[None]:
    """Turn whatever the decoders raise about a file into an ImageError that says so."""
    try:
        yield
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise _not_a_picture(data) from None
    except MemoryError as error:
        raise ImageTooLargeError(
            "the picture does not fit into this machine's memory; send it in parts"
        ) from error
    except Exception as error:
        detail = str(error) or type(error).__name__
        raise ImageError(f"the picture is damaged or cut short ({detail}); send it again") from error


def _not_a_picture(data: bytes) -> ImageError:
    """The error for bytes that no allowed decoder recognises, naming what they seem to be."""
    head = data[:4096]
    for magic, name in _MAGIC.items():
        if head.startswith(magic) and (name != "WebP" or head[8:12] == b"WEBP"):
            return ImageError(
                f"the {name} picture is damaged, cut short or of a rare kind: its header cannot be read; "
                "send it again, or as PNG"
            )
    what = next((name for magic, name in _FOREIGN.items() if head.startswith(magic)), None)
    if what is None and head[4:8] == b"ftyp":
        what = "an AVIF, HEIC or MP4 file"
    if what is None and b"<svg" in head.lower():
        what = "an SVG drawing"
    if what is None and not head.translate(None, _TEXT_BYTES):
        what = "text"
    found = f"the upload is {what}" if what else f"the {len(data)} bytes are not a picture we can read"
    return UnsupportedImageError(f"{found}; {_WANTED}")
