"""What a picture file says of itself before a pixel is decoded: format, depth, size, orientation, pages, dpi.

Pillow reads the headers of JPEG, PNG, BMP and WebP, `tiff_header` those of TIFF. Pillow raises whatever a
damaged file provokes, so each conversation with it is held inside `refused_as_damaged`, which makes every
fault of a file an ImageError.
"""

from __future__ import annotations

import io
import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from PIL import Image, ImageFile, UnidentifiedImageError

from inspect_vit import tiff_header as tag
from inspect_vit.errors import ImageError, ImageTooLargeError, UnsupportedImageError
from inspect_vit.tiff_header import Page, read_exactly, read_page

# Pillow's own pixel limit is process-wide, looser or tighter than the caller's `max_pixels`; `image_io`
# applies that one, from the header, on every read. Truncation is an error whatever others set.
Image.MAX_IMAGE_PIXELS = None
ImageFile.LOAD_TRUNCATED_IMAGES = False

WANTED = "send JPEG, PNG, BMP, TIFF or WebP"
_PILLOW_FORMATS = ("JPEG", "PNG", "BMP", "WEBP")
_MAGIC = {b"\xff\xd8\xff": "JPEG", b"\x89PNG": "PNG", b"BM": "BMP", b"RIFF": "WebP"}
_TEXT_BYTES = bytes(range(32, 127)) + b"\t\n\r\f"
_FOREIGN = {b"GIF8": "a GIF", b"%PDF": "a PDF", b"8BPS": "a Photoshop file", b"PK\x03\x04": "a ZIP archive"}
_PER_INCH = {2: 1.0, 3: 2.54}
"""Resolution units of TIFF and EXIF: inch, centimetre. Others have no scale."""
_MAX_DPI = 1e6
_PNG_START_BYTES = 33
"""Signature and IHDR chunk."""
_PNG_METADATA = (b"eXIf", b"iTXt", b"tEXt", b"zTXt")
_PNG_END = b"\0\0\0\0IEND\xaeB`\x82"


@dataclass(frozen=True)
class Header:
    format: str
    mode: str
    bit_depth: int
    width: int
    height: int
    """Size as stored, before EXIF orientation."""
    orientation: int
    """EXIF orientation, 1 to 8."""
    num_pages: int
    dpi: tuple[float, float] | None
    """Across and down, as stored."""
    has_profile: bool
    """Whether an ICC profile is embedded."""
    warnings: tuple[str, ...] = ()
    is_inverted: bool = False
    """Whether a TIFF stores white as zero."""
    num_ignored: int = 0
    """Channels that are neither colour nor alpha."""
    page: Page | None = None
    """The tags of a TIFF that `tiff_samples` decodes; None: Pillow does."""

    @property
    def upright_size(self) -> tuple[int, int]:
        """(width, height) as seen."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)


def read_header(file: BinaryIO) -> Header:
    """Read the header of a picture; its pixels are not decoded.

    Raises:
        UnsupportedImageError: not a picture in a format we read.
        ImageError: empty, or a header that is damaged or cut short.
    """
    file.seek(0)
    start = file.read(4)
    if not start:
        raise ImageError(f"the picture is empty (0 bytes); {WANTED}")
    with refused_as_damaged(file):
        header = _tiff_header(file) if start in tag.MAGIC else _pillow_header(file)
        if min(header.width, header.height) <= 0:
            raise ValueError(f"a header that claims {header.width} x {header.height} px")
    return header


def open_pillow(file: BinaryIO, format_name: str) -> Image.Image:
    """Open with the one decoder that fits; call it inside `refused_as_damaged`."""
    file.seek(0)
    return Image.open(file, formats=("TIFF",) if format_name == "TIFF" else _PILLOW_FORMATS)


@contextmanager
def refused_as_damaged(file: BinaryIO) -> Iterator[None]:
    """Turn whatever the decoders raise about a file into an ImageError that says so."""
    try:
        yield
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise _not_a_picture(file) from None
    except MemoryError as error:
        raise ImageTooLargeError(
            "the picture does not fit into this machine's memory; send it in parts"
        ) from error
    except Exception as error:
        detail = str(error) or type(error).__name__
        raise ImageError(f"the picture is damaged or cut short ({detail}); send it again") from error


def _pillow_header(file: BinaryIO) -> Header:
    with open_pillow(file, "") as image:
        # Image.Image's own method: that of a PNG decodes the pixels to look for EXIF behind them.
        exif = Image.Image.getexif(image)
        if image.format == "PNG" and tag.ORIENTATION not in exif:
            exif = _png_exif_behind_pixels(file) or exif
        return Header(
            format="JPEG" if image.format == "MPO" else str(image.format),
            mode=image.mode,
            bit_depth=_bit_depth(file, image),
            width=image.width,
            height=image.height,
            orientation=_valid_orientation(exif.get(tag.ORIENTATION)),
            num_pages=int(getattr(image, "n_frames", 1)),
            dpi=_pillow_dpi(image, exif),
            has_profile=bool(image.info.get("icc_profile")),
        )


def _tiff_header(file: BinaryIO) -> Header:
    page = read_page(file)
    # Pillow cuts deep colour to 8 bit and does not know big-endian BigTIFF.
    is_ours = page.bits > 8 or (page.is_big and page.order == ">")
    if is_ours:
        mode = _deep_mode(page)
    elif page.sample_format == 2:
        raise UnsupportedImageError(f"signed {page.bits} bit TIFF samples are not read; send unsigned ones")
    else:
        with open_pillow(file, "TIFF") as image:
            mode = image.mode
    orientation = page.number(tag.ORIENTATION, 0)
    if not orientation and tag.XMP in page.tags:
        # Pillow looks there too: in every other format, and when it decodes a TIFF.
        found = re.search(rb'tiff:Orientation(="|>)([0-9])', page.tags[tag.XMP].tobytes())
        orientation = int(found[2]) if found else 0
    per_inch = _PER_INCH.get(page.number(tag.RESOLUTION_UNIT, 2), math.nan)
    return Header(
        format="TIFF",
        mode=mode,
        bit_depth=page.bits,
        width=page.number(tag.WIDTH, 0),
        height=page.number(tag.HEIGHT, 0),
        orientation=_valid_orientation(orientation),
        num_pages=page.num_pages,
        dpi=_valid_dpi(page.ratio(tag.X_RESOLUTION) * per_inch, page.ratio(tag.Y_RESOLUTION) * per_inch),
        has_profile=tag.ICC_PROFILE in page.tags,
        warnings=tuple(_tiff_warnings(page)),
        is_inverted=page.number(tag.PHOTOMETRIC, 1) == 0,
        num_ignored=max(0, page.num_samples - page.num_colours - (page.alpha != "")),
        page=page if is_ours else None,
    )


def _tiff_warnings(page: Page) -> Iterator[str]:
    if page.number(tag.SUBFILE_TYPE, 0) & 1:
        yield "the file calls its first page a reduced copy of another one"
    if not page.is_whole:
        yield f"the file is damaged or cut short behind page {page.num_pages}"


def _deep_mode(page: Page) -> str:
    """In Pillow's words, as far as they go."""
    if page.number(tag.PHOTOMETRIC, 1) not in (0, 1, 2):
        raise UnsupportedImageError(
            f"TIFF colours of kind {page.number(tag.PHOTOMETRIC, 1)} (PhotometricInterpretation) with "
            f"{page.bits} bit are not read; send grey or RGB"
        )
    if page.num_colours == 3:
        return "RGBA" if page.alpha else "RGB"
    grey = "F" if page.sample_format == 3 else "I;16" if page.bits > 8 else "L"
    return f"{grey}A" if page.alpha else grey


