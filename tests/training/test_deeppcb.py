"""The DeepPCB reader on small sets written here and on the real one, and the split by board group."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.deeppcb import CLASS_NAMES, TEST_ONLY_GROUPS, read_deeppcb
from training.formats.splits import split_by_group

FIRST = "group00041/00041/00041000.jpg group00041/00041_not/00041000.txt"
SECOND = "group12000/12000/12000001.jpg group12000/12000_not/12000001.txt"


def write_set(root: Path, lines: list[str], labels: dict[str, str]) -> Path:
    """A DeepPCB of empty pictures: test.txt with `lines`, and label files of the given text."""
    data = root / "PCBData"
    for line in (FIRST, SECOND):
        picture, label = (data / part for part in line.split())
        for folder in (picture.parent, label.parent):
            folder.mkdir(parents=True, exist_ok=True)
        for end in ("test", "temp"):
            picture.with_name(f"{picture.stem}_{end}.jpg").touch()
        label.write_text(labels.get(label.name, ""), encoding="utf-8")
    (data / "test.txt").write_text("\n".join(lines), encoding="utf-8")
    return data


@pytest.mark.parametrize("inside", [False, True])
def test_samples_come_in_list_order_with_pictures_boxes_and_groups(tmp_path: Path, inside: bool) -> None:
    data = write_set(
        tmp_path, [SECOND, FIRST, FIRST], {"00041000.txt": "1 2 30 40 1\n\n5 6 70 80 6", "12000001.txt": ""}
    )
    samples = read_deeppcb(data if inside else tmp_path, "test")
    assert [sample.group for sample in samples] == ["12000", "00041", "00041"]
    assert samples[0].boxes.shape == (0, 4)
    assert samples[0].labels == ()
    assert samples[1].image == data / "group00041/00041/00041000_test.jpg"
    assert samples[1].reference == data / "group00041/00041/00041000_temp.jpg"
    np.testing.assert_array_equal(samples[1].boxes, [[1.5, 2.5, 30.5, 40.5], [5.5, 6.5, 70.5, 80.5]])
    assert samples[1].labels == ("open", "pin-hole")
    assert samples[1].origin == f"{data / 'test.txt'}:2"
    assert samples[1].boxes.dtype == np.float32


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("1 2 3 4 1\n1 2 3 4", r"00041000\.txt:2: '1 2 3 4', wanted five whole numbers"),
        ("1,2,3,4,1", r"00041000\.txt:1: '1,2,3,4,1', wanted five whole numbers"),
        ("1 2 3 4.5 1", r"00041000\.txt:1: .* wanted five whole numbers"),
        ("1 2 3 4 7", r"00041000\.txt:1: unknown type 7; known are 1 open, 2 short"),
        ("1 2 3 4 0", r"00041000\.txt:1: unknown type 0"),
        ("5 2 5 4 1", r"00041000\.txt:1: empty box '5 2 5 4 1'"),
        ("-1 2 5 4 1", r"00041000\.txt:1: empty box"),
    ],
)
def test_a_bad_label_line_is_named(tmp_path: Path, label: str, message: str) -> None:
    write_set(tmp_path, [FIRST], {"00041000.txt": label})
    with pytest.raises(ConfigError, match=message):
        read_deeppcb(tmp_path, "test")


def test_a_bad_list_line_is_named(tmp_path: Path) -> None:
    write_set(tmp_path, [FIRST, "group00041/00041/00041000.jpg"], {})
    with pytest.raises(ConfigError, match=r"test\.txt:2: .* has 1 fields"):
        read_deeppcb(tmp_path, "test")


def test_missing_files_are_named_with_the_line_that_wants_them(tmp_path: Path) -> None:
    data = write_set(tmp_path, [FIRST, SECOND], {})
    (data / "group12000/12000/12000001_temp.jpg").unlink()
    with pytest.raises(ConfigError, match=r"test\.txt:2: there is no picture .*12000001_temp\.jpg"):
        read_deeppcb(tmp_path, "test")
    (data / "group00041/00041_not/00041000.txt").unlink()
    with pytest.raises(ConfigError, match=r"cannot read .*00041000\.txt .*named in .*test\.txt:1"):
        read_deeppcb(tmp_path, "test")
    with pytest.raises(ConfigError, match=r"trainval\.txt .*give the folder that holds PCBData"):
        read_deeppcb(tmp_path, "trainval")
    with pytest.raises(ConfigError, match="no split 'train'"):
        read_deeppcb(tmp_path, "train")  # type: ignore[arg-type]


def test_a_list_that_is_not_text_is_refused(tmp_path: Path) -> None:
    data = write_set(tmp_path, [FIRST], {})
    (data / "test.txt").write_bytes(b"group\xff")
    with pytest.raises(ConfigError, match="byte 5 is not UTF-8"):
        read_deeppcb(tmp_path, "test")


def test_the_official_split(deeppcb_root: Path) -> None:
    training, test = read_deeppcb(deeppcb_root, "trainval"), read_deeppcb(deeppcb_root, "test")
    assert (len(training), len(test)) == (1000, 500)
    assert [sum(len(sample.labels) for sample in split) for split in (training, test)] == [6873, 3140]
    assert set(Counter(label for sample in test for label in sample.labels)) == set(CLASS_NAMES)
    assert {s.group for s in test} - {s.group for s in training} == TEST_ONLY_GROUPS
    assert sum(sample.group in TEST_ONLY_GROUPS for sample in test) == 332


def samples(**sizes: int) -> list[Sample]:
    return [
        Sample(Path(f"{group}{number}.jpg"), np.zeros((0, 4), np.float32), (), group=group)
        for number in range(max(sizes.values()))
        for group, size in sizes.items()
        if number < size
    ]


def test_groups_held_back_by_name_are_never_cut() -> None:
    pool = samples(a=5, b=3, c=2)
    training, validation = split_by_group(pool, groups=["b"])
    assert {sample.group for sample in training} == {"a", "c"}
    assert [sample.image.name for sample in validation] == ["b0.jpg", "b1.jpg", "b2.jpg"]
    assert len(training) + len(validation) == len(pool)


@pytest.mark.parametrize("seed", range(6))
def test_a_fraction_takes_whole_groups_near_the_share(seed: int) -> None:
    pool = samples(a=10, b=10, c=10, d=10, e=10)
    training, validation = split_by_group(pool, fraction=0.4, seed=seed)
    assert len(validation) == 20
    assert not {sample.group for sample in training} & {sample.group for sample in validation}
    assert split_by_group(pool, fraction=0.4, seed=seed)[1] == validation


def test_a_small_fraction_still_takes_the_smallest_group_and_a_large_one_leaves_a_group() -> None:
    pool = samples(a=50, b=40, c=30)
    assert {sample.group for sample in split_by_group(pool, fraction=0.01)[1]} == {"c"}
    assert split_by_group(pool, fraction=0.99)[0]


def test_impossible_splits_are_refused() -> None:
    pool = samples(a=2, b=2)
    with pytest.raises(ConfigError, match="give either"):
        split_by_group(pool)
    with pytest.raises(ConfigError, match="give either"):
        split_by_group(pool, groups=["a"], fraction=0.5)
    with pytest.raises(ConfigError, match="no sample is of group x; groups are a, b"):
        split_by_group(pool, groups=["x"])
    with pytest.raises(ConfigError, match="all groups, a, b; leave one"):
        split_by_group(pool, groups=["a", "b"])
    with pytest.raises(ConfigError, match="between 0 and 1"):
        split_by_group(pool, fraction=1.0)
    with pytest.raises(ConfigError, match="needs two groups; there is a"):
        split_by_group(samples(a=4), fraction=0.5)
