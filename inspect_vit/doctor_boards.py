"""The pictures the doctor looks at: a folder's, the sample boards, or drawn ones; it always says which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from inspect_vit.alignment import lay_under
from inspect_vit.batch import REFERENCE_ENDING, TEST_ENDING
from inspect_vit.config import ModelConfig
from inspect_vit.doctor_trace import Board
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import read_image
from inspect_vit.pixels import to_channels

NUM_BOARDS = 4
SIDE_PX = 640
"""Pictures are cropped about their centre to this side, so that a check takes seconds whatever the camera."""
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
SAMPLES = Path(__file__).parents[1] / "data_samples"


def load_boards(folder: Path | None, config: ModelConfig, *, device: torch.device) -> tuple[list[Board], str]:
    """Up to NUM_BOARDS pictures, evenly spaced, X_test with its reference X_temp beside it, and what they
    are.

    Args:
        folder: where to look, at any depth; None: the sample boards of a checkout, else drawn ones.

    Raises:
        ConfigError: `folder` is none, or holds no picture.
        ImageError: a picture that cannot be read, or a reference that cannot be aligned.
    """
    source = folder if folder is not None else SAMPLES if SAMPLES.is_dir() else None
    if source is None:
        return drawn_boards(config, device=device), f"{NUM_BOARDS} drawn boards (seed 0), with reference"
    if not source.is_dir():
        raise ConfigError(f"--data {source} is not a folder; name a folder of board pictures")
    pairs = _pairs(source)
    if not pairs:
        raise ConfigError(f"--data {source} holds no picture ({', '.join(ENDINGS)}); name a folder of boards")
    chosen = [
        pairs[i] for i in np.linspace(0, len(pairs) - 1, min(NUM_BOARDS, len(pairs))).round().astype(int)
    ]
    boards = [_read(image, reference, config, device) for image, reference in chosen]
    paired = sum(reference is not None for _, reference in chosen)
    count = "1 board" if len(boards) == 1 else f"{len(boards)} boards"
    return boards, f"{count} of {len(pairs)} in {source}, {paired} with reference"


def drawn_boards(
    config: ModelConfig, *, device: torch.device, count: int = NUM_BOARDS, side_px: int = SIDE_PX
) -> list[Board]:
    """Tracks and pads of a made-up board, a few blobs of copper added or taken away; seeded."""
    side = max(side_px // config.size_multiple, 1) * config.size_multiple
    boards = []
    for number in range(count):
        random = np.random.default_rng(number)
        golden = np.full((side, side), 255, np.uint8)
        for _ in range(side // 10):
            left, top = random.integers(0, side, 2)
            width, height = random.permutation([random.integers(6, 14), random.integers(30, side // 2 + 31)])
            golden[top : top + height, left : left + width] = 0
        tested = golden.copy()
        for _ in range(6):
            left, top = random.integers(8, max(side - 16, 9), 2)
            tested[top : top + 8, left : left + 8] = 255 - tested[top + 4, left + 4]
        stacked = [np.repeat(picture[:, :, None], 3, 2) for picture in (tested, golden)]
        boards.append(_board(f"drawn {number}", stacked[0], stacked[1], config, device))
    return boards


def _pairs(folder: Path) -> list[tuple[Path, Path | None]]:
    """Boards below a folder with their references, by name; a reference that serves a board is no board."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    by_stem = {(path.parent, path.stem): path for path in files}
    used = {
        (path.parent, path.stem.removesuffix(TEST_ENDING) + REFERENCE_ENDING): path
        for path in files
        if path.stem.endswith(TEST_ENDING)
    }
    references = {path: by_stem[key] for key, path in used.items() if key in by_stem}
    taken = set(references.values())
    return [(path, references.get(path)) for path in files if path not in taken]


def _read(image: Path, reference: Path | None, config: ModelConfig, device: torch.device) -> Board:
    pixels = read_image(image)[0]
    golden = None
    if reference is not None:
        laid = lay_under(pixels, read_image(reference)[0])
        if laid.picture is None:
            raise ImageError(f"{image} with {reference}: {'; '.join(laid.faults)}")
        golden = laid.picture
    return _board(image.stem, pixels, golden, config, device)


def _board(
    name: str,
    pixels: NDArray[np.uint8],
    golden: NDArray[np.uint8] | None,
    config: ModelConfig,
    device: torch.device,
) -> Board:
    """(H, W, 3) RGB pictures, cropped and padded by their edges to what the model takes."""
    pictures: Sequence[NDArray[np.uint8]] = [pixels, pixels if golden is None else golden]
    tensors = []
    for picture in pictures:
        for axis in (0, 1):
            start = max(picture.shape[axis] - SIDE_PX, 0) // 2
            picture = picture.take(range(start, start + min(picture.shape[axis], SIDE_PX)), axis)
        step = config.size_multiple
        channels = to_channels(np.ascontiguousarray(picture), config.in_chans)
        padded = np.pad(
            channels, ((0, -channels.shape[0] % step), (0, -channels.shape[1] % step), (0, 0)), "edge"
        )
        tensors.append(torch.from_numpy(padded.transpose(2, 0, 1)[None].copy()).to(device))
    has_reference = torch.full((1,), float(golden is not None), device=device)
    return Board(name, tensors[0], tensors[1] * int(golden is not None), has_reference)
