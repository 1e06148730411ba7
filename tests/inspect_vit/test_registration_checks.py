"""What of a board does not match tells missing copper from another product."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.errors import RegistrationError
from inspect_vit.registration_checks import check_product, lacks_copper
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
