"""MVTec AD and VisA on small sets drawn here: which blobs are defects, and what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from inspect_vit.errors import ConfigError
from training.formats.mvtec import blobs, looks_like_mvtec, read_mvtec


def draw(
    path: Path, pixels: np.ndarray | None = None, *, size: tuple[int, int] = (40, 30), mode: str = "L"
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("L", size, 99) if pixels is None else Image.fromarray(pixels.astype(np.uint8) * 255)
    picture.convert(mode).save(path)
    return path


def mask_of_three() -> np.ndarray:
    """A bar with a hole, a diagonal that only corners join, and one pixel at the border; (30, 40)."""
    mask = np.zeros((30, 40), bool)
    mask[3:9, 4:20] = True
    mask[5:7, 8:10] = False
    mask[range(12, 18), range(25, 31)] = True
    mask[29, 0] = True
    return mask


@pytest.mark.parametrize("seed", range(10))
def test_blobs_are_the_parts_that_another_library_finds(seed: int) -> None:
    mask = np.random.default_rng(seed).random((25, 31)) < 0.25
    parts, count = ndimage.label(mask, np.ones((3, 3)))
    found = [shape.mask(25, 31) for shape in blobs(mask)]
    assert len(found) == count
    theirs = {(parts == number).tobytes() for number in range(1, count + 1)}
    assert {blob.tobytes() for blob in found} == theirs


@pytest.mark.parametrize(
    ("end", "mode"), [("_mask", "L"), ("", "RGB"), ("_mask", "RGBA"), ("_mask", "1"), ("", "LA")]
)
def test_mvtec_ad(tmp_path: Path, end: str, mode: str) -> None:
    good = [draw(tmp_path / place / "good" / "000.png") for place in ("train", "test")]
    board = draw(tmp_path / "test" / "bent lead" / "000.png")
    draw(tmp_path / "ground_truth" / "bent lead" / f"000{end}.png", mask_of_three(), mode=mode)
    assert looks_like_mvtec(tmp_path)
    data = read_mvtec(tmp_path)
    assert data.faults == ()
    assert data.class_names == ("bent lead",)
    assert [(s.image, s.split, len(s.boxes)) for s in data.samples] == [
        (good[0].resolve(), "train", 0),
        (board.resolve(), "test", 3),
        (good[1].resolve(), "test", 0),
    ]
    sample = data.samples[1]
    np.testing.assert_array_equal(sample.boxes, [[4, 3, 20, 9], [25, 12, 31, 18], [0, 29, 1, 30]])
    assert sample.labels == ("bent lead",) * 3
    assert sample.masks is not None
    np.testing.assert_array_equal(sum(m.mask(30, 40) for m in sample.masks if m), mask_of_three())


def test_several_products_are_groups_of_one_set(tmp_path: Path) -> None:
    for product in ("screw", "pcb"):
        draw(tmp_path / product / "train" / "good" / "1.png")
        draw(tmp_path / product / "test" / "scratch" / "1.png")
        draw(tmp_path / product / "ground_truth" / "scratch" / "1_mask.png", mask_of_three())
    data = read_mvtec(tmp_path)
    assert [(s.group, s.split) for s in data.samples] == [
        ("pcb", "train"),
        ("pcb", "test"),
        ("screw", "train"),
        ("screw", "test"),
    ]
    assert data.class_names == ("scratch",)


def test_a_defective_board_never_becomes_a_good_one(tmp_path: Path) -> None:
    draw(tmp_path / "train" / "good" / "0.png")
    for name in ("none", "empty", "small", "broken", "fine"):
        draw(tmp_path / "test" / "crack" / f"{name}.png")
    truths = tmp_path / "ground_truth" / "crack"
    draw(truths / "empty_mask.png", np.zeros((30, 40), bool))
    draw(truths / "small_mask.png", np.ones((15, 20), bool))
    draw(truths / "fine_mask.png", mask_of_three())
    (truths / "broken_mask.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    draw(truths / "stray_mask.png", mask_of_three())
    data = read_mvtec(tmp_path)
    assert {(fault.kind, (fault.image or Path(fault.where)).name) for fault in data.faults} == {
        ("missing-mask", "none.png"),
        ("empty-mask", "empty.png"),
        ("mask-size", "small.png"),
        ("corrupt-mask", "broken.png"),
        ("missing-image", "stray_mask.png"),
    }
    assert [sample.image.name for sample in data.samples] == ["0.png", "fine.png"]


def test_visa_as_published(tmp_path: Path) -> None:
    product = tmp_path / "pcb1"
    draw(product / "Data" / "Images" / "Normal" / "0000.JPG")
    for number in range(3):
        draw(product / "Data" / "Images" / "Anomaly" / f"00{number}.JPG")
        pixels = mask_of_three().astype(np.uint8) * (number + 1)
        mask = product / "Data" / "Masks" / "Anomaly" / f"00{number}.png"
        mask.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(mask)
    rows = [
        "image,label,mask",
        "pcb1/Data/Images/Anomaly/000.JPG,bent,",
        'pcb1/Data/Images/Anomaly/001.JPG,"bent,melt",',
    ]
    (product / "image_anno.csv").write_bytes("\r\n".join(rows).encode())
    (tmp_path / "split_csv").mkdir()
    (tmp_path / "split_csv" / "1cls.csv").write_text(
        "object,split,label,image,mask\n"
        "pcb1,train,normal,pcb1/Data/Images/Normal/0000.JPG,\n"
        "pcb1,test,anomaly,pcb1/Data/Images/Anomaly/000.JPG,x\n"
        "candle,train,normal,candle/Data/Images/Anomaly/001.JPG,\n",
        encoding="utf-8",
    )
    assert looks_like_mvtec(tmp_path)
    data = read_mvtec(tmp_path)
    assert [(s.image.name, s.labels[:1], len(s.boxes), s.split, s.group) for s in data.samples] == [
        ("0000.JPG", (), 0, "train", "pcb1"),
        ("000.JPG", ("bent",), 3, "test", "pcb1"),
        ("001.JPG", ("anomaly",), 3, "", "pcb1"),
        ("002.JPG", ("anomaly",), 3, "", "pcb1"),
    ]
    assert [(fault.kind, fault.image and fault.image.name) for fault in data.faults] == [
        ("several-classes", "001.JPG")
    ]


def test_other_folders_are_refused(tmp_path: Path) -> None:
    draw(tmp_path / "images" / "1.png")
    assert not looks_like_mvtec(tmp_path)
    with pytest.raises(ConfigError, match="neither train/good nor Data/Images"):
        read_mvtec(tmp_path)
