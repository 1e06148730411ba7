"""Any board picture a factory sends -> (H, W, 3) uint8 RGB and an IntakeReport of what was done to it.

The header is read and judged before a pixel is decoded, so a small file cannot ask for much memory. Pixels
are converted band by band into the upright result, so that beside it only one decoded copy is held.

Who decodes: `tiff_samples` the TIFFs of more than 8 bit; OpenCV the PNGs of 16-bit colour, which Pillow cuts
to 8 bit, but only after Pillow has found them whole, because OpenCV overlooks truncation; Pillow all others.
docs/pictures.md lists every rule.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inspect_vit import pixels
from inspect_vit.errors import ImageError, ImageTooLargeError, UnsupportedImageError
from inspect_vit.intake import check_quality
from inspect_vit.picture_header import Header, open_pillow, read_header, refused_as_damaged
from inspect_vit.results import IntakeReport
from inspect_vit.tiff_samples import read_samples

MAX_PIXELS = 300_000_000
"""Default limit: a line scan of 16384 x 16384 px and a little more."""
MIN_SIDE_PX = 16
"""A defect and its surroundings do not fit into less."""
MAX_ASPECT = 200
"""Longest side over shortest; a bare board strip of 2 m x 10 mm is the extreme of the trade."""

_BYTES_PER_PIXEL = 8
"""16-bit RGBA; a file or decoded samples of more are refused as too large."""
_METADATA_BYTES = 64 * 2**20
_BAND_PX = 2**22


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
    with _opened(source, max_bytes=_BYTES_PER_PIXEL * max_pixels + _METADATA_BYTES) as file:
        header = read_header(file)
        _check_size(header, max_pixels)
        with refused_as_damaged(file):
            rgb, done = _decode(file, header, max_bytes=_BYTES_PER_PIXEL * max_pixels)
    warnings, errors = check_quality(np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8))
    dpi = header.dpi
    return rgb, IntakeReport(
        format=header.format,
        mode=header.mode,
        bit_depth=header.bit_depth,
        width=rgb.shape[1],
        height=rgb.shape[0],
        orientation=header.orientation,
        pages=header.num_pages,
        dpi=(dpi[1], dpi[0]) if dpi and header.orientation >= 5 else dpi,
        full_scale=done.full_scale,
        actions=tuple(done.actions),
        warnings=(*done.warnings, *warnings),
        errors=errors,
    )


def picture_size(source: bytes | str | Path) -> tuple[int, int]:
    """(width, height) in px as `read_image` returns the picture, from its header alone.

    Raises:
        ImageError: as `read_image`, as far as the header shows it; no limit on size or shape is applied.
    """
    with _opened(source, max_bytes=None) as file:
        return read_header(file).upright_size


@contextmanager
def _opened(source: bytes | str | Path, *, max_bytes: int | None) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    path = Path(source)
    try:
        if not path.is_file():
            raise ImageError(f"no such picture: {path}" if not path.exists() else f"{path} is not a file")
        if max_bytes is not None and (size := path.stat().st_size) > max_bytes:
            raise ImageTooLargeError(f"{path} has {size} bytes; a picture within the limit has {max_bytes}")
        file = path.open("rb")
    except OSError as error:
        raise ImageError(f"cannot read {path}: {error.strerror}") from error
    with file:
        yield file


def _check_size(header: Header, max_pixels: int) -> None:
    width, height = header.upright_size
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


@dataclass
class _Done:
    """What was done to a picture while it was decoded."""

    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    full_scale: int = 255


def _decode(file: BinaryIO, header: Header, *, max_bytes: int) -> tuple[NDArray[np.uint8], _Done]:
    """The upright picture (H, W, 3), for a header that was found acceptable."""
    done = _Done(warnings=list(header.warnings))
    if header.num_pages > 1:
        done.actions.append(f"took the first of {header.num_pages} pages")
    width, height = header.upright_size
    rgb = np.empty((height, width, 3), np.uint8)
    stored = pixels.stored_view(rgb, header.orientation)
    if header.page is not None:
        samples = read_samples(file, header.page, max_bytes=max_bytes)
        num_colours, alpha = header.page.num_colours, header.page.alpha
        if alpha == "premultiplied":
            done.actions.append("composited the transparent pixels on black")  # that is how they are stored
        _write_deep(
            stored,
            samples[..., :num_colours],
            samples[..., num_colours] if alpha == "straight" else None,
            done,
            bits=header.bit_depth,
            is_inverted=header.is_inverted,
        )
    elif header.format == "PNG":
        with open_pillow(file, header.format) as image:
            image.verify()  # checksums of the pixel data, which decoding alone does not compare
        _decode_by_pillow(file, header, stored, done)
    else:
        # Pillow turns a TIFF while it decodes.
        _decode_by_pillow(file, header, rgb if header.format == "TIFF" else stored, done)
    if header.is_inverted:
        done.actions.append("inverted: the file stores white as zero")
    if header.num_ignored:
        done.actions.append(f"ignored {header.num_ignored} channels that are neither colour nor alpha")
    if header.has_profile:
        done.actions.append("ignored the embedded colour profile")
    if header.orientation != 1:
        done.actions.append(f"rotated by EXIF orientation {header.orientation}")
    return rgb, done


def _decode_by_pillow(file: BinaryIO, header: Header, target: NDArray[np.uint8], done: _Done) -> None:
    with open_pillow(file, header.format) as image:
        image.load()
        if (image.height, image.width) != target.shape[:2]:
            raise ValueError(f"its pixels are {image.width} x {image.height}, unlike its header")
        if header.bit_depth <= 8:
            _write_8_bit(target, image, done)
            return
        if image.mode.startswith("I;16"):
            grey = np.empty((*target.shape[:2], 1), np.uint16)
            for band in _bands(target):
                grey[band, :, 0] = np.asarray(_rows(image, band))
            key = image.info.get("transparency")
            alpha = None if key is None else np.where(grey[..., 0] == key, 0, 65535).astype(np.uint16)
            _write_deep(target, grey, alpha, done, bits=16)
            return
        has_alpha = image.has_transparency_data
    file.seek(0)
    values = cv2.imdecode(np.frombuffer(file.read(), np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.dtype != np.uint16 or values.ndim != 3:
        raise ImageError("the 16-bit colour picture cannot be decoded; send it again or as 8 bit")
    bgra: NDArray[np.uint16] = np.asarray(values, np.uint16)
    alpha = bgra[..., 3] if has_alpha and bgra.shape[2] == 4 else None
    _write_deep(target, bgra[..., 2::-1], alpha, done, bits=16)


def _write_8_bit(target: NDArray[np.uint8], image: Image.Image, done: _Done) -> None:
    """Copy a loaded Pillow picture of at most 8 bit a channel."""
    if image.has_transparency_data:
        is_opaque = True
        for band in _bands(target):
            part = _rows(image, band)
            rgba = np.asarray((part.convert("LA") if part.mode == "La" else part).convert("RGBA"))
            if rgba[..., 3].min() < 255:
                is_opaque = False
                target[band] = pixels.on_black(rgba[..., :3], rgba[..., 3])
            else:
                target[band] = rgba[..., :3]
        done.actions.append(_alpha_action(is_opaque))
        return
    if image.mode not in ("1", "L", "RGB", "P", "CMYK", "YCbCr"):
        raise UnsupportedImageError(f"pixels of type {image.mode} are not read; send grey or RGB")
    is_grey = image.mode in ("1", "L")
    if not is_grey and image.mode != "RGB":
        done.actions.append(f"converted {'the palette' if image.mode == 'P' else image.mode} to RGB")
    for band in _bands(target):
        values = np.asarray(_rows(image, band).convert("L" if is_grey else "RGB"))
        target[band] = cv2.cvtColor(values, cv2.COLOR_GRAY2RGB) if is_grey else values


def _write_deep(
    target: NDArray[np.uint8],
    colour: NDArray[Any],
    alpha: NDArray[Any] | None,
    done: _Done,
    *,
    bits: int,
    is_inverted: bool = False,
) -> None:
    """Scale samples (H, W, 1 or 3), unsigned or float, to 8 bit; composite them on black by alpha (H, W)."""
    if colour.dtype.kind == "f":
        for values in (colour,) if alpha is None else (colour, alpha):
            pixels.check_floats(values[band] for band in _bands(target))
        full = done.full_scale = 1
        done.actions.append("scaled float to 8 bit by value x 255")
    elif colour.dtype == np.uint16:
        largest = max(int(colour[band].max()) for band in _bands(target))
        full = done.full_scale = pixels.FULL_12_BIT if bits == 12 else pixels.full_scale_of(largest)
        rule = "value / 257" if full == pixels.FULL_16_BIT else "value / 16.06 (12 bit: 4095 becomes 255)"
        done.actions.append(f"scaled {bits} to 8 bit by {rule}")
        if full < pixels.FULL_16_BIT and bits == 16:
            done.warnings.append(
                f"taken as a 12-bit frame: no value exceeds {pixels.FULL_12_BIT} (largest {largest}); "
                "if the camera writes 16 bit, it is under-exposed"
            )
    else:
        full = 255
    is_opaque = True
    for band in _bands(target):
        part = colour[band]
        if is_inverted:
            part = (full - part).astype(part.dtype)
        if alpha is not None and (opacity := alpha[band]).min() < pixels.opaque_value(opacity):
            is_opaque = False
            part = pixels.on_black(part, opacity)
        target[band] = pixels.to_8_bit(part, full)
    if alpha is not None:
        done.actions.append(_alpha_action(is_opaque))


def _alpha_action(is_opaque: bool) -> str:
    if is_opaque:
        return "dropped the alpha channel: every pixel is opaque"
    return "composited the transparent pixels on black"


def _bands(target: NDArray[np.uint8]) -> Iterator[slice]:
    """Rows of (H, W, ...) in parts of some 4 Mpx, so that what is computed on them stays small."""
    height, width = target.shape[:2]
    step = max(1, _BAND_PX // width)
    for top in range(0, height, step):
        yield slice(top, min(top + step, height))


def _rows(image: Image.Image, band: slice) -> Image.Image:
    if (band.start, band.stop) == (0, image.height):
        return image
    return image.crop((0, band.start, image.width, band.stop))
