"""What is no board picture is refused with an error that says why: no other exception, no hang, no guess."""

from __future__ import annotations

import io
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.errors import ImageError, ImageTooLargeError, UnsupportedImageError
from inspect_vit.image_io import read_image

# Pillow warns of damaged TIFF directories before it gives up on them.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL")


def board(height: int = 60, width: int = 80) -> NDArray[np.uint8]:
    """Blocks of colour, (H, W, 3)."""
    blocks = np.random.default_rng(0).integers(0, 256, (height // 10 + 1, width // 10 + 1, 3))
    return np.kron(blocks, np.ones((10, 10, 1), np.int64))[:height, :width].astype(np.uint8)


def encoded(pixels: NDArray[np.generic], name: str, *, mode: str | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(stream, name, **options)
    return stream.getvalue()


def tiff(pixels: NDArray[np.generic], **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **options)
    return stream.getvalue()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "error", "words"),
        [
            (b"", ImageError, "empty"),
            (b"hello, this is a board", UnsupportedImageError, "text"),
            (b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", UnsupportedImageError, "SVG"),
            (b"%PDF-1.7 ...", UnsupportedImageError, "PDF"),
            (bytes(range(256)), UnsupportedImageError, "256 bytes"),
            (b"\0\0\0 ftypavif" + bytes(64), UnsupportedImageError, "AVIF"),
            (b"\x89PNG\r\n\x1a\n", ImageError, "PNG picture is damaged"),
            (b"II*\0" + bytes(20), ImageError, "damaged .*without a page"),
        ],
    )
    def test_not_a_picture(self, data: bytes, error: type[ImageError], words: str) -> None:
        with pytest.raises(error, match=words) as caught:
            read_image(data)
        assert type(caught.value) is error

    def test_gif_is_refused_by_name(self) -> None:
        with pytest.raises(UnsupportedImageError, match=r"GIF.*send JPEG"):
            read_image(encoded(board(), "GIF"))

    @pytest.mark.parametrize("name", ["JPEG", "PNG", "BMP", "TIFF", "WEBP"])
    @pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
    def test_truncated(self, name: str, share: float) -> None:
        noise = np.random.default_rng(1).integers(0, 256, (90, 90, 3)).astype(np.uint8)
        data = encoded(noise, name)
        with pytest.raises(ImageError) as caught:
            read_image(data[: int(len(data) * share)])
        assert caught.value.code == "image_undecodable"

    def test_pixel_limit_holds_before_decoding(self) -> None:
        """A header that claims 60000 x 60000 px, with no pixels behind it, must not be decoded."""
        header = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
        bomb = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b""))
        start = time.process_time()
        with pytest.raises(ImageTooLargeError, match=r"60000 x 60000 px, 3600\.0 Mpx"):
            read_image(bomb)
        assert time.process_time() - start < 1

    def test_pixel_limit_is_inclusive_and_the_callers(self) -> None:
        data = encoded(board(60, 80), "PNG")
        assert read_image(data, max_pixels=4800)[0].shape == (60, 80, 3)
        with pytest.raises(ImageTooLargeError):
            read_image(data, max_pixels=4799)

    def test_absurd_shapes(self) -> None:
        line = np.random.default_rng(0).integers(0, 256, (16, 3201)).astype(np.uint8)
        with pytest.raises(ImageError, match="200 to 1"):
            read_image(encoded(line, "PNG"))
        assert read_image(encoded(line[:, :3200], "PNG"))[0].shape == (16, 3200, 3)
        with pytest.raises(ImageError, match="at least 16 px"):
            read_image(encoded(board(15, 80), "PNG"))

    def test_floats_that_mean_nothing(self) -> None:
        values = np.random.default_rng(0).random((32, 32)).astype(np.float32)
        values[3, 4] = np.nan
        with pytest.raises(ImageError, match="1 samples are NaN"):
            read_image(tiff(values))
        with pytest.raises(ImageError, match="run from 0 to 2"):
            read_image(tiff(np.linspace(0, 2, 1024, dtype=np.float32).reshape(32, 32)))

    def test_signed_and_32_bit_integers(self) -> None:
        for dtype in (np.int16, np.int32, np.uint32):
            with pytest.raises(UnsupportedImageError, match="8 or 16 bit, unsigned"):
                read_image(tiff(np.arange(1024, dtype=dtype).reshape(32, 32)))

    def test_paths(self, tmp_path: Path) -> None:
        with pytest.raises(ImageError, match="no such picture"):
            read_image(tmp_path / "missing.png")
        with pytest.raises(ImageError, match="not a file"):
            read_image(tmp_path)
        with pytest.raises(ImageError):
            read_image("a" * 300)


def test_a_png_with_a_flipped_bit_in_its_pixels_is_refused() -> None:
    """Its checksums make every flip detectable, so none may pass as a board."""
    data = encoded(board(), "PNG")
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start], "big")
    for offset in range(start + 4, start + 4 + length, 7):
        damaged = bytearray(data)
        damaged[offset] ^= 0x10
        with pytest.raises(ImageError):
            read_image(bytes(damaged))
