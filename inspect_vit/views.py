"""A part of a board at any zoom: picture, maps and result cut and scaled alike, ready for any overlay.

Lines and letters are drawn after the scaling and stay legible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.drawing import Picture, Rect
from inspect_vit.errors import ConfigError
from inspect_vit.results import Defect, InspectionResult
from inspect_vit.sheet import resize


@dataclass(frozen=True)
class View:
    """Which part of a board is drawn, and how large."""

    crop: Rect
    """(left, top, right, bottom), px of the board."""
    height: int
    width: int
    """Size it is drawn at, px."""

    @classmethod
    def fit(cls, crop: Rect, longest_px: int) -> Self:
        """A view whose longer side is drawn at `longest_px`.

        Raises:
            ConfigError: an empty crop.
        """
        left, top, right, bottom = crop
        if right <= left or bottom <= top or longest_px < 1:
            raise ConfigError(
                f"crop {crop} at {longest_px} px, wanted left < right, top < bottom and 1 px or more"
            )
        zoom = longest_px / max(right - left, bottom - top)
        return cls(crop, max(1, round(zoom * (bottom - top))), max(1, round(zoom * (right - left))))

    @property
    def zoom(self) -> float:
        """Drawn pixels per pixel of the board."""
        left, top, right, bottom = self.crop
        return max(self.height, self.width) / max(right - left, bottom - top)

    def picture(self, picture: Picture) -> Picture:
        """The part of a picture (H, W, 3): (height, width, 3).

        Raises:
            ConfigError: a crop that does not lie on the picture.
        """
        left, top, right, bottom = self.crop
        rows, columns = picture.shape[:2]
        if left < 0 or top < 0 or right > columns or bottom > rows:
            raise ConfigError(f"crop {self.crop} does not lie on the picture of {columns} x {rows} px")
        return resize(picture[top:bottom, left:right], self.height, self.width)

    def cells(self, cells: NDArray[np.float32]) -> NDArray[np.float32]:
        """A map on the board's 4 px cells as one on 4 px cells of the view, smooth between centres."""
        # Cell i has its centre at 4 (i + 0.5); the pixel p of the view is left + p / zoom of the board.
        zoom, (left, top, _, _) = self.zoom, self.crop
        shift = 0.5 / zoom - 0.5
        matrix = np.array([[1 / zoom, 0, left / 4 + shift], [0, 1 / zoom, top / 4 + shift]])
        size = (-(-self.width // 4), -(-self.height // 4))
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return np.asarray(
            cv2.warpAffine(cells, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE), np.float32
        )

    def peaks(self, cells: NDArray[np.float32]) -> NDArray[np.float32]:
        """As `cells`, but a view that shrinks keeps the highest value of what falls together."""
        reach = np.ones((max(1, round(1 / self.zoom)),) * 2, np.uint8)
        return self.cells(np.asarray(cv2.dilate(cells, reach), np.float32))

    def result(self, result: InspectionResult) -> InspectionResult:
        """The result as if the view had been inspected; defects outside it are left out, the rest keep
        order."""
        return replace(
            result,
            width=self.width,
            height=self.height,
            defect_map=np.stack([self.peaks(cells) for cells in result.defect_map]),
            gate_maps={level: self.cells(cells) for level, cells in result.gate_maps.items()},
            defects=tuple(self._defect(defect) for defect in result.defects if self._shows(defect)),
        )

    def _shows(self, defect: Defect) -> bool:
        left, top, right, bottom = defect.box_xyxy
        return left < self.crop[2] and top < self.crop[3] and right > self.crop[0] and bottom > self.crop[1]

    def _defect(self, defect: Defect) -> Defect:
        left, top, right, bottom = defect.box_xyxy
        x, y, zoom = self.crop[0], self.crop[1], self.zoom
        box = ((left - x) * zoom, (top - y) * zoom, (right - x) * zoom, (bottom - y) * zoom)
        return replace(defect, box_xyxy=box)
