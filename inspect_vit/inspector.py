"""The front door: numpy pictures in, an InspectionResult out.

Shape letters: H, W pixels of the picture, h, w = ceil(H / 4), ceil(W / 4) cells, K defect classes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inspect_vit.alignment import LaidReference, lay_under
from inspect_vit.calibration import Calibration, load_calibration, thresholds_in_force
from inspect_vit.cells import CELL_PX, cells_of
from inspect_vit.checkpoint import ReferenceMode, load_checkpoint
from inspect_vit.config import AttentionBackend
from inspect_vit.coverage import check_mask, coverage
from inspect_vit.devices import resolve_device
from inspect_vit.differences import difference_words, large_differences, longest_px
from inspect_vit.fallback import with_less_memory
from inspect_vit.findings import MAX_LISTED, Findings, find
from inspect_vit.listing import failure_reasons, list_defects
from inspect_vit.model import HierarchicalViT, ModelOutput
from inspect_vit.pictures import check_picture, check_reference
from inspect_vit.pixels import to_channels
from inspect_vit.results import BoxXyxy, InspectionResult, IntakeReport, Verdict
from inspect_vit.tiling import Plan, Tile, blend_rows, plan_tiles, tile_side

LEVEL_NAMES = ("4", "16", "32")
T = TypeVar("T")


class Inspector:
    """Owns a model and its device. Not thread-safe: use one per thread."""

    def __init__(
        self,
        checkpoint: str | Path,
        *,
        device: str = "auto",
        attention_backend: AttentionBackend = "auto",
        tile_px: int | None = None,
        calibration: Calibration | str | Path | None = None,
    ) -> None:
        """Load a checkpoint.

        Args:
            device: auto (CUDA where there is one, else CPU), cpu, cuda or cuda:N.
            tile_px: longest side inspected in one piece, a multiple of the model's size; default 1280.
                Larger boards are cut into tiles of up to that side (`tiling`).
            calibration: gives the thresholds and what they promise; the checkpoint's own promise nothing.
        """
        if isinstance(calibration, str | Path):
            calibration = load_calibration(calibration)
        self.calibration = calibration
        self.device = resolve_device(device)
        self.model: HierarchicalViT
        self.model, self.metadata = load_checkpoint(
            checkpoint, device=self.device, attention_backend=attention_backend
        )
        self.model.to(memory_format=torch.channels_last)
        self.tile_px = tile_side(self.metadata.model.size_multiple, tile_px)

    def inspect(
        self,
        image: NDArray[np.uint8],
        *,
        reference: NDArray[np.uint8] | LaidReference | None = None,
        min_score: float | None = None,
        intake: IntakeReport | None = None,
        ignore: NDArray[np.bool_] | None = None,
        unseen: NDArray[np.bool_] | None = None,
        min_size_px: Mapping[str, float] | None = None,
        calibration: Calibration | None = None,
        recipe: str | None = None,
        camera: str | None = None,
        output: ModelOutput | None = None,
    ) -> InspectionResult:
        """Inspect one board.

        Args:
            image: (H, W, 3) uint8 RGB.
            reference: picture of a good board, which is aligned with the image, or what `lay_under` made of
                one. Where that cannot be done the verdict is ERROR. None inspects without.
            min_score: list calls from this score up instead of from the thresholds; the verdict is the same.
            intake: what reading the picture found; its errors make the verdict ERROR.
            ignore: (h, w) cells of 4 px that do not count: a call with more than half of its box there is no
                defect, and they need not be covered.
            unseen: (h, w) cells that show no board or have no reference to be compared with; the verdict is
                ERROR where one of them is not ignored. `coverage.any_cells` makes it from pixels.
            min_size_px: by class; a call is no defect where what differs from the reference in its box, or
                without one the box, is shorter on its longest side.
            calibration: for this board, instead of the inspector's.
            recipe, camera: the calibration's claims are void unless they are those it was made for.
            output: of a pass already made over these pictures in one piece, as `trace.inspect_traced` makes.

        Raises:
            ConfigError: a mask of another shape.
            ImageError: not a picture of that form.
            ImageTooLargeError: more than MAX_PIXELS.
            OutOfMemoryError: too little memory on the device, in smaller tiles too.
        """
        start = time.perf_counter()
        laid = laid_reference(image, reference)
        golden = None if laid is None else laid.picture
        self.check(image, golden)
        after_alignment = time.perf_counter()
        height, width = image.shape[:2]
        for name, mask in (("ignore", ignore), ("unseen", unseen)):
            check_mask(mask, cells_of(height, width), name)
        plan = self.plan(image)
        assert output is None or plan.num_tiles == 1, "a pass over a board in tiles is several"
        mode: ReferenceMode = "without_reference" if reference is None else "with_reference"
        thresholds, promise = thresholds_in_force(
            calibration or self.calibration,
            self.metadata.thresholds[mode],
            model_version=self.metadata.version,
            mode=mode,
            recipe=recipe,
            camera=camera,
        )
        names = self.metadata.model.class_names
        limits = np.array([thresholds[name] for name in names])
        sure = float(limits.min())
        model_s = 0.0

        def run(tile: Tile) -> ModelOutput:
            nonlocal model_s
            if output is not None:
                return output
            begun = time.perf_counter()
            answer = self._forward(image, golden, tile=tile)
            model_s += time.perf_counter() - begun
            return answer

        lowest = sure if min_score is None else min(min_score, sure)

        def look(plan: Plan) -> Findings:
            return find(
                run, plan, height=height, width=width, min_score=lowest, sure_score=sure, ignore=ignore
            )

        found, warnings = (look(plan), ()) if output is not None else self.with_less_memory(look, image)
        if min_size_px:
            sizes = [longest_px(image, golden, tuple(box)) for box in found.boxes.tolist()]
            found = found.only(np.array(sizes) >= [min_size_px.get(names[i], 0.0) for i in found.labels])
        is_failing = found.scores.astype(np.float64) >= limits[found.labels]
        is_listed = is_failing if min_score is None else found.scores.astype(np.float64) >= min_score
        defects = list_defects(found, np.flatnonzero(is_listed)[:MAX_LISTED], names=names, levels=LEVEL_NAMES)
        differences: tuple[BoxXyxy, ...] = ()
        if golden is not None:
            differences = large_differences(image, golden, found.boxes[is_failing], ignore=ignore)
        covered, gaps = coverage(found.is_answered, unseen=unseen, ignore=ignore)
        errors = () if intake is None else intake.errors
        if laid is not None:
            errors = (*errors, *laid.faults)
        elif self.metadata.needs_reference:
            errors = (
                *errors,
                f"model {self.metadata.name} inspects only against a golden reference; send one",
            )
        errors = (*errors, *gaps)
        lacks = "" if laid is None else laid.lacks
        fails = bool(lacks or is_failing.any() or differences)
        verdict = Verdict.ERROR if errors else Verdict.FAIL if fails else Verdict.PASS
        reasons = failure_reasons([names[label] for label in found.labels[is_failing]])
        finish = time.perf_counter()
        return InspectionResult(
            verdict=verdict,
            reasons=errors or (*filter(None, [lacks]), *reasons, *difference_words(differences)),
            score=found.top_score,
            defects=() if errors else defects,
            num_defects=0 if errors else int(is_failing.sum()),
            differences=() if errors else differences,
            covered=covered,
            defect_map=found.defect_map,
            gate_maps=dict(zip(LEVEL_NAMES, found.gate_shares, strict=True)),
            class_names=names,
            thresholds=thresholds,
            width=width,
            height=height,
            with_reference=reference is not None,
            model_name=self.metadata.name,
            model_version=self.metadata.version,
            timings_ms={
                "alignment": 1e3 * (after_alignment - start),
                "model": 1e3 * model_s,
                "calls": 1e3 * (finish - after_alignment - model_s),
            },
            alignment=None if laid is None else laid.alignment,
            calibration=promise,
            warnings=warnings,
        )

    def attention(
        self, image: NDArray[np.uint8], *, reference: NDArray[np.uint8] | LaidReference | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Where attention goes at each level, {"4", "16", "32"}: (h, w), 1 where it is uniform.

        Exact weights of the level's last block, mean over queries and heads; `attribution.attention_heads`
        has them by head, and for a defect or a point alone. Of a board in tiles, uniform is over the tile.
        Raises as `inspect`."""
        laid = laid_reference(image, reference)
        golden = None if laid is None else laid.picture
        self.check(image, golden)
        rows, columns = cells_of(*image.shape[:2])
        patches = [level.patch_size for level in self.metadata.model.levels]

        def run(tile: Tile) -> tuple[Tensor]:
            output = self._forward(image, golden, tile=tile, want_attention=True)
            assert output.attention is not None
            size = output.gate_shares.shape[2:]
            maps = [functional.interpolate(level, size, mode="nearest")[0] for level in output.attention]
            return (torch.cat(maps).float(),)

        def look(plan: Plan) -> NDArray[np.float32]:
            parts = blend_rows(plan, run, cell_px=CELL_PX, weight_px=patches[-1])
            return np.concatenate([band[:, :, :columns].cpu().numpy() for _, (band,) in parts], 1)[:, :rows]

        return dict(zip(LEVEL_NAMES, self.with_less_memory(look, image)[0], strict=True))

    def plan(self, image: NDArray[np.uint8]) -> Plan:
        """How a board (H, W, 3) is cut into tiles; one tile for boards of up to `tile_px`."""
        step = self.metadata.model.size_multiple
        return plan_tiles(*image.shape[:2], step=step, tile_px=self.tile_px)

    def with_less_memory(
        self, work: Callable[[Plan], T], image: NDArray[np.uint8]
    ) -> tuple[T, tuple[str, ...]]:
        """`fallback.with_less_memory` of a board: by `plan`, else in smaller tiles."""
        step = self.metadata.model.size_multiple
        return with_less_memory(work, *image.shape[:2], step=step, tile_px=self.tile_px)

    @torch.inference_mode()
    def _forward(
        self,
        image: NDArray[np.uint8],
        reference: NDArray[np.uint8] | None,
        *,
        tile: Tile,
        want_attention: bool = False,
    ) -> ModelOutput:
        golden = None if reference is None else tile.of(reference)
        output: ModelOutput = self.model(*self.tensors(tile.of(image), golden), want_attention=want_attention)
        return output

    @staticmethod
    def check(image: NDArray[np.uint8], reference: NDArray[np.uint8] | None) -> None:
        """Raises ImageError unless both are pictures, of one size."""
        check_picture(image, "image")
        if reference is not None:
            check_reference(reference, image)

    def tensors(
        self, image: NDArray[np.uint8], reference: NDArray[np.uint8] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Pictures as the model's `forward` takes them: board, aligned reference and whether there is one.

        For parts of a board: memory grows with the picture. Raises ImageError as `inspect`, and for a
        reference of another size.
        """
        self.check(image, reference)
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


def laid_reference(
    image: NDArray[np.uint8], reference: NDArray[np.uint8] | LaidReference | None
) -> LaidReference | None:
    """The reference laid under the board, unless that was done or there is none. Raises ImageError."""
    if reference is None or isinstance(reference, LaidReference):
        return reference
    for picture, what in ((image, "image"), (reference, "reference")):
        check_picture(picture, what)
    return lay_under(image, reference)
