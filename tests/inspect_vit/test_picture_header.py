"""Size, orientation, pages and resolution are told as the file has them, and the size without any pixel."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

from inspect_vit.errors import ImageError, UnsupportedImageError
from inspect_vit.image_io import picture_size, read_image

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
NAMES = ["JPEG", "PNG", "BMP", "TIFF", "WEBP"]


def board(height: int = 40, width: int = 64) -> NDArray[np.uint8]:
    blocks = np.random.default_rng(0).integers(0, 256, (height // 8, width // 8, 3))
    return np.kron(blocks, np.ones((8, 8, 1), np.int64)).astype(np.uint8)


def encoded(name: str, pixels: NDArray[Any] | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(board() if pixels is None else pixels).save(stream, name, **options)
    return stream.getvalue()


def tiff(pixels: NDArray[Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **options)
    return stream.getvalue()


def exif(**tags: Any) -> Image.Exif:
    block = Image.Exif()
    for name, value in tags.items():
        block[{"orientation": 274, "x": 282, "y": 283, "unit": 296}[name]] = value
    return block


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_with_exif_behind_its_pixels(orientation: int) -> bytes:
    whole, end = encoded("PNG"), png_chunk(b"IEND", b"")
    assert whole.endswith(end)
    block = exif(orientation=orientation).tobytes().removeprefix(b"Exif\0\0")
    return whole.removesuffix(end) + png_chunk(b"eXIf", block) + end


class TestPictureSize:
    @pytest.mark.parametrize("name", NAMES)
    def test_is_that_of_the_picture_from_bytes_and_path(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "板.bin"
        path.write_bytes(encoded(name))
        assert picture_size(path) == picture_size(str(path)) == picture_size(path.read_bytes()) == (64, 40)

    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("name", ["JPEG", "PNG", "TIFF", "WEBP"])
    def test_is_that_of_the_upright_picture(self, name: str, orientation: int) -> None:
        """Orientations 5 to 8 exchange the sides (EXIF 2.32, tag 274)."""
        want = (64, 40) if orientation < 5 else (40, 64)
        assert picture_size(encoded(name, exif=exif(orientation=orientation))) == want

    def test_16_bit_tiff(self) -> None:
        deep = board().astype(np.uint16) * 257
        tags = [(274, "H", 1, 8, True)]
        data = tiff(deep, photometric="rgb", bigtiff=True, byteorder=">", extratags=tags)
        assert picture_size(data) == (40, 64)
        assert read_image(data)[0].shape == (64, 40, 3)

    def test_exif_behind_the_pixels(self) -> None:
        data = png_with_exif_behind_its_pixels(6)
        assert picture_size(data) == (40, 64)
        pixels, intake = read_image(data)
        np.testing.assert_array_equal(pixels, np.rot90(board(), -1))
        assert intake.orientation == 6

    def test_orientation_that_only_xmp_tells(self) -> None:
        info = PngImagePlugin.PngInfo()
        info.add_itxt("XML:com.adobe.xmp", XMP.decode())
        deep = tiff(
            board().astype(np.uint16) * 257, photometric="rgb", extratags=[(700, "B", len(XMP), XMP, True)]
        )
        for data in (
            encoded("PNG", pnginfo=info),
            encoded("JPEG", xmp=XMP, quality=95, subsampling=0),
            encoded("WEBP", xmp=XMP, lossless=True),
            tiff(board(), photometric="rgb", extratags=[(700, "B", len(XMP), XMP, True)]),
            deep,
        ):
            assert picture_size(data) == (40, 64)
            pixels, intake = read_image(data)
            assert np.abs(pixels.astype(int) - np.rot90(board(), -1)).mean() < 3
            assert intake.orientation == 6

    @pytest.mark.parametrize("name", ["JPEG", "PNG", "BMP", "TIFF"])
    def test_needs_no_pixels(self, name: str) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (200, 300, 3)).astype(np.uint8)
        whole = encoded(name, noise)
        start = whole[: len(whole) // 2]
        with pytest.raises(ImageError):
            read_image(start)
        assert picture_size(start) == (300, 200)

    def test_has_no_limit(self) -> None:
        header = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
        bomb = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b""))
        assert picture_size(bomb) == (60000, 60000)

    def test_refuses_what_is_no_picture(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedImageError, match="text"):
            picture_size(b"hello, this is a board")
        with pytest.raises(ImageError, match="no such picture"):
            picture_size(tmp_path / "missing.png")
        with pytest.raises(ImageError, match="empty"):
            picture_size(b"")


class TestResolution:
    @pytest.mark.parametrize(
        ("data", "want"),
        [
            (lambda: encoded("JPEG", dpi=(600, 300)), (600, 300)),
            (lambda: encoded("JPEG", exif=exif(x=1200.0, y=600.0, unit=2)), (1200, 600)),
            (lambda: encoded("JPEG", exif=exif(x=100.0, y=100.0, unit=3)), (254, 254)),
            (lambda: encoded("JPEG", exif=exif(orientation=1)), None),
            (lambda: encoded("JPEG"), None),
            (lambda: encoded("PNG", dpi=(600, 300)), (600, 300)),
            (lambda: encoded("PNG"), None),
            (lambda: encoded("BMP", dpi=(600, 300)), (600, 300)),
            (lambda: encoded("TIFF", dpi=(600, 300)), (600, 300)),
            (lambda: encoded("TIFF"), None),
            (lambda: tiff(board(), photometric="rgb", resolution=(40, 20), resolutionunit=3), (101.6, 50.8)),
            (lambda: tiff(board(), photometric="rgb", resolution=(40, 20), resolutionunit=1), None),
            (lambda: encoded("WEBP"), None),
        ],
    )
    def test_is_told_in_dots_per_inch(
        self, data: Callable[[], bytes], want: tuple[float, float] | None
    ) -> None:
        """PNG and BMP count whole dots per metre, hence the tolerance: 1 dot per metre is 0.0254 dpi."""
        dpi = read_image(data())[1].dpi
        assert dpi == (want if want is None else pytest.approx(want, abs=0.0254))

    def test_turns_with_the_picture(self) -> None:
        data = encoded("TIFF", dpi=(600, 300), exif=exif(orientation=6))
        assert read_image(data)[1].dpi == (300, 600)


class TestBitDepth:
    @pytest.mark.parametrize(
        ("data", "want"),
        [
            (lambda: encoded("PNG", board()[..., 0] > 127), 1),
            (lambda: encoded("PNG", board()[..., 0].astype(np.uint16) * 257), 16),
            (lambda: encoded("BMP", board()[..., 0] > 127), 1),
            (lambda: encoded("BMP"), 8),
            (lambda: encoded("TIFF", board()[..., 0] > 127, compression="group4"), 1),
            (lambda: encoded("JPEG"), 8),
        ],
    )
    def test_is_that_of_the_file(self, data: Callable[[], bytes], want: int) -> None:
        assert read_image(data())[1].bit_depth == want


BOMBS = """
import io, resource, struct, sys, zlib
from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image

