"""Damage pictures of every kind and count what reading them gives: pixels, a named error, a crash or a hang.

    python benchmarks/fuzz_pictures.py --cases 500

Damages are seeded: one to eight flipped bits, half of them in the first 128 bytes, where sizes and offsets
are; or a cut anywhere. Pictures are read in a process of its own, so that a crash or a hang is counted, not
suffered. The time is that of the slowest case on the processor, the memory what the process has grown by so
far. The suite damages the same pictures, fewer times.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import resource
import struct
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image

MAX_PIXELS = 4_000_000
HEAD_BYTES = 128
ANSWERS = ("read", "ImageError", "UnsupportedImageError", "ImageTooLargeError")


def board(height: int = 40, width: int = 56, channels: int = 3) -> NDArray[np.uint8]:
    """Blocks of random colour with a little noise: (H, W, channels)."""
    rng = np.random.default_rng(7)
    blocks = rng.integers(0, 250, (height // 8 + 1, width // 8 + 1, 4))
    large = np.kron(blocks, np.ones((8, 8, 1), np.int64))[:height, :width]
    return (large + rng.integers(0, 6, large.shape)).astype(np.uint8)[..., :channels]


def encoded(pixels: NDArray[Any], name: str, *, mode: str | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(stream, name, **options)
    return stream.getvalue()


def tiff(pixels: NDArray[Any], *, num_pages: int = 1, bigtiff: bool = False, **options: Any) -> bytes:
    stream = io.BytesIO()
    byteorder = options.pop("byteorder", "<")
    with tifffile.TiffWriter(stream, bigtiff=bigtiff, byteorder=byteorder) as writer:
        for _ in range(num_pages):
            writer.write(pixels, **options)
    return stream.getvalue()


def png_16_bit_colour(pixels: NDArray[np.uint16]) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 16, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def bmp_run_lengths(pixels: NDArray[np.uint8]) -> bytes:
    """8-bit BMP with RLE8 compression of runs of one: (H, W)."""
    rows = b"".join(b"".join(bytes((1, value)) for value in row) + b"\0\0" for row in pixels[::-1])
    palette = b"".join(bytes((grey, grey, grey, 0)) for grey in range(256))
    start = 14 + 40 + len(palette)
    info = struct.pack(
        "<IiiHHIIiiII", 40, pixels.shape[1], pixels.shape[0], 1, 8, 1, len(rows) + 2, 3000, 3000, 256, 0
    )
    return struct.pack("<2sIHHI", b"BM", start + len(rows) + 2, 0, 0, start) + info + palette + rows + b"\0\1"


def rotated_exif() -> Image.Exif:
    exif = Image.Exif()
    exif[274] = 6
    return exif


def deep(channels: int = 3) -> NDArray[np.uint16]:
    return board(channels=channels).astype(np.uint16) * 257


SOURCES: dict[str, Callable[[], bytes]] = {
    "jpeg": lambda: encoded(board(), "JPEG"),
    "jpeg grey": lambda: encoded(board()[..., 0], "JPEG"),
    "jpeg cmyk": lambda: encoded(board(), "JPEG", mode="CMYK"),
    "jpeg progressive, exif": lambda: encoded(board(), "JPEG", progressive=True, exif=rotated_exif()),
    "png": lambda: encoded(board(), "PNG", exif=rotated_exif()),
    "png 1 bit": lambda: encoded(board()[..., 0] > 127, "PNG"),
    "png palette": lambda: encoded(board(), "PNG", mode="P"),
    "png alpha": lambda: encoded(board(channels=4), "PNG"),
    "png 16 bit grey": lambda: encoded(deep()[..., 0], "PNG"),
    "png 16 bit colour": lambda: png_16_bit_colour(deep()),
    "bmp": lambda: encoded(board(), "BMP"),
    "bmp rle": lambda: bmp_run_lengths(board()[..., 0]),
    "webp": lambda: encoded(board(), "WEBP"),
    "webp lossless, alpha": lambda: encoded(board(channels=4), "WEBP", lossless=True, exif=rotated_exif()),
    "tiff": lambda: tiff(board(), photometric="rgb"),
    "tiff lzw": lambda: encoded(board(), "TIFF", compression="tiff_lzw"),
    "tiff jpeg": lambda: encoded(board(), "TIFF", compression="jpeg"),
    "tiff group 4": lambda: encoded(board()[..., 0] > 127, "TIFF", compression="group4"),
    "tiff 3 pages": lambda: tiff(board(), photometric="rgb", num_pages=3),
    "tiff 16 bit, tiled, deflate": lambda: tiff(deep(), photometric="rgb", tile=(16, 16), compression="zlib"),
    "tiff 16 bit, planar": lambda: tiff(
        np.moveaxis(deep(), 2, 0), photometric="rgb", planarconfig="separate", rowsperstrip=8
    ),
    "tiff 16 bit, lzw": lambda: encoded(deep()[..., 0], "TIFF", compression="tiff_lzw"),
    "tiff float": lambda: tiff((board()[..., 0] / 255).astype(np.float32)),
    "bigtiff": lambda: tiff(board(), photometric="rgb", bigtiff=True),
    "bigtiff, big-endian": lambda: tiff(
        deep(), photometric="rgb", bigtiff=True, byteorder=">", tile=(16, 16)
    ),
}


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    damaged = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        reach = min(HEAD_BYTES, len(data)) if rng.random() < 0.5 else len(data)
        damaged[int(rng.integers(0, reach))] ^= 1 << int(rng.integers(0, 8))
    return bytes(damaged)


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(0, len(data)))]


DAMAGES: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "bit flips": flip_bits,
    "truncation": cut,
}


def damaged_picture(source: str, damage: str, seed: int, *, whole: bytes | None = None) -> bytes:
    """The file of one case, the same for the same seed."""
    rng = np.random.default_rng([zlib.crc32(f"{source} {damage}".encode()), seed])
    return DAMAGES[damage](SOURCES[source]() if whole is None else whole, rng)


def read(data: bytes) -> str:
    """ "read", or the name of the ImageError that was raised."""
    try:
        read_image(data, max_pixels=MAX_PIXELS)
    except ImageError as error:
        return type(error).__name__
    return "read"


def work(pipe: Connection) -> None:
    """Read what comes through the pipe until None comes; answer (what, ms on the processor, peak MiB)."""
    warnings.simplefilter("ignore")
    start_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while (data := pipe.recv()) is not None:
        started = time.process_time()
        try:
            answer = read(data)
        except Exception as error:
            answer = f"crashed: {type(error).__name__} {error}"
        spent_ms = (time.process_time() - started) * 1000
        pipe.send((answer, spent_ms, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start_kib) / 1024))


class Reader:
    """A process that reads damaged pictures, and is replaced when one kills or stops it."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.send(SOURCES["png"]())  # the first answer waits for the imports
        self._pipe.recv()

    def read(self, data: bytes) -> tuple[str, float, float]:
        self._pipe.send(data)
        try:
            if self._pipe.poll(self.timeout_s):
                answer: tuple[str, float, float] = self._pipe.recv()
                return answer
            outcome = "hung"
        except EOFError:
            outcome = f"crashed: exit code {self._process.exitcode}"
        self._process.kill()
        self._process.join()
        self._start()
        return outcome, self.timeout_s * 1000, 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=200, help="damaged files per picture and damage")
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument(
        "--timeout", type=float, default=30.0, help="seconds after which a case counts as hung"
    )
    options = parser.parse_args()
    columns = ["picture", "damage", *ANSWERS, "crashed", "hung", "slowest ms", "peak MiB"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    reader = Reader(options.timeout)
    for source, make in SOURCES.items():
        whole = make()
        for damage in DAMAGES:
            counts: Counter[str] = Counter()
            slowest_ms = peak_mib = 0.0
            for seed in range(options.seed, options.seed + options.cases):
                answer, spent_ms, grown_mib = reader.read(damaged_picture(source, damage, seed, whole=whole))
                if answer not in ANSWERS:
                    print(f"{source}, {damage}, seed {seed}: {answer}")
                counts[answer.split(":")[0]] += 1
                slowest_ms, peak_mib = max(slowest_ms, spent_ms), max(peak_mib, grown_mib)
            cells = [source, damage, *(counts[name] for name in (*ANSWERS, "crashed", "hung"))]
            print(
                "| " + " | ".join(map(str, [*cells, f"{slowest_ms:.0f}", f"{peak_mib:.0f}"])) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
