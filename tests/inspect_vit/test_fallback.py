"""A device whose memory is short: smaller tiles, said so; and a clear end where they do not help."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.attribution import board_attention, inspect_with_attention
from inspect_vit.errors import OutOfMemoryError
from inspect_vit.inspector import Inspector
from inspect_vit.report import inspection_report
from inspect_vit.results import IntakeReport

Picture = NDArray[np.uint8]
INTAKE = IntakeReport("PNG", "RGB", 8, 390, 250, warnings=("dim",))


@contextmanager
def memory_for(
    inspector: Inspector, num_pixels: int, *, seen: Callable[[Tensor], None] = lambda _: None
) -> Iterator[None]:
    """As on a device that has memory for boards of so many pixels: what the allocator raises is raised."""

    def check(_: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        board = inputs[0]
        seen(board)
        if board.shape[-1] * board.shape[-2] > num_pixels:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    # The first layer that sees the board, whichever way the model is asked.
    hook = inspector.model.embeds[0].register_forward_pre_hook(check)
    try:
        yield
    finally:
        hook.remove()


def with_tiles(inspector: Inspector, tile_px: int) -> Inspector:
    other = copy.copy(inspector)
    other.tile_px = tile_px
    return other


@pytest.fixture
def board() -> Picture:
    coarse = np.random.default_rng(0).integers(0, 2, (32, 49), np.uint8) * 200 + 20
    return np.repeat(np.kron(coarse, np.ones((8, 8), np.uint8))[:250, :390, None], 3, 2)


def test_where_memory_is_short_the_answer_is_that_of_smaller_tiles_and_says_so(
    small_inspector: Inspector, board: Picture
) -> None:
    inspector = with_tiles(small_inspector, 512)
    with memory_for(inspector, 256 * 256):
        result = inspector.inspect(board)
    assert result.warnings == (
        "the device had too little memory for tiles of up to 512 px: inspected in tiles of up to 256 px",
    )
    wanted = with_tiles(small_inspector, 256).inspect(board)
    np.testing.assert_array_equal(result.defect_map, wanted.defect_map)
    assert result.defects == wanted.defects
    assert result.verdict == wanted.verdict
    assert wanted.warnings == ()
    told = inspection_report(result, inspection_id="1", intake=INTAKE, links={})["intake"]["warnings"]
    assert told == ["dim", *result.warnings]
    with memory_for(inspector, 256 * 256):
        maps = inspector.attention(board), board_attention(inspector, board, reference=None)
    smaller = with_tiles(small_inspector, 256)
    for found, same in zip(
        maps, (smaller.attention(board), board_attention(smaller, board, reference=None)), strict=True
    ):
        for level in ("4", "16", "32"):
            np.testing.assert_array_equal(found[level], same[level])


def test_each_size_is_tried_once_and_only_if_it_cuts_the_board_otherwise(
    small_inspector: Inspector, board: Picture
) -> None:
    sides: list[int] = []
    inspector = with_tiles(small_inspector, 2048)
    with (
        memory_for(inspector, 0, seen=lambda tensor: sides.append(tensor.shape[-1])),
        pytest.raises(OutOfMemoryError, match="tiles of up to 64 px, the smallest for this board"),
    ):
        inspector.inspect(board)
    # 390 px is padded to 416. 2048, 1024 and 512 px hold it whole; 64 px is twice the model's 32 px.
    assert sides[0] == 416
    assert sides == sorted(set(sides), reverse=True)
    assert sides[-1] == 64


def test_a_failed_try_holds_no_memory_while_the_next_one_runs(
    small_inspector: Inspector, board: Picture
) -> None:
    held: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    def note(tensor: Tensor) -> None:
        alive.append(sum(each() is not None for each in held))
        held.append(weakref.ref(tensor))

    inspector = with_tiles(small_inspector, 512)
    with memory_for(inspector, 256 * 256, seen=note):
        inspector.inspect(board)
    # One try in one piece, then two tiles.
    assert len(alive) == 3
    assert alive[1] == 0


def test_verdict_and_attention_in_one_pass_fall_back_to_two(
    small_inspector: Inspector, board: Picture
) -> None:
    inspector = with_tiles(small_inspector, 512)
    with memory_for(inspector, 256 * 256):
        result, attention = inspect_with_attention(inspector, board)
    assert result.warnings
    np.testing.assert_array_equal(
        attention["16"], board_attention(with_tiles(small_inspector, 256), board, reference=None)["16"]
    )
