"""Samples to training tensors: crops on defects and elsewhere, mosaics, targets.

Shape letters: S side of a crop in px, s = S / 4 cells, c picture channels, K defect classes.
Crop i of a run is a function of the seed and i alone: any process makes it, and a resumed run sees the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from inspect_vit.pixels import to_channels
from inspect_vit.results import Sample
from training.augment import Augmenter, Crop
from training.config import TrainConfig
from training.quarantine import note_unreadable
from training.reimage import is_scan, reimage
from training.targets import draw_targets

DIFFERENT = 64
"""Board and reference differ at a pixel when their grey levels are further apart than this."""
VISIBLE_SHARE = 0.6
"""A defect cut by the edge of a crop is trained on when at least this share of its box is inside."""

Picture = NDArray[np.uint8]


class DefectDataset(Dataset[dict[str, Tensor]]):
    """Crop number -> tensors. Pictures are decoded once and kept up to `cache_mb`."""

    def __init__(
        self, samples: Sequence[Sample], config: TrainConfig, *, total_crops: int, notes: Path | None = None
    ) -> None:
        """notes: file that gets a line for each picture that cannot be read; the next sample then stands in.

        Without it such a picture raises ImageError.
        """
        self.samples = samples
        self.notes = notes
        self._unreadable: set[int] = set()
        self.config = config
        self.total_crops = total_crops
        self._classes = {name: i for i, name in enumerate(config.model.class_names)}
        self._augment = Augmenter(config.augment)
        self._cache: dict[int, tuple[Picture, Picture, Picture]] = {}
        self._cached_bytes = 0

    def __len__(self) -> int:
        return self.total_crops

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        """Tensors of crop `index`, counted from the first of the first epoch.

        board, reference: (c, S, S) uint8; has_reference: () float; centres, masks: (K, s, s); distances:
        (4, s, s) px; box_weights: (1, s, s); counted: (1, s, s), 0 where a cut defect is neither defect nor
        background.
        """
        rng = np.random.default_rng((self.config.seed, index))
        data = self.config.data
        mosaic = rng.random() < data.mosaic_share and index < data.mosaic_until * self.total_crops
        crop = self._mosaic(index, rng) if mosaic else self._crop(self._sample_of(index), rng, data.crop_size)
        crop = self._augment(crop, int(rng.integers(2**30)))
        targets = draw_targets(crop, len(self._classes))
        has_reference = self.samples[self._stand_in(self._sample_of(index))].reference is not None
        drop = rng.random() < self.config.augment.reference_drop
        return {
            "board": torch.from_numpy(np.ascontiguousarray(crop.board.transpose(2, 0, 1))),
            "reference": torch.from_numpy(np.ascontiguousarray(crop.reference.transpose(2, 0, 1))),
            "has_reference": torch.tensor(float(has_reference and not drop)),
        } | {key: torch.from_numpy(value) for key, value in targets.items()}

    def _sample_of(self, index: int) -> int:
        """Every sample once in each pass over the set, in an order of that pass's own."""
        turn, place = divmod(index, len(self.samples))
        return int(np.random.default_rng((self.config.seed, turn, 1)).permutation(len(self.samples))[place])

    def _mosaic(self, index: int, rng: np.random.Generator) -> Crop:
        """Four half-size crops of as many samples: more defects to learn from at the same cost."""
        half = self.config.data.crop_size // 2
        others = rng.integers(len(self.samples), size=3).tolist()
        tiles = [self._crop(i, rng, half) for i in (self._sample_of(index), *others)]
        offsets = [np.array((x, y, x, y), np.float32) for y in (0, half) for x in (0, half)]

        def joined(pictures: list[Picture]) -> Picture:
            return np.vstack([np.hstack(pictures[:2]), np.hstack(pictures[2:])])

        return Crop(
            board=joined([tile.board for tile in tiles]),
            reference=joined([tile.reference for tile in tiles]),
            class_mask=joined([tile.class_mask for tile in tiles]),
            boxes=np.concatenate([tile.boxes + o for tile, o in zip(tiles, offsets, strict=True)]),
            labels=np.concatenate([tile.labels for tile in tiles]),
            ignored=np.concatenate([tile.ignored + o for tile, o in zip(tiles, offsets, strict=True)]),
        )

    def _crop(self, number: int, rng: np.random.Generator, size: int) -> Crop:
        """A square of `size` px out of one sample, placed on a defect and enlarged in the asked shares."""
        number, (board, reference, class_mask) = self._load_readable(number)
        sample, data = self.samples[number], self.config.data
        zoomed = data.zoom_share > 0 and rng.random() < data.zoom_share
        zoom = float(rng.uniform(*data.zoom)) if zoomed else 1.0
        side = round(size / zoom)
        bottom, right = max(side - board.shape[0], 0), max(side - board.shape[1], 0)
        if bottom or right:
            board, reference, class_mask = (_extend(p, bottom, right) for p in (board, reference, class_mask))
        room = np.array([board.shape[1] - side, board.shape[0] - side])
        corner = rng.integers(room + 1)
        defects = np.flatnonzero(~sample.is_ignored)
        if len(defects) and rng.random() < data.defect_share:
            box = sample.boxes[defects[rng.integers(len(defects))]]
            centre = (box[:2] + box[2:]) / 2
            corner = np.clip(centre - side * rng.uniform(0.15, 0.85, 2), 0, room).astype(np.int64)
        x, y = corner.tolist()
        view = np.s_[y : y + side, x : x + side]
        moved = (sample.boxes - np.array((x, y, x, y), np.float32)) * (size / side)
        clipped = np.clip(moved, 0, size)
        shares = _area(clipped) / np.maximum(_area(moved), 1e-6)
        # Slivers under a pixel, which zooming makes, are neither learnt nor ignored.
        seen = (clipped[:, 2:] - clipped[:, :2]).min(1, initial=size) >= 1
        whole = (shares >= VISIBLE_SHARE) & ~sample.is_ignored
        inside, cut = seen & whole, seen & ~whole
        seen_board, seen_reference = board[view], reference[view]
        # A good board teaches most where a defect was: the same place, and nothing to call.
        if data.good_share > 0 and sample.reference is not None and rng.random() < data.good_share:
            seen_board, class_mask = seen_reference, np.zeros_like(class_mask)
            inside, cut = np.zeros_like(inside), np.zeros_like(cut)
            if data.retake_share > 0 and rng.random() < data.retake_share:
                seen_board = _retaken(seen_board, rng, as_scan=is_scan(reference))
        return Crop(
            _resize(seen_board, size, cv2.INTER_LINEAR),
            _resize(seen_reference, size, cv2.INTER_LINEAR),
            _resize(class_mask[view], size, cv2.INTER_NEAREST),
            clipped[inside],
            np.array([self._classes[sample.labels[i]] for i in np.flatnonzero(inside)], np.int64),
            clipped[cut],
        )

    def _load_readable(self, number: int) -> tuple[int, tuple[Picture, Picture, Picture]]:
        """The sample's pictures, or those of its stand-in; and whose they are."""
        while True:
            number = self._stand_in(number)
            try:
                return number, self._load(number)
            except ImageError as error:
                if self.notes is None:
                    raise
                self._unreadable.add(number)
                note_unreadable(self.notes, self.samples[number].image, str(error))
                if len(self._unreadable) == len(self.samples):
                    raise ImageError(
                        f"no picture of the training set can be read; the last: {error}"
                    ) from error

    def _stand_in(self, number: int) -> int:
        """The sample itself, or the next after it that was not found unreadable."""
        while number in self._unreadable:
            number = (number + 1) % len(self.samples)
        return number

    def _load(self, number: int) -> tuple[Picture, Picture, Picture]:
        if number in self._cache:
            return self._cache[number]
        sample = self.samples[number]
        channels = self.config.model.in_chans
        board = to_channels(read_image(sample.image)[0], channels)
        reference = (
            board if sample.reference is None else to_channels(read_image(sample.reference)[0], channels)
        )
        if reference.shape != board.shape:
            raise ImageError(f"reference {sample.reference} is {reference.shape}, the board {board.shape}")
        loaded = board, reference, self._class_mask(sample, board, reference)
        size = sum(picture.nbytes for picture in loaded)
        if self._cached_bytes + size <= self.config.data.cache_mb * 1_000_000:
            self._cache[number] = loaded
            self._cached_bytes += size
        return loaded

    def _class_mask(self, sample: Sample, board: Picture, reference: Picture) -> Picture:
        """Outlines where the set has them; else what differs from the reference inside the box; else the box.

        Ignored boxes draw nothing: no cell under them is counted.
        """
        mask = np.zeros(board.shape[:2], np.uint8)
        for i in np.flatnonzero(~sample.is_ignored):
            box, value = sample.boxes[i], self._classes[sample.labels[i]] + 1
            shape = sample.masks[i] if sample.masks is not None else None
            if shape is not None:
                shape.paint(mask, value)
                continue
            left, top, right, bottom = np.round(box).astype(int).tolist()
            view = np.s_[max(top, 0) : bottom, max(left, 0) : right]
            difference = (
                cv2.absdiff(board[view], reference[view]).reshape(*mask[view].shape, -1).max(-1) > DIFFERENT
            )
            opened = _open_2x2(difference.astype(np.uint8)) > 0
            mask[view][opened if opened.any() else np.ones_like(opened)] = value
        return mask


