"""What boards larger than a tile cost, and whether the grid of tiles can be seen in the answer.

    python benchmarks/tiling.py --size 3034x1586 --size 6400x6400

Boards are put together from data_samples/. Each runs with its reference in a process of its own; memory is
what the process grows by, its two pictures included. "same" is the share of the defects well above their
threshold that are found again, at IoU 0.7 and with the same class, when the grid is moved by half a tile.
--ruined inspects grossly bad boards; --random runs a tiny random model, which leaves pictures and maps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from inspect_vit.checkpoint import default_checkpoint, save_checkpoint
from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.findings import Findings, find
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import box_iou
from inspect_vit.model import HierarchicalViT, ModelOutput
from inspect_vit.tiling import Plan, Span, Tile

SAMPLES = Path(__file__).resolve().parents[1] / "data_samples"
SURE = 0.1
"""Only calls this far above their threshold are looked for again."""
Picture = NDArray[np.uint8]


def mosaic(width: int, height: int) -> tuple[Picture, Picture]:
    """A board of that size and its reference, the sample pairs side by side."""
    pairs = []
    for path in sorted(SAMPLES.glob("*_test.png")):
        pair = [read_image(p)[0] for p in (path, path.with_name(path.name.replace("_test", "_temp")))]
        pairs.append([p[: p.shape[0] // 4 * 4, : p.shape[1] // 4 * 4] for p in pair])
    side = min(min(image.shape[:2]) for image, _ in pairs)
    boards = np.empty((2, height, width, 3), np.uint8)
    number = 0
    for top in range(0, height, side):
        for left in range(0, width, side):
            for board, picture in zip(boards, pairs[number % len(pairs)], strict=True):
                part = board[top : top + side, left : left + side]
                part[:] = picture[: part.shape[0], : part.shape[1]]
            number += 1
    return boards[0], boards[1]


def ruined(width: int, height: int) -> tuple[Picture, Picture]:
    """The same board with copper and laminate exchanged in every tenth square of 8 px."""
    image, reference = mosaic(width, height)
    wrong = np.random.default_rng(0).random((height // 8 + 1, width // 8 + 1)) < 0.1
    wrong = np.kron(wrong, np.ones((8, 8), np.bool_))[:height, :width]
    image[wrong] = 255 - image[wrong]
    return image, reference


def moved(spans: tuple[Span, ...], tile_px: int, overlap_px: int) -> tuple[Span, ...]:
    """The same stretch in full tiles that begin half a tile later; the first and the last are shorter."""
    length, half = spans[-1][1], tile_px // 2
    if len(spans) == 1:
        return spans
    starts = [0, *range(half - overlap_px, length - overlap_px, tile_px - overlap_px)]
    ends = [half, *(start + tile_px for start in starts[1:])]
    return tuple((start, min(end, length)) for start, end in zip(starts, ends, strict=True))


def found_again(inspector: Inspector, image: Picture, reference: Picture) -> str:
    """Share of sure calls by the grid as it is that the moved grid calls too, and the other way round."""

    def run(tile: Tile) -> ModelOutput:
        parts = inspector.tensors(tile.of(image), tile.of(reference))
        output: ModelOutput = inspector.model(*parts)
        return output

    plan = inspector.plan(image)
    rows, columns = (moved(spans, inspector.tile_px, plan.overlap_px) for spans in (plan.rows, plan.columns))
    limits = np.array(list(inspector.metadata.thresholds["with_reference"].values()))
    height, width = image.shape[:2]

    def calls(plan: Plan) -> Findings:
        return find(
            run,
            plan,
            height=height,
            width=width,
            min_score=limits.min() / 2,
            sure_score=float(limits.min()),
        )

    grids = calls(plan), calls(Plan(rows, columns, plan.overlap_px))
    same = total = 0
    for one, other in (grids, grids[::-1]):
        sure = one.scores > limits[one.labels] + SURE
        again = box_iou(one.boxes[sure], other.boxes) > 0.7
        same += int((again & (one.labels[sure][:, None] == other.labels)).any(1).sum())
        total += int(sure.sum())
    return f"{same} of {total}"


def peak_mib() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def random_checkpoint(folder: Path) -> Path:
    """Three levels of the least width, so that what is left is pictures and maps."""
    levels = (
        PatchLevelConfig(patch_size=4, embed_dim=8, depth=1, head_dim=8, window=8, mlp_ratio=2),
        PatchLevelConfig(patch_size=16, embed_dim=8, depth=1, head_dim=8, window=20),
        PatchLevelConfig(patch_size=32, embed_dim=8, depth=1, head_dim=8, window=0),
    )
    names = tuple("abcdef")
    model = HierarchicalViT(ModelConfig(class_names=names, levels=levels, head_width=8))
    path = folder / "random.safetensors"
    limits = dict.fromkeys(names, 0.5)
    save_checkpoint(
        path,
        model,
        name="random",
        thresholds={"with_reference": limits, "without_reference": limits},
        training={},
    )
    return path


def measure(asked: argparse.Namespace) -> dict[str, object]:
    width, height = (int(side) for side in asked.size[0].split("x"))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = random_checkpoint(Path(folder)) if asked.random else asked.checkpoint
        inspector = Inspector(checkpoint, device=asked.device, tile_px=asked.tile)
    side = inspector.metadata.model.size_multiple
    inspector.inspect(np.full((side, side, 3), 128, np.uint8))
    before = peak_mib()
    image, reference = (ruined if asked.ruined else mosaic)(width, height)
    started = time.perf_counter()
    result = inspector.inspect(image, reference=reference)
    seconds = time.perf_counter() - started
    row = {
        "board": f"{width} x {height}",
        "tiles": inspector.plan(image).num_tiles,
        "seconds": f"{seconds:.1f}",
        "of it calls": f"{result.timings_ms['calls'] / 1000:.2f}",
        "peak MiB": f"{peak_mib() - before:.0f}",
        "pictures MiB": f"{2 * image.nbytes / 2**20:.0f}",
        "verdict": result.verdict.value,
        "defects": result.num_defects,
    }
    if asked.again:
        row["same"] = found_again(inspector, image, reference)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", action="append", help="width x height, px, as 3034x1586; may be repeated")
    parser.add_argument("--checkpoint", type=Path, default=default_checkpoint())
    parser.add_argument("--tile", type=int, default=None, help="longest side of a tile, px; default 1280")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; default its own choice")
    parser.add_argument("--ruined", action="store_true", help="inspect grossly bad boards")
    parser.add_argument("--random", action="store_true", help="a random model of the least width")
    parser.add_argument("--again", action="store_true", help="inspect again with the grid moved: slow")
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.size = asked.size or ["640x640", "1280x1280", "3034x1586", "6400x6400"]
    if asked.row:
        if asked.threads:
            torch.set_num_threads(asked.threads)
        print(json.dumps(measure(asked)))
        return
    options = [
        "--checkpoint",
        str(asked.checkpoint),
        "--device",
        asked.device,
        "--threads",
        str(asked.threads),
    ]
    options += ["--tile", str(asked.tile)] if asked.tile else []
    options += [f"--{name}" for name in ("ruined", "random", "again") if getattr(asked, name)]
    for number, size in enumerate(asked.size):
        command = [sys.executable, __file__, "--row", "--size", size, *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout)
        if not number:
            print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(str(value) for value in row.values())} |", flush=True)


if __name__ == "__main__":
    main()
