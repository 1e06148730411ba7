"""The front door: numpy pictures in, an InspectionResult out.

Shape letters: H, W pixels of the picture, h, w = ceil(H / 4), ceil(W / 4) cells, K defect classes.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inspect_vit.checkpoint import ReferenceMode, load_checkpoint
from inspect_vit.config import AttentionBackend
from inspect_vit.errors import ConfigError, ImageError, ImageTooLargeError
from inspect_vit.heads import Calls, decode
from inspect_vit.intake import pair_faults
from inspect_vit.model import HierarchicalViT, ModelOutput
from inspect_vit.pixels import to_channels
from inspect_vit.results import Defect, InspectionResult, IntakeReport, Verdict

MAX_PIXELS = 16_000_000
"""Largest picture inspected in one piece, about 1 GiB of working memory."""
LISTED_FROM = 0.01
"""Centre scores below this are never calls."""
MAP_THRESHOLD = 0.5
"""A defect-map cell at or above this belongs to the defect; each has at least the cell it was found in."""
LEVEL_NAMES = ("4", "16", "32")


class Inspector:
    """Owns a model and its device. Not thread-safe: use one per thread."""

    def __init__(
        self, checkpoint: str | Path, *, device: str = "auto", attention_backend: AttentionBackend = "auto"
    ) -> None:
        """Load a checkpoint; `device` is auto (CUDA where there is one, else CPU), cpu, cuda or cuda:N."""
        self.device = resolve_device(device)
        self.model: HierarchicalViT
        self.model, self.metadata = load_checkpoint(
            checkpoint, device=self.device, attention_backend=attention_backend
        )
        self.model.to(memory_format=torch.channels_last)

    def inspect(
        self,
        image: NDArray[np.uint8],
        *,
        reference: NDArray[np.uint8] | None = None,
        min_score: float | None = None,
        intake: IntakeReport | None = None,
        output: ModelOutput | None = None,
    ) -> InspectionResult:
        """Inspect one board.

        Args:
            image: (H, W, 3) uint8 RGB.
            reference: picture of a good board, same size, aligned; None inspects without.
            min_score: list calls from this score up instead of from the thresholds; the verdict is the same.
            intake: what reading the picture found; its errors make the verdict ERROR.
            output: of a pass already made over these pictures, as `trace.inspect_traced` makes it.

        Raises:
            ImageError: not a picture of that form, or a reference of another size.
            ImageTooLargeError: more than MAX_PIXELS.
        """
        start = time.perf_counter()
        if output is None:
            output = self._forward(image, reference, want_attention=False)
        height, width = image.shape[:2]
        after_model = time.perf_counter()
        mode: ReferenceMode = "without_reference" if reference is None else "with_reference"
        thresholds = self.metadata.thresholds[mode]
        names = self.metadata.model.class_names
        rows, columns = math.ceil(height / 4), math.ceil(width / 4)
        shares = output.gate_shares[0, :, :rows, :columns].float().cpu().numpy()
        defect_map = output.head.mask_logits[0, :, :rows, :columns].float().sigmoid().cpu().numpy()
        floor = LISTED_FROM if min_score is None else min(min_score, *thresholds.values())
        calls = decode(output.head, stride=4, min_score=floor)[0]
        called = _defects(calls, defect_map, shares, names, width, height)
        failing = [defect for defect in called if defect.score >= thresholds[defect.label]]
        listed = failing if min_score is None else [defect for defect in called if defect.score >= min_score]
        top = output.head.centre_logits[0, :, :rows, :columns].float().max().sigmoid().item()
        errors = () if intake is None else intake.errors
        if reference is not None:
            errors = (*errors, *pair_faults(image, reference))
        elif self.metadata.needs_reference:
            errors = (
                *errors,
                f"model {self.metadata.name} inspects only against a golden reference; send one",
            )
        verdict = Verdict.ERROR if errors else Verdict.FAIL if failing else Verdict.PASS
        finish = time.perf_counter()
        return InspectionResult(
            verdict=verdict,
            reasons=tuple(errors) or _reasons(failing),
            score=top,
            defects=() if errors else tuple(listed),
            defect_map=defect_map,
            gate_maps=dict(zip(LEVEL_NAMES, shares, strict=True)),
            class_names=names,
            thresholds=dict(thresholds),
            width=width,
            height=height,
            with_reference=reference is not None,
            model_name=self.metadata.name,
            model_version=self.metadata.version,
            timings_ms={"model": 1e3 * (after_model - start), "calls": 1e3 * (finish - after_model)},
        )

    def attention(
        self, image: NDArray[np.uint8], *, reference: NDArray[np.uint8] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Where attention goes at each level, {"4", "16", "32"}: (h, w), 1 where it is uniform.

        Exact weights of the level's last block, mean over queries and heads; `attribution.attention_heads`
        has them by head, and for a defect or a point alone. Raises as `inspect`."""
        output = self._forward(image, reference, want_attention=True)
        assert output.attention is not None
        rows, columns = math.ceil(image.shape[0] / 4), math.ceil(image.shape[1] / 4)
        size = output.gate_shares.shape[2:]
        maps = [functional.interpolate(level, size, mode="nearest")[0, 0] for level in output.attention]
        return {
            name: level[:rows, :columns].float().cpu().numpy()
            for name, level in zip(LEVEL_NAMES, maps, strict=True)
        }

    @torch.inference_mode()
    def _forward(
        self, image: NDArray[np.uint8], reference: NDArray[np.uint8] | None, *, want_attention: bool
    ) -> ModelOutput:
        output: ModelOutput = self.model(*self.tensors(image, reference), want_attention=want_attention)
        return output

    def tensors(
        self, image: NDArray[np.uint8], reference: NDArray[np.uint8] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Pictures as the model's `forward` takes them: board, reference and whether there is one.

        Raises as `inspect`.
        """
        check_picture(image, "image")
        if reference is not None:
            _check_reference(reference, image)
        board = self._tensor(image)
        other = torch.zeros_like(board) if reference is None else self._tensor(reference)
        return board, other, torch.full((1,), float(reference is not None), device=self.device)

    def _tensor(self, picture: NDArray[np.uint8]) -> Tensor:
        """(H, W, 3) to (1, c, H', W') uint8, edges repeated up to multiples of the model's size."""
        config = self.metadata.model
        channels, step = to_channels(picture, config.in_chans), config.size_multiple
        bottom, right = -channels.shape[0] % step, -channels.shape[1] % step
        padded = np.pad(channels, ((0, bottom), (0, right), (0, 0)), mode="edge")
        return torch.from_numpy(padded.transpose(2, 0, 1)[None]).to(self.device)


def resolve_device(device: str) -> torch.device:
    """auto, cpu, cuda or cuda:N as a torch device.

    Raises:
        ConfigError: a device that is unknown or not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {device!r}; use auto, cpu, cuda or cuda:N") from error
    if chosen.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {device!r} is not supported; use auto, cpu, cuda or cuda:N")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {device!r} is not there: {torch.cuda.device_count()} CUDA devices found; use auto"
        )
    return chosen


def check_picture(picture: NDArray[np.uint8], what: str) -> None:
    """Raises ImageError unless (H, W, 3) uint8, ImageTooLargeError above MAX_PIXELS."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ImageError(
            f"{what} is an array of {picture.dtype} and shape {picture.shape}, "
            "wanted uint8 (height, width, 3) RGB"
        )
    if picture.shape[0] * picture.shape[1] > MAX_PIXELS:
        raise ImageTooLargeError(
            f"{what} has {picture.shape[1]}x{picture.shape[0]} px, "
            f"the limit is {MAX_PIXELS / 1e6:.0f} megapixels; cut it into parts"
        )


