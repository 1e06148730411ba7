"""How benchmarks/new_class.py measures: features of the test pictures cached, then heads on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.checkpoint import ReferenceMode
from inspect_vit.findings import find
from inspect_vit.image_io import read_image
from inspect_vit.matching import Detections, Truths, match_images
from inspect_vit.model import HierarchicalViT, ModelOutput
from inspect_vit.pixels import to_channels
from inspect_vit.results import Sample
from inspect_vit.tiling import TILE_PX, plan_tiles
from training.distill import as_output
from training.loop import LOWEST_SCORE
from training.metrics import ap_per_class, deployed_detections
from training.pools import fused_tokens
from training.state import bf16_is_native

Shown = Literal["pairs", "boards", "clean"]
"""A board and its golden reference; the board alone; the reference alone, on which every call is false."""


@dataclass(frozen=True)
class Pictures:
    """Pictures of one size to measure on."""

    name: str
    samples: Sequence[Sample]
    shown: Shown


def inputs(sample: Sample, *, shown: Shown) -> tuple[Tensor, Tensor, Tensor]:
    """A picture as `HierarchicalViT.forward` takes it."""
    assert sample.reference is not None

    def read(path: Path) -> Tensor:
        return torch.from_numpy(to_channels(read_image(path)[0], 1).transpose(2, 0, 1)[None].copy())

    board = read(sample.reference if shown == "clean" else sample.image)
    if shown == "pairs":
        return board, read(sample.reference), torch.ones(1)
    return board, torch.zeros_like(board), torch.zeros(1)


def cache_features(folder: Path, model: HierarchicalViT, pictures: Pictures) -> NDArray[np.float16]:
    """(N, C, h, w) on disk, made once per base; a run that was stopped goes on with the next picture."""
    folder.mkdir(parents=True, exist_ok=True)
    path, count = folder / f"{pictures.name}.npy", folder / f"{pictures.name}.count"
    done = int(count.read_text()) if count.exists() and path.exists() else 0
    if done == len(pictures.samples):
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]
    array: Any = np.load(path, mmap_mode="r+") if done else None
    for i in range(done, len(pictures.samples)):
        tokens = fused_tokens(model, *inputs(pictures.samples[i], shown=pictures.shown)).half().numpy()[0]
        if array is None:
            shape = (len(pictures.samples), *tokens.shape)
            array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
        array[i] = tokens
        if i % 20 == 19 or i == len(pictures.samples) - 1:
            array.flush()
            count.write_text(str(i + 1))
    return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]


def calls_on_features(model: HierarchicalViT, features: NDArray[np.float16]) -> list[Detections]:
    """What the head says of cached features."""
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16_is_native()):
        heads = (model.head(model.refine(torch.from_numpy(f[None].astype(np.float32)))) for f in features)
        shares = torch.zeros(1, 3, *features.shape[2:])
        return list(_calls((as_output(head, shares) for head in heads), features.shape[2] * 4))


def calls_on_pictures(model: HierarchicalViT, pictures: Pictures) -> list[Detections]:
    """What the whole network says."""
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16_is_native()):
        boards = (inputs(sample, shown=pictures.shown) for sample in pictures.samples)
        first = read_image(pictures.samples[0].image)[0].shape[0]
        return list(_calls((model(*board) for board in boards), first))


def _calls(outputs: Iterator[ModelOutput], side: int) -> Iterator[Detections]:
    plan = plan_tiles(side, side, step=320, tile_px=TILE_PX)
    for output in outputs:
        found = find(
            lambda _, answer=output: answer,
            plan,
            height=side,
            width=side,
            min_score=LOWEST_SCORE,
            sure_score=0.5,
        )
        yield Detections(found.boxes, found.scores, found.labels)


def truths_of(samples: Sequence[Sample], names: Sequence[str]) -> list[Truths]:
    """The labels of those classes."""
    truths = []
    for sample in samples:
        kept = [i for i, label in enumerate(sample.labels) if label in names]
        labels = np.array([list(names).index(sample.labels[i]) for i in kept], np.int64)
        truths.append(Truths(sample.boxes[kept], labels))
    return truths


def figures(
    calls: list[Detections],
    alone_calls: list[Detections],
    clean_calls: list[Detections],
    samples: Sequence[Sample],
    every_class: Sequence[str],
    names: Sequence[str],
    thresholds: Mapping[ReferenceMode, Mapping[str, float]],
) -> dict[str, Any]:
    """AP and recall of each class; share of clean boards flagged; of boards with a call outside every label.

    Recall and shares are at the thresholds.

    Args:
        calls: with reference. alone_calls: the same boards without. clean_calls: good boards, without.
    """
    truths = truths_of(samples, names)
    clean = deployed_detections(clean_calls, names, thresholds["without_reference"])
    reached = deployed_detections(calls, names, thresholds["with_reference"])
    outside = match_images(reached, truths_of(samples, every_class))
    hit = match_images(reached, truths, matching="same-class")
    recall = [float(hit.recalled()[hit.truth_labels == label].mean()) for label in range(len(names))]
    return {
        "ap": _ap(calls, truths, names),
        "ap_alone": _ap(alone_calls, truths, names),
        "recall": dict(zip(names, [round(value, 5) for value in recall], strict=True)),
        "clean_flagged": float(np.mean([len(d) > 0 for d in clean])),
        "boards_called_outside": len(np.unique(outside.images[outside.outside])) / len(calls),
    }


def _ap(calls: list[Detections], truths: list[Truths], names: Sequence[str]) -> dict[str, float]:
    values = ap_per_class(calls, truths, len(names), matching="same-class")
    return dict(zip(names, [round(value, 5) for value in values], strict=True))
