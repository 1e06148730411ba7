"""Pictures of every format, depth and orientation arrive as they are; damaged ones are refused."""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.errors import ImageError, ImageTooLargeError, UnsupportedImageError
from inspect_vit.image_io import read_image

# Pillow warns of damaged TIFF directories before it gives up on them.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL")


def board(height: int = 60, width: int = 80, *, seed: int = 0) -> NDArray[np.uint8]:
    """A colour picture with structure at every scale, so that no two orientations are alike: (H, W, 3)."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 10 + 1, width // 10 + 1, 3)).astype(np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.NEAREST)).copy()
    smooth[:5, : width // 2] = (250, 30, 60)
    return smooth


def encoded(pixels: NDArray[np.generic], name: str, *, mode: str | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(stream, name, **options)
    return stream.getvalue()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_16_bit(pixels: NDArray[np.uint16], *, colour_type: int, before_data: bytes = b"") -> bytes:
    """Written by hand, because Pillow writes no 16-bit colour: filter 0, (H, W, C) big-endian."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels.reshape(height, -1))
    header = struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + before_data
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )


def tiff(pixels: NDArray[np.generic], **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **options)
    return stream.getvalue()


class TestPixelsArriveUnaltered:
    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("PNG", {}),
            ("BMP", {}),
            ("TIFF", {}),
            ("TIFF", {"compression": "tiff_lzw"}),
            ("TIFF", {"compression": "tiff_deflate"}),
            ("WEBP", {"lossless": True}),
        ],
    )
    def test_lossless_colour(self, name: str, options: dict[str, Any]) -> None:
        pixels, intake = read_image(encoded(board(), name, **options))
        np.testing.assert_array_equal(pixels, board())
        assert (intake.format, intake.mode, intake.bit_depth) == (name, "RGB", 8)
        assert (intake.width, intake.height, intake.actions) == (80, 60, ())

    @pytest.mark.parametrize("name", ["PNG", "BMP", "TIFF", "JPEG"])
    def test_grey_becomes_three_equal_channels(self, name: str) -> None:
        grey = np.tile(np.arange(0, 256, 2, dtype=np.uint8), (32, 1))
        options: dict[str, Any] = {"quality": 100} if name == "JPEG" else {}
        pixels, _ = read_image(encoded(grey, name, **options))
        assert np.abs(pixels.astype(int) - grey[..., None]).max() <= (1 if name == "JPEG" else 0)
        assert (pixels[..., 0] == pixels[..., 2]).all()

    def test_jpeg_colour_order_is_rgb(self) -> None:
        blocks = np.zeros((64, 96, 3), np.uint8)
        blocks[:, :32, 0], blocks[:, 32:64, 1], blocks[:, 64:, 2] = 255, 255, 255
        pixels, intake = read_image(encoded(blocks, "JPEG", quality=100, subsampling=0))
        assert np.abs(pixels.astype(int) - blocks).max() <= 4
        assert intake.format == "JPEG"

    def test_cmyk_jpeg(self) -> None:
        """Pure cyan ink takes away red and nothing else; the Adobe inversion must not turn it to red."""
        ink = np.zeros((32, 64, 4), np.uint8)
        ink[:, :32, 0] = 255
        image = Image.fromarray(ink, "CMYK")
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=100)
        pixels, intake = read_image(stream.getvalue())
        assert np.abs(pixels[16, 8].astype(int) - (0, 255, 255)).max() <= 6
        assert np.abs(pixels[16, 56].astype(int) - 255).max() <= 6
        assert "CMYK" in " ".join(intake.actions)

    def test_one_bit_png(self) -> None:
        bits = np.random.default_rng(0).random((40, 40)) > 0.5
        pixels, intake = read_image(encoded(bits, "PNG"))
        np.testing.assert_array_equal(pixels[..., 1], bits * 255)
        assert intake.bit_depth == 1

    def test_palette_png(self) -> None:
        palette = Image.fromarray(board()).quantize(16)
        stream = io.BytesIO()
        palette.save(stream, "PNG")
        pixels, intake = read_image(stream.getvalue())
        np.testing.assert_array_equal(pixels, np.asarray(palette.convert("RGB")))
        assert intake.mode == "P"

    def test_from_a_path_with_a_non_ascii_name(self, tmp_path: Path) -> None:
        path = tmp_path / "platine-größe-板.png"
        path.write_bytes(encoded(board(), "PNG"))
        np.testing.assert_array_equal(read_image(path)[0], board())
        np.testing.assert_array_equal(read_image(str(path))[0], board())