def _check_reference(reference: NDArray[np.uint8], image: NDArray[np.uint8]) -> None:
    check_picture(reference, "reference")
    if reference.shape != image.shape:
        raise ImageError(
            f"reference has {reference.shape[1]}x{reference.shape[0]} px, "
            f"the image {image.shape[1]}x{image.shape[0]}; "
            "send a reference of the same size, aligned with the image"
        )


def _defects(
    calls: Calls,
    defect_map: NDArray[np.float32],
    shares: NDArray[np.float32],
    names: tuple[str, ...],
    width: int,
    height: int,
) -> list[Defect]:
    """Calls as defects: boxes clipped to the picture, area and gate share read off the maps inside."""
    defects = []
    limit = np.array([width, height, width, height], np.float32)
    boxes = np.clip(calls.boxes.cpu().numpy(), 0, limit)
    for box, score, label in zip(boxes, calls.scores.tolist(), calls.labels.tolist(), strict=True):
        left, top, right, bottom = (float(v) for v in box)
        if right <= left or bottom <= top:
            continue
        rows = slice(int(top // 4), max(math.ceil(bottom / 4), int(top // 4) + 1))
        columns = slice(int(left // 4), max(math.ceil(right / 4), int(left // 4) + 1))
        patch = defect_map[label, rows, columns]
        weight = patch / max(float(patch.sum()), 1e-6)
        share = (shares[:, rows, columns] * weight).sum((1, 2))
        share = share / max(float(share.sum()), 1e-6)
        defects.append(
            Defect(
                label=names[label],
                score=score,
                box_xyxy=(left, top, right, bottom),
                area_px=max(int((patch >= MAP_THRESHOLD).sum()), 1) * 16,
                gate_share={name: float(s) for name, s in zip(LEVEL_NAMES, share, strict=True)},
            )
        )
    return defects


def _reasons(defects: list[Defect]) -> tuple[str, ...]:
    """One line per class found, most frequent first."""
    counts: dict[str, int] = {}
    for defect in defects:
        counts[defect.label] = counts.get(defect.label, 0) + 1
    return tuple(f"{count} x {label}" for label, count in sorted(counts.items(), key=lambda item: -item[1]))
