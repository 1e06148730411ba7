"""Sets drawn by chance, written in each format and read again; and the same with damaged files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from matplotlib.path import Path as Curve
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.formats.cuts import one_ring, split_cuts
from training.formats.cvat import read_cvat, write_cvat
from training.formats.dataset import DataSet, Fault
from training.formats.labelme import read_labelme, write_labelme
from training.formats.outlines import pixel_outline
from training.formats.voc import read_voc, write_voc
from training.formats.yolo import read_yolo, write_yolo

SameOutline = Callable[[Shape | None, Shape | None, float], bool]


@dataclass(frozen=True)
class Case:
    """What one format promises."""

    write: Callable[..., list[Path]]
    read: Callable[[Path], DataSet]
    within_px: float
    """How near the points of polygons come back."""
    lost: frozenset[str]
    """Kinds of what it says to be lost of such a set."""
    polygons_as_pixels: bool = False
    pixels_as_polygons: bool = False


CASES = {
    "yolo": Case(
        write_yolo,
        read_yolo,
        1e-9,
        frozenset({"renamed", "mixed-labels", "outline-cut"}),
        pixels_as_polygons=True,
    ),
    "voc": Case(
        write_voc, read_voc, 0.0, frozenset({"renamed", "outline-as-pixels"}), polygons_as_pixels=True
    ),
    "labelme": Case(write_labelme, read_labelme, 0.0, frozenset({"renamed", "outline-cut"})),
    "cvat": Case(write_cvat, read_cvat, 0.0, frozenset({"renamed", "outline-cut"})),
}
every_format = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@every_format
@pytest.mark.parametrize("seed", range(8))
def test_a_set_comes_back_as_it_was(
    tmp_path: Path, case: Case, seed: int, mixed_set: Callable[[int], DataSet], same_outline: SameOutline
) -> None:
    """Boxes to the bit; outlines as they were or, where the format has but one kind, exactly their pixels."""
    data = mixed_set(seed)
    lost: list[Fault] = []
    written = case.write(data, tmp_path / "out", lost=lost)
    assert all(path.is_file() for path in written)
    back = case.read(tmp_path / "out")
    assert back.faults == ()
    assert back.class_names == data.class_names
    after = {sample.image.read_bytes(): sample for sample in back.samples}
    assert len(after) == len(data.samples)
    for sample in data.samples:
        twin = after[sample.image.read_bytes()]
        assert (twin.labels, twin.split) == (sample.labels, sample.split)
        np.testing.assert_array_equal(twin.boxes, sample.boxes)
        for shape, same in zip(sample.masks or (), twin.masks or (), strict=True):
            is_pixels = shape is not None and shape.runs is not None
            if shape and (case.pixels_as_polygons if is_pixels else case.polygons_as_pixels):
                assert same is not None
                np.testing.assert_array_equal(same.mask(120, 160), shape.mask(120, 160))
            else:
                assert same_outline(shape, same, case.within_px)
    assert {fault.kind for fault in lost} <= case.lost


@every_format
def test_damaged_files_are_named_or_refused(
    tmp_path: Path,
    case: Case,
    mixed_set: Callable[[int], DataSet],
    damaged: Callable[[Path, int, int], Iterator[Path]],
) -> None:
    out = tmp_path / "out"
    case.write(mixed_set(3), out, lost=[])
    whole = case.read(out)
    for path in damaged(out, 7, 40):
        with contextlib.suppress(ConfigError):
            data = case.read(out)
            assert data.faults or len(data.samples) == len(whole.samples), path
    assert case.read(out).faults == ()


def board(path: Path, right: int) -> Sample:
    """A picture as wide as the one box in it, so that mixed up labels are seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (right, 100)).save(path)
    return Sample(path.resolve(), np.array([[0, 0, right, 5]], np.float32), ("open",))


