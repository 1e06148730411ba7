"""Pictures of every format, depth and orientation arrive as they are, and what was done to them is said.

Over 300 lines: one table of formats, depths and rules, read and checked alike.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageCms

from inspect_vit.image_io import read_image


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

    def test_two_bit_grey_png(self) -> None:
        """Four levels, four pixels in a byte, are 0, 85, 170, 255."""
        header = struct.pack(">IIBBBBB", 48, 40, 2, 0, 0, 0, 0)
        rows = zlib.compress((b"\0" + bytes([0b00011011] * 12)) * 40)
        chunks = (png_chunk(b"IHDR", header), png_chunk(b"IDAT", rows), png_chunk(b"IEND", b""))
        pixels, intake = read_image(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
        np.testing.assert_array_equal(pixels[..., 0], np.tile([0, 85, 170, 255], (40, 12)))
        assert intake.bit_depth == 2

    def test_an_embedded_colour_profile_is_ignored_and_said(self) -> None:
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        for name in ("PNG", "TIFF"):
            pixels, intake = read_image(encoded(board(), name, icc_profile=profile))
            np.testing.assert_array_equal(pixels, board())
            assert intake.actions == ("ignored the embedded colour profile",)

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
        assert intake.full_scale == 4095
        assert intake.warnings[0].startswith("taken as a 12-bit frame: no value exceeds 4095 (largest 4095)")

    def test_one_value_above_4095_is_a_16_bit_picture(self) -> None:
        values = self.twelve.copy()
        values[0, 0] = 4096
        pixels, intake = read_image(encoded(values, "PNG"))
        assert pixels.max() == round(4096 / 257)
        assert intake.full_scale == 65535
        assert "12-bit" not in " ".join(intake.warnings)

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

    @pytest.mark.parametrize("colour_type", [0, 2])
    def test_one_transparent_value_of_a_16_bit_png(self, colour_type: int) -> None:
        """The tRNS chunk names a value; the pixels that have it, and no others, are transparent."""
        values = np.random.default_rng(0).integers(5000, 65536, (40, 40, 3)).astype(np.uint16)
        values[:8] = 40000
        values = values if colour_type == 2 else values[..., :1]
        key = png_chunk(b"tRNS", struct.pack(">H", 40000) * values.shape[2])
        pixels, intake = read_image(png_16_bit(values, colour_type=colour_type, before_data=key))
        assert not pixels[:8].any()
        want = np.broadcast_to(np.rint(values[8:] / 257), (32, 40, 3))
        np.testing.assert_array_equal(pixels[8:], want)
        assert "composited the transparent pixels on black" in intake.actions

    def test_16_bit_grey_with_alpha(self) -> None:
        values = np.random.default_rng(0).integers(5000, 65536, (40, 40)).astype(np.uint16)
        alpha = np.full_like(values, 30000)
        pixels, _ = read_image(png_16_bit(np.dstack([values, alpha]), colour_type=4))
        want = values * (30000 / 65535) / 257
        assert np.abs(pixels[..., 1] - want).max() <= 0.51


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
        assert intake.pages == 3

    def test_a_jpeg_with_a_second_picture_inside(self) -> None:
        """As telephones write them (MPO)."""
        pages = [Image.fromarray(board(seed=seed)) for seed in range(2)]
        stream = io.BytesIO()
        pages[0].save(stream, "MPO", save_all=True, append_images=pages[1:], quality=95, subsampling=0)
        pixels, intake = read_image(stream.getvalue())
        assert np.abs(pixels.astype(int) - board(seed=0)).mean() < 3
        assert (intake.format, intake.pages) == ("JPEG", 2)