def _retaken(picture: Picture, rng: np.random.Generator, *, as_scan: bool) -> Picture:
    """Another picture of the same good board, (S, S, c)."""
    again, _ = reimage(np.repeat(picture, 3 // picture.shape[2], axis=2), rng, as_scan=as_scan)
    return to_channels(again, picture.shape[2])


def _resize(picture: Picture, size: int, interpolation: int) -> Picture:
    """A square picture at another size; channels stay."""
    if picture.shape[0] == size:
        return picture
    resized = cv2.resize(picture, (size, size), interpolation=interpolation)
    return resized.reshape(size, size, *picture.shape[2:]).astype(np.uint8, copy=False)


def _extend(picture: Picture, bottom: int, right: int) -> Picture:
    """Repeat the last row and column that many times."""
    channels = [(0, 0)] * (picture.ndim - 2)
    return np.pad(picture, ((0, bottom), (0, right), *channels), mode="edge")


def _open_2x2(mask: Picture) -> Picture:
    """Opening with a 2x2 square. The anchors mirror each other: equal ones move the result by a pixel."""
    square = np.ones((2, 2), np.uint8)
    return cv2.dilate(cv2.erode(mask, square, anchor=(0, 0)), square, anchor=(1, 1))  # type: ignore[return-value]


def _area(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    area: NDArray[np.float32] = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return area


def fingerprint(samples: Sequence[Sample]) -> str:
    """12 hex digits over picture names, sizes on disk and labels: two runs on the same data agree."""
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(f"{sample.image.name} {sample.image.stat().st_size} {sample.labels}".encode())
        digest.update(sample.boxes.tobytes())
        digest.update(bytes(sample.ignored))
        for shape in sample.masks or ():
            rings = [r for p in shape.polygons for r in (p.exterior, *p.holes)] if shape is not None else []
            digest.update(repr(shape and shape.runs).encode() + b"".join(ring.tobytes() for ring in rings))
    return digest.hexdigest()[:12]
