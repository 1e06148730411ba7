"""TIFF in every layout that cameras and scanners write arrives sample by sample; others wrote the files."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.errors import ImageError, ImageTooLargeError, UnsupportedImageError
from inspect_vit.image_io import read_image

HEIGHT, WIDTH = 43, 53
"""Odd, and no multiple of a tile."""


def deep(channels: int = 3) -> NDArray[np.uint16]:
    """Every bit of both bytes counts: (H, W, channels)."""
    values = np.random.default_rng(5).integers(0, 65536, (HEIGHT, WIDTH, channels)).astype(np.uint16)
    values[:20] = values[0, 0]
    return values


def tiff(pixels: NDArray[Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **options)
    return stream.getvalue()


def by_libtiff(pixels: NDArray[Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "TIFF", **options)
    return stream.getvalue()


def by_hand(tags: dict[int, tuple[int, ...]], data: bytes, *, order: str = "<") -> bytes:
    """A classic TIFF of one strip: {tag: values}, all LONG; offset and size of the strip are added."""
    tags = tags | {273: (8,), 279: (len(data),)}
    directory, behind = 8 + len(data), b""
    entries = b""
    after = directory + 2 + 12 * len(tags) + 4
    for tag, values in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(values)}I", *values)
        if len(packed) > 4:
            packed, behind = struct.pack(f"{order}I", after + len(behind)), behind + packed
        entries += struct.pack(f"{order}HHI", tag, 4, len(values)) + packed
    start = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, directory)
    return start + data + struct.pack(f"{order}H", len(tags)) + entries + bytes(4) + behind


def scaled(values: NDArray[np.uint16]) -> NDArray[np.uint8]:
    return np.asarray(np.floor(values / 257 + 0.5), np.uint8)


LAYOUTS = [
    {"byteorder": byteorder, "bigtiff": bigtiff} | place | codec
    for byteorder in "<>"
    for bigtiff in (False, True)
    for place in ({"rowsperstrip": 9}, {"tile": (16, 32)})
    for codec in ({}, {"compression": "zlib"}, {"compression": "zlib", "predictor": True})
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
class TestSixteenBitLayouts:
    def test_interleaved_colour(self, layout: dict[str, Any]) -> None:
        pixels, intake = read_image(tiff(deep(), photometric="rgb", **layout))
        np.testing.assert_array_equal(pixels, scaled(deep()))
        assert (intake.mode, intake.bit_depth) == ("RGB", 16)

    def test_separate_planes(self, layout: dict[str, Any]) -> None:
        planes = np.ascontiguousarray(np.moveaxis(deep(), 2, 0))
        data = tiff(planes, photometric="rgb", planarconfig="separate", **layout)
        np.testing.assert_array_equal(read_image(data)[0], scaled(deep()))

    def test_grey(self, layout: dict[str, Any]) -> None:
        pixels, intake = read_image(tiff(deep()[..., 0], photometric="minisblack", **layout))
        np.testing.assert_array_equal(pixels[..., 2], scaled(deep()[..., 0]))
        assert (intake.mode, intake.full_scale) == ("I;16", 65535)


class TestOtherDepths:
    @pytest.mark.parametrize("byteorder", ["<", ">"])
    @pytest.mark.parametrize("tile", [None, (16, 16)])
    @pytest.mark.parametrize("planarconfig", ["contig", "separate"])
    def test_8_bit_bigtiff(self, byteorder: Any, tile: Any, planarconfig: str) -> None:
        small = scaled(deep())
        stored = small if planarconfig == "contig" else np.ascontiguousarray(np.moveaxis(small, 2, 0))
        options = {"photometric": "rgb", "planarconfig": planarconfig, "tile": tile, "byteorder": byteorder}
        pixels, intake = read_image(tiff(stored, bigtiff=True, **options))
        np.testing.assert_array_equal(pixels, small)
        assert (intake.bit_depth, intake.actions) == (8, ())

    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("width", [32, 33])
    def test_12_bit_packed_grey(self, order: str, width: int) -> None:
        """Two values in three bytes, high bits first; a row ends on a whole byte. 4095 becomes 255."""
        values = np.random.default_rng(0).integers(0, 4096, (20, width))
        bits = (values[..., None] >> np.arange(11, -1, -1) & 1).reshape(20, -1)
        data = np.packbits(bits, axis=1).tobytes()
        tags = {256: (width,), 257: (20,), 258: (12,), 259: (1,), 262: (1,), 277: (1,), 278: (20,)}
        pixels, intake = read_image(by_hand(tags, data, order=order))
        np.testing.assert_array_equal(pixels[..., 0], np.floor(values * (255 / 4095) + 0.5))
        assert intake.actions[0].startswith("scaled 12 to 8 bit by value / 16.06")
        assert "12-bit frame" not in " ".join(intake.warnings), "the file says it; nothing was guessed"

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    @pytest.mark.parametrize("byteorder", ["<", ">"])
    def test_floats_of_every_width(self, dtype: type, byteorder: Any) -> None:
        values = (deep() / 65535).astype(dtype)
        pixels, intake = read_image(tiff(values, photometric="rgb", byteorder=byteorder))
        np.testing.assert_array_equal(pixels, np.rint(values.astype(np.float64) * 255))
        assert intake.full_scale == 1

    def test_floats_with_their_own_predictor(self) -> None:
        values = (deep()[..., 0] / 65535).astype(np.float32)
        data = by_libtiff(values, compression="tiff_adobe_deflate", tiffinfo={317: 3})
        np.testing.assert_array_equal(read_image(data)[0][..., 0], np.rint(values * np.float32(255)))

    def test_white_as_zero_big_endian(self) -> None:
        grey = deep()[..., 0]
        pixels, intake = read_image(tiff(grey, photometric="miniswhite", byteorder=">"))
        np.testing.assert_array_equal(pixels[..., 0], scaled(65535 - grey))
        assert "inverted: the file stores white as zero" in intake.actions


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate", "lzma", "zstd"])
@pytest.mark.parametrize("predictor", [1, 2])
def test_16_bit_grey_by_every_codec(compression: str, predictor: int) -> None:
    grey = np.ascontiguousarray(deep()[..., 0])
    options = {"tiffinfo": {317: predictor}} if compression != "packbits" else {}
    data = by_libtiff(grey, compression=compression, **options)
    np.testing.assert_array_equal(read_image(data)[0][..., 0], scaled(grey))


class TestChannelsBeyondColour:
    alpha = np.full((HEIGHT, WIDTH, 1), 20000, np.uint16)

    @pytest.mark.parametrize("channels", [1, 3])
    def test_straight_alpha_is_composited_on_black(self, channels: int) -> None:
        photometric = "rgb" if channels == 3 else "minisblack"
        stored = np.dstack([deep(channels), self.alpha])
        pixels, intake = read_image(tiff(stored, photometric=photometric, extrasamples=["unassalpha"]))
        want = deep(channels) * (20000 / 65535) / 257
        assert np.abs(pixels[..., :channels] - want).max() <= 0.51
        assert "composited the transparent pixels on black" in intake.actions

    def test_premultiplied_alpha_is_on_black_as_it_is(self) -> None:
        stored = np.dstack([deep(), self.alpha])
        pixels, _ = read_image(tiff(stored, photometric="rgb", extrasamples=["assocalpha"]))
        np.testing.assert_array_equal(pixels, scaled(deep()))

    def test_another_channel_is_ignored_and_said(self) -> None:
        for stored in (np.dstack([deep(), self.alpha]), np.dstack([scaled(deep()), scaled(self.alpha)])):
            pixels, intake = read_image(tiff(stored, photometric="rgb", extrasamples=["unspecified"]))
            np.testing.assert_array_equal(pixels, scaled(deep()))
            assert "ignored 1 channels that are neither colour nor alpha" in intake.actions


class TestPages:
    def test_a_chain_that_ends_too_early_is_warned_of(self) -> None:
        stream = io.BytesIO()
        with tifffile.TiffWriter(stream) as writer:
            for _ in range(3):
                writer.write(scaled(deep()), photometric="rgb")
        whole = stream.getvalue()
        _, intake = read_image(whole)
        assert (intake.pages, "behind page" in " ".join(intake.warnings)) == (3, False)
        pixels, intake = read_image(whole[: len(whole) // 2])
        np.testing.assert_array_equal(pixels, scaled(deep()))
        assert intake.pages == 2
        assert "damaged or cut short behind page 2" in " ".join(intake.warnings)

    def test_a_chain_that_comes_back_to_itself_ends(self) -> None:
        data = bytearray(by_libtiff(scaled(deep())))
        directory = struct.unpack_from("<I", data, 4)[0]
        (num_tags,) = struct.unpack_from("<H", data, directory)
        struct.pack_into("<I", data, directory + 2 + 12 * num_tags, directory)
        _, intake = read_image(bytes(data))
        assert intake.pages == 1
        assert "behind page 1" in " ".join(intake.warnings)

    def test_a_thumbnail_on_the_first_page_is_warned_of(self) -> None:
        _, intake = read_image(tiff(scaled(deep()), photometric="rgb", subfiletype=1))
        assert "reduced copy" in intake.warnings[0]


GREY_PAGE = {256: (32,), 257: (32,), 258: (16,), 259: (1,), 262: (1,), 277: (1,), 278: (32,)}
"""16 bit, 32 x 32 px, one strip."""


class TestRefusals:
    def test_the_hand_written_page_is_sound(self) -> None:
        values = np.random.default_rng(0).integers(0, 65536, (32, 32)).astype("<u2")
        np.testing.assert_array_equal(
            read_image(by_hand(GREY_PAGE, values.tobytes()))[0][..., 0], scaled(values)
        )

    @pytest.mark.parametrize(
        ("changes", "error", "words"),
        [
            ({258: (10,)}, UnsupportedImageError, "10 bit, unsigned"),
            ({339: (2,)}, UnsupportedImageError, "16 bit, signed.*8 or 16 bit, unsigned"),
            ({258: (8,), 339: (2,)}, UnsupportedImageError, "signed 8 bit"),
            ({262: (5,), 277: (4,)}, UnsupportedImageError, "kind 5.*send grey or RGB"),
            ({259: (7,)}, UnsupportedImageError, "compression 7 with 16 bit"),
            ({266: (2,)}, UnsupportedImageError, "FillOrder 2"),
            ({259: (8,), 317: (9,)}, ImageError, "damaged|predictor"),
            ({278: (16,)}, ImageError, "1 TIFF strips or tiles, wanted 2"),
            ({256: (33,)}, ImageError, "2048 bytes, wanted 2112"),
            ({278: (0,)}, ImageError, "tiles of 32 x 0"),
            ({277: (0,)}, ImageError, "damaged"),
            ({257: (0,)}, ImageError, "32 x 0"),
            ({322: (16,), 323: (0,), 324: (8,), 325: (512,)}, ImageError, "tiles of 16 x 0"),
            ({322: (60000,), 323: (60000,)}, ImageError, "tiles of 60000 x 60000"),
            ({258: (64,), 339: (3,), 277: (60,)}, ImageTooLargeError, "the limit is 81920"),
        ],
    )
    def test_what_is_damaged_or_not_read(
        self, changes: dict[int, tuple[int, ...]], error: type[ImageError], words: str
    ) -> None:
        with pytest.raises(error, match=words) as caught:
            read_image(by_hand(GREY_PAGE | changes, bytes(2048)), max_pixels=10240)
        assert type(caught.value) is error

    def test_a_strip_that_inflates_to_too_little(self) -> None:
        data = by_hand(GREY_PAGE | {259: (8,)}, zlib.compress(bytes(2000)))
        with pytest.raises(ImageError, match="damaged or cut short"):
            read_image(data)
