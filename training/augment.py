"""The albumentations pipelines: what a camera and a scanner may do to a good picture."""

from __future__ import annotations

import os
from dataclasses import dataclass

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

import albumentations as A
import cv2
import numpy as np
from numpy.typing import NDArray

from training.config import AugmentConfig

EDGE_WANDER = ((7.0, 1.5), (10.0, 3.0))
"""(alpha, sigma px) of elastic changes from uniform noise: edges move by alpha / (2 sqrt(3 pi) sigma),
0.76 and 0.54 px (standard deviation)."""


@dataclass(frozen=True)
class Crop:
    """One training crop. Pictures are (S, S, c) uint8."""

    board: NDArray[np.uint8]
    reference: NDArray[np.uint8]
    class_mask: NDArray[np.uint8]
    """(S, S): 0 where there is no defect, else class index + 1."""
    boxes: NDArray[np.float32]
    """(n, 4) box_xyxy, px of the crop."""
    labels: NDArray[np.int64]
    """(n,)."""
    ignored: NDArray[np.float32]
    """(m, 4) boxes that the crop cuts or the labels ignore: neither defect nor background."""


class Augmenter:
    """Owns the pipelines; every call is seeded, so that crop i is the same in any process."""

    def __init__(self, config: AugmentConfig) -> None:
        self.config = config
        self._turn = A.Compose(
            [A.D4(p=1.0)],
            bbox_params=A.BboxParams(
                "pascal_voc", label_fields=["indices"], clip=False, filter_invalid_bboxes=False
            ),
            additional_targets={"reference": "image"},
        )
        shift = config.misalign_px
        self._misalign = A.Compose(
            [
                A.Affine(
                    translate_px=(-round(shift), round(shift)),
                    rotate=(-config.misalign_degrees, config.misalign_degrees),
                    border_mode=cv2.BORDER_REPLICATE,
                    p=config.misalign_share,
                )
            ]
        )
        wander = [
            A.ElasticTransform(
                alpha, sigma, noise_distribution="uniform", border_mode=cv2.BORDER_REPLICATE, p=1.0
            )
            for alpha, sigma in EDGE_WANDER
        ]
        etch = [A.Morphological((2, 2), operation, p=1.0) for operation in ("dilation", "erosion")]
        self._edges = A.Compose([A.OneOf(wander, p=config.edge_share), A.OneOf(etch, p=config.etch_share)])
        self._expose = A.Compose(
            [
                A.OneOf(
                    [
                        A.RandomBrightnessContrast((-0.15, 0.15), (-0.2, 0.2), p=1.0),
                        A.GaussNoise((0.02, 0.08), p=1.0),
                        A.GaussianBlur((3, 3), p=1.0),
                        A.ImageCompression("jpeg", (60, 95), p=1.0),
                    ],
                    p=config.photometric_share,
                )
            ]
        )

    def __call__(self, crop: Crop, seed: int) -> Crop:
        """Turn and flip all alike; move the reference a little, redraw its edges; expose each by itself."""
        # Edges draw from seeds of their own, so that without them crops stay those of the shipped run.
        for offset, pipeline in enumerate((self._turn, self._misalign, self._expose)):
            pipeline.set_random_seed((seed * 3 + offset) % 2**32)
        self._edges.set_random_seed((seed + 2**31) % 2**32)
        boxes = np.concatenate([crop.boxes, crop.ignored])
        turned = self._turn(
            image=crop.board,
            reference=crop.reference,
            mask=crop.class_mask,
            bboxes=boxes,
            indices=np.arange(len(boxes)),
        )
        moved = np.asarray(turned["bboxes"], np.float32).reshape(-1, 4)
        order = np.asarray(turned["indices"], np.int64)
        is_defect = order < len(crop.boxes)
        reference = self._misalign(image=turned["reference"])["image"]
        reference = self._edges(image=reference)["image"]
        return Crop(
            board=self._expose(image=turned["image"])["image"],
            reference=self._expose(image=reference)["image"],
            class_mask=turned["mask"],
            boxes=moved[is_defect],
            labels=crop.labels[order[is_defect]],
            ignored=moved[~is_defect],
        )
