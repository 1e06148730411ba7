"""Sample folders hold together: labels, board and reference tell the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from training.defect_kinds import DEFECT_KINDS
from training.samples import SHIPPED, SampleBoard, write_samples

SIZE = 320


def decode_run_lengths(counts: list[int], shape: tuple[int, int]) -> NDArray[np.bool_]:
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape(shape, order="F")


def read_grey(path: Path) -> NDArray[np.uint8]:
    picture = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    return np.asarray(picture, np.uint8)


def check_samples(folder: Path, size: int) -> None:
    """Labels and pictures of a sample folder agree: a defect's pixels differ between board and reference."""
    tree = json.loads((folder / "annotations.coco.json").read_text(encoding="utf-8"))
    names = {entry["id"]: entry["name"] for entry in tree["categories"]}
    assert list(names.values()) == list(DEFECT_KINDS)
    for entry in tree["images"]:
        board, reference = read_grey(folder / entry["file_name"]), read_grey(folder / entry["reference"])
        assert board.shape[:2] == reference.shape[:2] == (size, size) == (entry["height"], entry["width"])
        if board.ndim == 3:
            check_colours(board, reference, [a for a in tree["annotations"] if a["image_id"] == entry["id"]])
            continue
        assert set(np.unique(board)) == {0, 255}
        outside = board != reference
        for label in (a for a in tree["annotations"] if a["image_id"] == entry["id"]):
            mask = decode_run_lengths(label["segmentation"]["counts"], (size, size))
            assert mask.sum() == label["area"]
            # Removed copper turned white, added copper black; the reference differs but for its edges.
            removes = DEFECT_KINDS[names[label["category_id"]]].removes
            assert (board[mask] == (255 if removes else 0)).all()
            assert (board != reference)[mask].mean() > 0.5
            left, top, width, height = (int(value) for value in label["bbox"])
            rows, columns = np.nonzero(mask)
            assert left <= columns.min() and columns.max() < left + width
            assert top <= rows.min() and rows.max() < top + height
            outside[mask] = False
        # What differs outside the masks is frayed edges: nothing of it survives a 3x3 opening.
        assert not cv2.morphologyEx(outside.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)).any()


def check_colours(
    board: NDArray[np.uint8], reference: NDArray[np.uint8], labels: list[dict[str, Any]]
) -> None:
    """Pixels of defects differ from the reference more than others do."""
    difference = cv2.absdiff(board, reference).max(-1).astype(float)
    for label in labels:
        mask = decode_run_lengths(label["segmentation"]["counts"], difference.shape)
        assert mask.sum() == label["area"]
        assert difference[mask].mean() > 1.5 * np.median(difference)


def test_written_samples_hold_together(tmp_path: Path) -> None:
    boards = [SampleBoard("a", 1), SampleBoard("b", 2, "colour", "green"), SampleBoard("c", 2, good=True)]
    written = write_samples(tmp_path / "samples", boards, size=SIZE)
    assert sorted(written) == sorted((tmp_path / "samples").iterdir())
    check_samples(tmp_path / "samples", SIZE)
    tree = json.loads(written[-1].read_text(encoding="utf-8"))
    assert {label["image_id"] for label in tree["annotations"]} == {1, 2}, "the last board is good"


@pytest.mark.parametrize("style", ["scan", "colour"])
def test_samples_follow_their_seeds(tmp_path: Path, style: Literal["scan", "colour"]) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        write_samples(folder, [SampleBoard("a", 4, style)], size=128)
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()


def test_shipped_samples_hold_together(project: Path) -> None:
    folder = project / "data_samples"
    check_samples(folder, 640)
    tree = json.loads((folder / "annotations.coco.json").read_text(encoding="utf-8"))
    assert {label["category_id"] for label in tree["annotations"]} == set(range(1, 8)), "every class is shown"
    labelled = {label["image_id"] for label in tree["annotations"]}
    assert {entry["id"] for entry in tree["images"]} - labelled, "one board is good"
    assert [entry["file_name"] for entry in tree["images"]] == [f"{board.name}_test.png" for board in SHIPPED]
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) < 4_000_000