class TestSixteenBit:
    """value / 257 rounded; a frame that never exceeds 4095 is 12 bit: value / 16.06."""

    full = np.linspace(0, 65535, 64 * 64).astype(np.uint16).reshape(64, 64)
    twelve = (full >> 4).astype(np.uint16)

    @staticmethod
    def scaled(values: NDArray[np.uint16], full_scale: int) -> NDArray[np.uint8]:
        return np.asarray(np.floor(values * (255.0 / full_scale) + 0.5), np.uint8)

    @pytest.mark.parametrize("write", [lambda a: encoded(a, "PNG"), tiff, lambda a: tiff(a, byteorder=">")])
    def test_grey(self, write: Callable[[NDArray[np.uint16]], bytes]) -> None:
        pixels, intake = read_image(write(self.full))
        np.testing.assert_array_equal(pixels[..., 0], self.scaled(self.full, 65535))
        assert intake.bit_depth == 16
        assert intake.actions == ("scaled 16 to 8 bit by value / 257",)

    @pytest.mark.parametrize("write", [lambda a: encoded(a, "PNG"), tiff])
    def test_twelve_bit_camera_frame(self, write: Callable[[NDArray[np.uint16]], bytes]) -> None:
        assert self.twelve.max() == 4095
        pixels, intake = read_image(write(self.twelve))
        np.testing.assert_array_equal(pixels[..., 0], self.scaled(self.twelve, 4095))
        assert "16.06" in intake.actions[0]

    def test_one_value_above_4095_is_a_16_bit_picture(self) -> None:
        values = self.twelve.copy()
        values[0, 0] = 4096
        pixels, _ = read_image(encoded(values, "PNG"))
        assert pixels.max() == round(4096 / 257)

    @pytest.mark.parametrize(
        "write",
        [
            lambda a: png_16_bit(a, colour_type=2),
            lambda a: tiff(a, photometric="rgb"),
            lambda a: tiff(a, photometric="rgb", byteorder=">", tile=(16, 16)),
            lambda a: tiff(a, photometric="rgb", tile=(16, 16), bigtiff=True),
        ],
    )
    def test_colour_keeps_its_low_byte_and_order(self, write: Callable[[NDArray[np.uint16]], bytes]) -> None:
        values = board().astype(np.uint16) * 16  # within 12 bit: a decoder that drops the low byte loses it
        pixels, intake = read_image(write(values))
        np.testing.assert_array_equal(pixels, self.scaled(values, 4095))
        assert intake.bit_depth == 16

    def test_grey_stored_with_white_as_zero(self) -> None:
        pixels, intake = read_image(tiff(self.full, photometric="miniswhite"))
        np.testing.assert_array_equal(pixels[..., 0], 255 - self.scaled(self.full, 65535))
        assert "white as zero" in " ".join(intake.actions)

    def test_transparent_colour(self) -> None:
        values = np.full((32, 32, 4), 60000, np.uint16)
        values[:16, :, 3], values[16:, :, 3] = 65535, 32768
        values[:, ::4, :3] = 0
        pixels, _ = read_image(png_16_bit(values, colour_type=6))
        assert tuple(pixels[0, 1]) == (round(60000 / 257),) * 3
        assert tuple(pixels[31, 1]) == (round(60000 * 32768 / 65535 / 257),) * 3

    def test_floats_from_zero_to_one(self) -> None:
        values = np.linspace(0, 1, 4096, dtype=np.float32).reshape(64, 64)
        pixels, intake = read_image(tiff(values))
        np.testing.assert_array_equal(pixels[..., 0], np.rint(values * 255))
        assert intake.actions == ("scaled float to 8 bit by value x 255",)


