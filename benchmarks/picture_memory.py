"""Measure how far a process grows when it reads one large picture, in bytes a pixel, the result's 3 included.

    python benchmarks/picture_memory.py --side 16384

Each picture is written to a temporary folder and read by a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

Grey = NDArray[np.uint8]
READ = """
import sys
from inspect_vit.image_io import read_image
def peak_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak_kb()
pixels, _ = read_image(sys.argv[1])
print((peak_kb() - before) * 1024 / (pixels.shape[0] * pixels.shape[1]))
"""


def colour(grey: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.repeat(grey[..., None], 3, 2)


def deep(grey: Grey) -> NDArray[np.uint16]:
    return grey.astype(np.uint16) * 257


WRITERS: dict[str, Callable[[Path, Grey], None]] = {
    "8-bit grey TIFF": lambda path, grey: tifffile.imwrite(path, grey),
    "8-bit grey TIFF, LZW": lambda path, grey: Image.fromarray(grey).save(
        path, "TIFF", compression="tiff_lzw"
    ),
    "8-bit grey JPEG": lambda path, grey: Image.fromarray(grey).save(path, "JPEG"),
    "8-bit grey PNG": lambda path, grey: Image.fromarray(grey).save(path, "PNG", compress_level=1),
    "16-bit grey BigTIFF, big-endian, tiles": lambda path, grey: tifffile.imwrite(
        path, deep(grey), bigtiff=True, byteorder=">", tile=(256, 256)
    ),
    "8-bit RGB PNG": lambda path, grey: Image.fromarray(colour(grey)).save(path, "PNG", compress_level=1),
    "16-bit RGB BigTIFF, strips": lambda path, grey: tifffile.imwrite(
        path, colour(deep(grey)), photometric="rgb", bigtiff=True, rowsperstrip=16
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=8192, help="side of the pictures, px; a multiple of 512")
    side = parser.parse_args().side
    blocks = np.random.default_rng(0).integers(40, 220, (64, 64)).astype(np.uint8)
    grey = np.tile(np.kron(blocks, np.ones((8, 8), np.uint8)), (side // 512, side // 512))
    print(f"| {side} x {side} px | bytes a pixel |\n|---|---|")
    for name, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "picture"
            write(path, grey)
            read = subprocess.run(
                [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
            )
        print(f"| {name} | {float(read.stdout):.1f} |", flush=True)


if __name__ == "__main__":
    main()
