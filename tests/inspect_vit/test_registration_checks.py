"""What of a board does not match tells missing copper from another product."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.errors import RegistrationError, WrongPoseError
from inspect_vit.image_io import read_image
from inspect_vit.registration import prepare, register
from inspect_vit.registration_checks import check_poses, check_product, lacks_copper
from inspect_vit.registration_fit import Cells

SIDE = 20
Mask = NDArray[np.bool_]


def cells(*, odd: Mask, shown: Mask | None = None) -> Cells:
    """A board that matches but for the cells in `odd`; where it is not shown, it is bare."""
    full = np.ones((SIDE, SIDE), np.bool_)
    shown = full if shown is None else shown
    match = np.where(odd, 0.1, 0.95) * shown
    sums = np.zeros((SIDE, SIDE, 2))
    return Cells(32, np.zeros((SIDE, SIDE, 2, 2)), sums, match, full, full, shown, 0.01)


def block(side: int) -> Mask:
    mask = np.zeros((SIDE, SIDE), np.bool_)
    low = (SIDE - side) // 2
    mask[low : low + side, low : low + side] = True
    return mask


def test_other_copper_in_one_piece_is_another_product() -> None:
    with pytest.raises(RegistrationError, match=r"on the same fixture: over 3[0-9]% of the board"):
        check_product(cells(odd=block(12)))


def test_other_copper_in_one_piece_is_found_though_some_of_it_matches_by_chance() -> None:
    chance = np.random.default_rng(0).random((SIDE, SIDE)) < 0.25
    with pytest.raises(RegistrationError, match="another product"):
        check_product(cells(odd=block(14) & ~chance))


@pytest.mark.parametrize("odd", [block(8), np.random.default_rng(1).random((SIDE, SIDE)) < 0.3])
def test_a_smaller_piece_and_defects_all_over_are_no_other_product(odd: Mask) -> None:
    check_product(cells(odd=odd))


def test_bare_places_are_no_other_product_but_a_lack() -> None:
    bare = cells(odd=np.zeros((SIDE, SIDE), np.bool_), shown=~block(16))
    check_product(bare)
    assert bare.share() < 0.5
    assert lacks_copper(bare)


def test_a_board_that_shows_other_things_or_next_to_nothing_lacks_no_copper() -> None:
    half = np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 2 == 0
    assert not lacks_copper(cells(odd=half))
    assert not lacks_copper(cells(odd=np.zeros((SIDE, SIDE), np.bool_), shown=block(5)))


def test_a_cause_names_what_matched_as_posted_and_what_is_wanted(project: Path) -> None:
    golden = read_image(project / "data_samples" / "board_01_temp.png")[0]
    level = next(iter(prepare(golden).levels.values()))
    turned = np.ascontiguousarray(level[::-1, ::-1])
    share = 0.8
    odd = np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 10 >= 10 * share
    none = cells(odd=np.zeros((SIDE, SIDE), np.bool_))

    def told(upright: float) -> str:
        with pytest.raises(WrongPoseError) as found:
            check_poses(level, turned, (1.0,), lambda pose: (None, none), upright, cells(odd=odd))  # type: ignore[arg-type, return-value]
        return str(found.value)

    # Far off its place a match may be chance: it weighs as the least that is wanted, and is told as it is.
    assert "100% of the board's structure matches that way and 80% as it was posted, though far off" in told(
        0.55
    )
    assert "(wanted at least 55%)" in told(0.55)
    assert "and 80% as it was posted (wanted" in told(share)


def test_another_product_is_told_by_the_share_that_was_measured(project: Path) -> None:
    pictures = [
        read_image(project / "data_samples" / f"{name}_temp.png")[0] for name in ("board_01", "board_04")
    ]
    with pytest.raises(RegistrationError, match="another product or another side") as found:
        register(pictures[0], pictures[1])
    measured = re.search(r": ([0-9.]+)% of the board's structure matches the reference", str(found.value))
    assert measured is not None and float(measured[1]) < 55.0
    assert "(wanted at least 55%)" in str(found.value)