class TestOrientation:
    @pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP", "TIFF"])
    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_exif_orientation_is_undone(self, name: str, orientation: int) -> None:
        """The stored corner that EXIF calls top left (by its table) must end up at the top left."""
        seen = board(40, 64)
        # EXIF 2.32, 4.6.4 A: what row 0 and column 0 of the stored picture are in the scene.
        store: dict[int, Callable[[NDArray[np.uint8]], NDArray[np.uint8]]] = {
            1: lambda a: a,
            2: np.fliplr,
            3: lambda a: np.rot90(a, 2),
            4: np.flipud,
            5: lambda a: np.transpose(a, (1, 0, 2)),
            6: np.rot90,  # row 0 is the right side: stored is the scene turned counter-clockwise
            7: lambda a: np.rot90(np.transpose(a, (1, 0, 2)), 2),
            8: lambda a: np.rot90(a, -1),
        }
        exif = Image.Exif()
        exif[274] = orientation
        lossy: dict[str, Any] = {"quality": 95, "subsampling": 0}
        options: dict[str, Any] = {"JPEG": lossy, "WEBP": {"lossless": True}}.get(name, {})
        stored = np.ascontiguousarray(store[orientation](seen))
        pixels, intake = read_image(encoded(stored, name, exif=exif, **options))
        assert pixels.shape == seen.shape
        assert np.abs(pixels.astype(int) - seen).mean() < (3 if name == "JPEG" else 0.01)
        assert (intake.width, intake.height) == (64, 40)
        said = f"rotated by EXIF orientation {orientation}" in intake.actions
        assert said == (orientation != 1)

    def test_16_bit_png_and_tiff_are_turned_once(self) -> None:
        scene = np.arange(40 * 64, dtype=np.uint16).reshape(40, 64) * 25
        stored = np.ascontiguousarray(np.rot90(scene))
        exif = Image.Exif()
        exif[274] = 6
        want = np.rint(scene / 257)
        for data in (encoded(stored, "PNG", exif=exif), tiff(stored, extratags=[(274, "H", 1, 6, True)])):
            np.testing.assert_array_equal(read_image(data)[0][..., 0], want)
        colour = np.stack([stored] * 3, -1)
        turned = read_image(tiff(colour, photometric="rgb", extratags=[(274, "H", 1, 6, True)]))[0]
        np.testing.assert_array_equal(turned[..., 2], want)


class TestTransparency:
    def test_alpha_is_composited_on_black(self) -> None:
        rgba = np.dstack([np.full((32, 32, 3), 200, np.uint8), np.full((32, 32), 255, np.uint8)])
        rgba[:, 8:16, 3], rgba[:, 16:24, 3] = 128, 0
        for name in ("PNG", "WEBP", "TIFF"):
            options: dict[str, Any] = {"lossless": True, "exact": True} if name == "WEBP" else {}
            pixels, intake = read_image(encoded(rgba, name, **options))
            assert [int(pixels[0, x, 0]) for x in (0, 8, 16, 31)] == [200, round(200 * 128 / 255), 0, 200]
            assert intake.actions == ("composited the transparent pixels on black",)

    def test_opaque_alpha_changes_nothing(self) -> None:
        rgba = np.dstack([board(), np.full((60, 80), 255, np.uint8)])
        pixels, intake = read_image(encoded(rgba, "PNG"))
        np.testing.assert_array_equal(pixels, board())
        assert "opaque" in intake.actions[0]

    def test_transparent_palette_entry(self) -> None:
        palette = Image.fromarray(np.tile(np.arange(2, dtype=np.uint8), (32, 16)), "P")
        palette.putpalette([255, 0, 0, 0, 255, 0])
        stream = io.BytesIO()
        palette.save(stream, "PNG", transparency=0)
        pixels, _ = read_image(stream.getvalue())
        assert (tuple(pixels[0, 0]), tuple(pixels[0, 1])) == ((0, 0, 0), (0, 255, 0))