@every_format
def test_pictures_of_one_name_keep_labels_of_their_own(tmp_path: Path, case: Case) -> None:
    names = ("a/x.png", "b/x.png", "x.bmp", "X.tif")
    samples = tuple(board(tmp_path / "in" / name, 100 + i) for i, name in enumerate(names))
    lost: list[Fault] = []
    case.write(DataSet(samples, ("open",), root=tmp_path / "in"), tmp_path / "out", lost=lost)
    back = case.read(tmp_path / "out")
    assert back.faults == ()
    assert sorted(sample.boxes[0, 2] for sample in back.samples) == [100, 101, 102, 103]
    assert len({sample.image.stem.lower() for sample in back.samples}) == 4
    assert [fault.kind for fault in lost].count("renamed") == 3


@every_format
def test_pictures_can_stay_where_they_are(tmp_path: Path, case: Case) -> None:
    sample = board(tmp_path / "in" / "platine ä.png", 50)
    lost: list[Fault] = []
    case.write(
        DataSet((sample, sample), ("open",), root=tmp_path), tmp_path / "out", copy_pictures=False, lost=lost
    )
    assert [back.image for back in case.read(tmp_path / "out").samples] == [sample.image]
    assert not [path for path in (tmp_path / "out").rglob("*.png") if not path.is_symlink()]
    with pytest.raises(ConfigError, match="not an empty folder"):
        case.write(DataSet((sample,), ("open",), root=tmp_path), tmp_path / "out")


def test_what_other_programs_read_of_yolo_covers_the_same_pixels(
    tmp_path: Path, mixed_set: Callable[[int], DataSet]
) -> None:
    """By the text alone and another library, which fills by the non-zero rule."""
    data = mixed_set(11)
    write_yolo(data, tmp_path / "out")
    tree = yaml.safe_load((tmp_path / "out" / "data.yaml").read_text(encoding="utf-8"))
    assert tuple(tree["names"].values()) == data.class_names
    y, x = np.mgrid[:120, :160] + 0.5 + 1e-7  # off the cuts, which may run through centres of pixels
    checked = 0
    for sample in data.samples:
        name = sample.image.name if sample.image.parent.name != "b" else "b_board 1.png"
        path = (tmp_path / "out" / "labels" / sample.split / name).with_suffix(".txt")
        for line, shape in zip(path.read_text().splitlines(), sample.masks or (), strict=True):
            values = np.array(line.split()[1:], float)
            if shape is None:
                assert len(values) == 4
                continue
            ring = values.reshape(-1, 2) * (160, 120)
            inside = Curve(np.vstack([ring, ring[:1]])).contains_points(np.stack([x.ravel(), y.ravel()], 1))
            np.testing.assert_array_equal(inside.reshape(120, 160), shape.mask(120, 160))
            checked += 1
    assert checked > 10


def test_rings_joined_by_cuts_and_parted_anywhere_keep_every_pixel() -> None:
    """Speckled pixels, whose outlines touch at corners and share lines, from any vertex on."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        mask = np.pad(rng.random(rng.integers(2, 14, 2)) < rng.uniform(0.1, 0.95), 2)
        height, width = mask.shape
        outline = pixel_outline(mask[2:], (0, 2))
        if not outline:
            continue
        ring, exact = one_ring(outline, (width, height))
        parted = split_cuts(np.roll(ring, int(rng.integers(len(ring))), 0))
        for polygons in (outline, (Polygon(ring),), parted):
            np.testing.assert_array_equal(Shape(polygons=polygons).mask(height, width), mask)
        assert exact


def test_a_cut_through_the_centres_of_pixels_stays_exact(same_outline: SameOutline) -> None:
    square = np.array([[10.0, 10], [20, 10], [20, 20], [10, 20]])
    shape = Shape(polygons=(Polygon(square), Polygon(square + 33), Polygon(square + np.array([30, 0]))))
    ring, exact = one_ring(shape.polygons, (80, 80))
    assert exact
    assert same_outline(Shape(polygons=split_cuts(ring)), shape, 0.0)