def _bit_depth(file: BinaryIO, image: Image.Image) -> int:
    """Bits per channel in the file, which Pillow's mode does not tell for colour."""
    file.seek(0)
    start = file.read(32)
    if image.format == "PNG":
        return start[24]  # IHDR is the first chunk; its ninth byte is the depth
    if image.format == "BMP":
        old = start[14:18] == b"\x0c\0\0\0"  # OS/2 header
        bits = int.from_bytes(start[24:26] if old else start[28:30], "little")
        return 5 if bits == 16 else min(bits, 8)
    return 8


def _valid_orientation(value: Any) -> int:
    return int(value) if value in range(1, 9) else 1


def _png_exif_behind_pixels(file: BinaryIO) -> Image.Exif | None:
    """EXIF or XMP of a PNG whose metadata follow the pixels: Pillow gets its metadata alone."""
    file.seek(0)
    chunks, is_behind = [file.read(_PNG_START_BYTES)], False
    while len(head := file.read(8)) == 8:
        length, name = struct.unpack(">I4s", head)
        if is_behind and name in _PNG_METADATA:
            chunks.append(head + read_exactly(file, length + 4))
        else:
            file.seek(length + 4, io.SEEK_CUR)
        is_behind |= name == b"IDAT"
    if len(chunks) == 1:
        return None
    with Image.open(io.BytesIO(b"".join([*chunks, _PNG_END])), formats=("PNG",)) as image:
        return Image.Image.getexif(image)


def _pillow_dpi(image: Image.Image, exif: Image.Exif) -> tuple[float, float] | None:
    if image.format in ("PNG", "BMP") or image.info.get("jfif_unit") in (1, 2):
        given: Any = image.info.get("dpi", (math.nan, math.nan))
        return _valid_dpi(*given)
    # Read from EXIF here, because Pillow makes 72 dpi of an EXIF block without resolution.
    per_inch = _PER_INCH.get(exif.get(tag.RESOLUTION_UNIT, 2), math.nan)
    x, y = (exif.get(name, math.nan) for name in (tag.X_RESOLUTION, tag.Y_RESOLUTION))
    return _valid_dpi(x, y, per_inch=per_inch)


def _valid_dpi(x: Any, y: Any, *, per_inch: float = 1.0) -> tuple[float, float] | None:
    """Resolution in dots per inch, or None where the file gives none or nonsense."""
    try:
        dpi = round(float(x) * per_inch, 2), round(float(y) * per_inch, 2)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return dpi if all(0 < value < _MAX_DPI for value in dpi) else None


def _not_a_picture(file: BinaryIO) -> ImageError:
    """The error for bytes that no allowed decoder recognises, naming what they seem to be."""
    file.seek(0)
    head = file.read(4096)
    names = {**_MAGIC, **dict.fromkeys(tag.MAGIC, "TIFF")}
    for magic, name in names.items():
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
    size = file.seek(0, io.SEEK_END)
    found = f"the upload is {what}" if what else f"the {size} bytes are not a picture we can read"
    return UnsupportedImageError(f"{found}; {WANTED}")