class TestPages:
    @pytest.mark.parametrize("name", ["TIFF", "WEBP", "PNG"])
    def test_first_of_several_is_taken_and_said(self, name: str) -> None:
        pages = [Image.fromarray(board(seed=seed)) for seed in range(3)]
        stream = io.BytesIO()
        options: dict[str, Any] = {"lossless": True} if name == "WEBP" else {}
        pages[0].save(stream, name, save_all=True, append_images=pages[1:], **options)
        pixels, intake = read_image(stream.getvalue())
        np.testing.assert_array_equal(pixels, board(seed=0))
        assert intake.actions[0] == "took the first of 3 pages"


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
            (b"II*\0" + bytes(20), ImageError, "TIFF picture is damaged"),
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
        start = time.perf_counter()
        with pytest.raises(ImageTooLargeError, match=r"60000 x 60000 px, 3600\.0 Mpx"):
            read_image(bomb)
        assert time.perf_counter() - start < 1

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
        with pytest.raises(ImageError, match="1 pixels are NaN"):
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


FUZZ_SOURCES: dict[str, Callable[[], bytes]] = {
    "jpeg": lambda: encoded(board(32, 48), "JPEG"),
    "jpeg-exif-progressive": lambda: encoded(
        board(32, 48), "JPEG", progressive=True, exif=b"Exif\0\0II*\0" + bytes(30)
    ),
    "png": lambda: encoded(board(32, 48), "PNG"),
    "png-palette": lambda: encoded(board(32, 48), "PNG", mode="P"),
    "png-16": lambda: png_16_bit(board(32, 48).astype(np.uint16) * 257, colour_type=2),
    "bmp": lambda: encoded(board(32, 48), "BMP"),
    "tiff": lambda: encoded(board(32, 48), "TIFF"),
    "tiff-lzw": lambda: encoded(board(32, 48), "TIFF", compression="tiff_lzw"),
    "tiff-16": lambda: tiff(board(32, 48).astype(np.uint16) * 257, photometric="rgb"),
    "webp": lambda: encoded(board(32, 48), "WEBP"),
}


@pytest.mark.parametrize("source", FUZZ_SOURCES)
def test_no_bytes_raise_anything_but_image_errors(source: str) -> None:
    """300 damaged files of each kind (flipped bits, cuts, both, noise) are answered or refused, fast."""
    rng = np.random.default_rng(zlib.crc32(source.encode()))
    whole = FUZZ_SOURCES[source]()
    slowest = 0.0
    for round_number in range(300):
        damaged = bytearray(whole)
        if round_number % 4 != 1:
            # Half of the flips aim at the first 64 bytes: headers hold the sizes and offsets.
            for _ in range(int(rng.integers(1, 9))):
                reach = 64 if rng.random() < 0.5 else len(damaged)
                damaged[int(rng.integers(0, min(reach, len(damaged))))] ^= 1 << int(rng.integers(0, 8))
        if round_number % 4 in (1, 2):
            damaged = damaged[: int(rng.integers(0, len(damaged)))]
        if round_number % 4 == 3:
            start = int(rng.integers(0, len(damaged)))
            damaged[start : start + 16] = rng.bytes(16)
        begin = time.perf_counter()
        try:
            pixels, intake = read_image(bytes(damaged), max_pixels=4_000_000)
        except ImageError:
            pass
        else:
            assert pixels.dtype == np.uint8
            assert pixels.shape == (intake.height, intake.width, 3)
        slowest = max(slowest, time.perf_counter() - begin)
    assert slowest < 5


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


