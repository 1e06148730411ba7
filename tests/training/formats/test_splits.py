"""Splits that never cut a board in two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.splits import board_of, split_as_stated, split_by_group


def sample(name: str, *, group: str = "", reference: str | None = None, split: str = "") -> Sample:
    golden = Path(reference) if reference else None
    return Sample(Path(name), np.zeros((0, 4), np.float32), (), reference=golden, group=group, split=split)


def test_without_groups_a_shared_reference_is_the_board_and_a_picture_its_own() -> None:
    pool = [sample(f"{name}{i}.png", reference=f"{name}.png") for name in "abc" for i in range(3)]
    pool += [sample("solo.png"), sample("solo.png")]
    training, validation = split_by_group(pool, fraction=0.4)
    assert validation and len(training) + len(validation) == len(pool)
    assert not {board_of(s) for s in training} & {board_of(s) for s in validation}
    assert {s.image.name[0] for s in training}.isdisjoint(s.image.name[0] for s in validation)


def test_the_stated_split_is_taken_and_test_stays_out() -> None:
    pool = [sample(f"{i}.png", split=split) for i, split in enumerate(("train", "val", "test", "train", ""))]
    training, validation = split_as_stated(pool)
    assert [s.image.name for s in training] == ["0.png", "3.png"]
    assert [s.image.name for s in validation] == ["1.png"]


def test_a_stated_split_that_cuts_a_board_is_refused() -> None:
    pool = [sample("1.png", group="A", split="train"), sample("2.png", group="A", split="val")]
    with pytest.raises(ConfigError, match="one board in several splits: A"):
        split_as_stated(pool)
    with pytest.raises(ConfigError, match=r"states \{'train': 1, 'none': 1\}"):
        split_as_stated([sample("1.png", split="train"), sample("2.png")])
