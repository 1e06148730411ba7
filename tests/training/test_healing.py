"""Healed boards never had the class: its spots are the reference's, all others are untouched."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from inspect_vit.results import Sample
from training.formats.deeppcb import read_deeppcb
from training.healing import write_healed_deeppcb


def test_a_healed_set_lacks_the_class_and_nothing_else(tmp_path: Path) -> None:
    reference = np.zeros((80, 80), np.uint8)
    board = reference.copy()
    board[10:20, 10:20] = board[15:40, 15:40] = board[60:70, 60:70] = 255
    for name, picture in (("1_test", board), ("1_temp", reference)):
        cv2.imwrite(str(tmp_path / f"{name}.png"), picture)
    boxes = np.array([[8, 8, 22, 22], [15, 15, 40, 40], [58, 58, 72, 72]], np.float32)
    sample = Sample(
        tmp_path / "1_test.png",
        boxes,
        ("short", "pin-hole", "short"),
        reference=tmp_path / "1_temp.png",
        group="77",
    )
    write_healed_deeppcb([sample], tmp_path / "out", classes={"short"})
    (healed,) = read_deeppcb(tmp_path / "out", "trainval")
    assert healed.labels == ("pin-hole",)
    assert healed.boxes.tolist() == [[15.5, 15.5, 40.5, 40.5]]
    assert healed.reference is not None
    found, kept = (cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in (healed.image, healed.reference))
    wanted = reference.copy()
    wanted[15:40, 15:40] = 255  # where boxes overlap, the other defect's pixels stay
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(kept, reference)