class TestFitness:
    """Frames that hold no board become errors; poor ones warnings; binary scans neither."""

    @staticmethod
    def scan(dark_share: float = 0.2) -> NDArray[np.uint8]:
        """Two-level tracks, `dark_share` black."""
        picture = np.full((160, 160), 255, np.uint8)
        picture[:, : round(160 * dark_share)] = 0
        return picture

    @staticmethod
    def photograph() -> NDArray[np.uint8]:
        rng = np.random.default_rng(3)
        tracks = np.repeat(np.repeat(rng.integers(60, 200, (20, 20)), 10, 0), 10, 1)
        return np.clip(tracks + rng.normal(0, 4, tracks.shape), 0, 255).astype(np.uint8)

    @pytest.mark.parametrize("dark_share", [0.0125, 0.2, 0.8])
    def test_binary_scans_are_fit(self, dark_share: float) -> None:
        for name in ("PNG", "JPEG"):
            _, intake = read_image(encoded(self.scan(dark_share), name))
            assert (intake.warnings, intake.errors) == ((), ())

    def test_one_speck_on_an_empty_scan_is_fit(self) -> None:
        """Bare laminate with one spot of spurious copper is a board like any other."""
        frame = np.full((640, 640), 255, np.uint8)
        frame[200:212, 300:312] = 0
        _, intake = read_image(encoded(frame, "PNG"))
        assert (intake.warnings, intake.errors) == ((), ())

    def test_a_sharp_photograph_is_fit(self) -> None:
        _, intake = read_image(encoded(self.photograph(), "PNG"))
        assert (intake.warnings, intake.errors) == ((), ())

    @pytest.mark.parametrize("noise", [0, 3])
    def test_black_frame(self, noise: int) -> None:
        frame = np.abs(np.random.default_rng(0).normal(0, noise + 1e-9, (200, 200))).astype(np.uint8)
        frame[5, ::40] = 255  # hot pixels
        _, intake = read_image(encoded(frame, "PNG"))
        assert len(intake.errors) == 1
        assert intake.errors[0].startswith("black frame")

    @pytest.mark.parametrize("noise", [0, 5])
    def test_blank_frame(self, noise: int) -> None:
        frame = np.random.default_rng(0).normal(120, noise + 1e-9, (200, 200)).clip(0, 255).astype(np.uint8)
        _, intake = read_image(encoded(frame, "PNG"))
        assert intake.errors[0].startswith("almost blank")

    def test_washed_out_frame(self) -> None:
        frame = np.full((200, 200), 253, np.uint8)
        frame[:3] = self.photograph()[:3]
        _, intake = read_image(encoded(frame, "PNG"))
        assert intake.errors[0].startswith("washed out: 98%")

    def test_over_exposed(self) -> None:
        frame = self.photograph()
        frame[:60] = 254
        _, intake = read_image(encoded(frame, "PNG"))
        assert intake.errors == ()
        assert intake.warnings[0].startswith("over-exposed: 30%")

    def test_under_exposed(self) -> None:
        _, intake = read_image(encoded(self.photograph() // 4, "PNG"))
        assert intake.errors == ()
        assert "under-exposed" in intake.warnings[0]

    def test_out_of_focus(self) -> None:
        soft = cv2.GaussianBlur(self.photograph(), (0, 0), 3)
        _, intake = read_image(encoded(soft, "PNG"))
        assert intake.errors == ()
        assert intake.warnings[0].startswith("out of focus")

    def test_motion_blur_along_one_direction(self) -> None:
        smeared = cv2.blur(self.photograph(), (15, 1))
        _, intake = read_image(encoded(smeared, "PNG"))
        assert "out of focus" in " ".join(intake.warnings)
