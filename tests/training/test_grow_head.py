"""A head that grows, is renamed and shrinks says the same of the classes that stay."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspect_vit.checkpoint import load_checkpoint
from inspect_vit.errors import ConfigError
from training.grow_head import grow, new_names

OLD = ("open", "short", "spur")


def test_old_classes_come_first_and_new_ones_after() -> None:
    names = new_names(OLD, add=["scratch", "stain"], rename={"spur": "burr"}, retire=["open"])
    assert list(names.items()) == [("short", "short"), ("burr", "spur"), ("scratch", None), ("stain", None)]


def test_a_retired_name_may_be_learnt_anew() -> None:
    assert new_names(OLD, add=["open"], retire=["open"])["open"] is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"add": ["spur"]}, "known to the model already"),
        ({"add": ["a", "a"]}, "twice"),
        ({"rename": {"spur": "short"}}, "twice"),
        ({"rename": {"burr": "x"}}, "cannot rename 'burr'"),
        ({"retire": ["burr"]}, "cannot retire 'burr'"),
        ({"rename": {"spur": "x"}, "retire": ["spur"]}, "renamed and retired"),
        ({"retire": list(OLD)}, "no class would be left"),
        ({"add": [" "]}, "blank"),
    ],
)
def test_changes_that_cannot_be_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        new_names(OLD, **change)  # type: ignore[arg-type]


def test_answers_about_classes_that_stay_do_not_change(tiny_checkpoint: Path) -> None:
    old, _ = load_checkpoint(tiny_checkpoint)
    before = old.config.class_names
    names = new_names(before, add=["scratch"], rename={"spur": "burr"}, retire=["open"])
    grown = grow(old, names)
    assert grown.config.class_names == ("short", "mousebite", "burr", "copper", "pin-hole", "scratch")
    board = torch.randint(256, (1, 1, 320, 320), dtype=torch.uint8, generator=torch.manual_seed(3))
    with torch.no_grad():
        one, other = old(board, board, torch.ones(1)), grown(board, board, torch.ones(1))
    origin = [before.index(name) for name in ("short", "mousebite", "spur", "copper", "pin-hole")]
    torch.testing.assert_close(other.head.centre_logits[:, :5], one.head.centre_logits[:, origin])
    torch.testing.assert_close(other.head.mask_logits[:, :5], one.head.mask_logits[:, origin])
    torch.testing.assert_close(other.head.distances, one.head.distances)
    assert torch.equal(other.gate_shares, one.gate_shares)