def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

data = sys.stdin.buffer.read()
before = peak_mib()
try:
    read_image(data, max_pixels=1_000_000)
    answer = "read"
except ImageError as error:
    answer = type(error).__name__
print(answer, round(peak_mib() - before))
"""


def tiled_tiff(tile: int, bits: int) -> bytes:
    """64 x 64 px in one tile of zeros that inflates to tile x tile px."""
    packed = zlib.compressobj()
    body = b"".join(packed.compress(bytes(tile * bits // 8)) for _ in range(tile)) + packed.flush()
    tags = {256: 64, 257: 64, 258: bits, 259: 8, 262: 1, 277: 1, 322: tile, 323: tile, 324: 8, 325: len(body)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    return (
        b"II*\0" + struct.pack("<I", 8 + len(body)) + body + struct.pack("<H", len(tags)) + entries + bytes(4)
    )


def png_of_text(num_bytes: int) -> bytes:
    text = png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(num_bytes)))
    return encoded("PNG").replace(png_chunk(b"IEND", b""), text + png_chunk(b"IEND", b""))


def webp_canvas(side: int) -> bytes:
    """A small picture whose extended header claims a canvas of side x side px."""
    small = encoded("WEBP", lossless=True)[12:]
    size = (side - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<IB3x", 10, 0) + size + size + small
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    "make",
    [
        lambda: tiled_tiff(16384, 8),
        lambda: tiled_tiff(16384, 16),
        lambda: png_of_text(300_000_000),
        lambda: webp_canvas(16383),
        lambda: encoded("PNG", np.zeros((9000, 9000), np.uint8)),
    ],
    ids=["8-bit tile", "16-bit tile", "png text", "webp canvas", "png pixels"],
)
def test_a_small_file_cannot_ask_for_much_memory(make: Callable[[], bytes], project: Path) -> None:
    """Each of these would take 250 MB and more if it were decoded before it was judged."""
    data = make()
    assert len(data) < 2_000_000
    started = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", BOMBS], input=data, cwd=project, capture_output=True, check=True
    )
    answer, grown_mib = result.stdout.decode().split()
    assert answer.endswith("Error") or answer == "read"
    assert int(grown_mib) < 100
    assert time.perf_counter() - started < 120


LINE_SCAN = """
import resource, sys
from inspect_vit.image_io import read_image

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pixels, intake = read_image(sys.argv[1])
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(pixels.shape[0], pixels.shape[1], grown / (pixels.shape[0] * pixels.shape[1]))
"""


def test_a_line_scan_takes_little_more_than_its_pixels(project: Path, tmp_path: Path) -> None:
    """The result has 3 bytes a pixel and the decoded file 1; working copies are a few rows, not pictures."""
    rows = np.random.default_rng(0).integers(0, 256, (16, 4096)).astype(np.uint8).repeat(4, 0)
    path = tmp_path / "scan.tif"
    tifffile.imwrite(path, np.tile(rows, (192, 1)), bigtiff=True)
    result = subprocess.run(
        [sys.executable, "-c", LINE_SCAN, str(path)], cwd=project, capture_output=True, check=True
    )
    height, width, bytes_per_pixel = result.stdout.decode().split()
    assert (int(height), int(width)) == (12288, 4096)
    assert float(bytes_per_pixel) < 5
