"""Boards that do not fit into the device's memory in one try: they are inspected in smaller tiles.

A GPU is shared: what fitted a minute ago need not fit now. Smaller tiles need less and answer the same
question, with less context at the 32 px level, so a result says when it was made that way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from inspect_vit.errors import OutOfMemoryError
from inspect_vit.tiling import Plan, plan_tiles

WHAT_TO_DO = "end other programs that use it, or inspect on the CPU with device cpu"

logger = logging.getLogger(__name__)
T = TypeVar("T")


def with_less_memory(
    work: Callable[[Plan], T], height: int, width: int, *, step: int, tile_px: int
) -> tuple[T, tuple[str, ...]]:
    """Work on a board of that size, px, by the first plan for which the device's memory suffices.

    Returns:
        What the work returns, and a warning if it took smaller tiles than tile_px.

    Raises:
        OutOfMemoryError: it does not suffice for the smallest tiles either.
    """
    side_px = tile_px
    for side_px, plan in _plans(height, width, step=step, tile_px=tile_px):
        try:
            done = work(plan)
        except torch.OutOfMemoryError as error:
            # As text: a kept log record would keep the error, and with it the tensors of its traceback.
            logger.warning("out of memory with tiles of up to %d px: %s", side_px, str(error))
        else:
            if side_px == tile_px:
                return done, ()
            return done, (
                f"the device had too little memory for tiles of up to {tile_px} px: "
                f"inspected in tiles of up to {side_px} px",
            )
        release()
    raise OutOfMemoryError(
        f"the device has too little free memory for tiles of up to {side_px} px, "
        f"the smallest for this board; {WHAT_TO_DO}"
    )


def or_refuse(work: Callable[[], T]) -> T:
    """Do work that has no smaller tiles to fall back to.

    Raises:
        OutOfMemoryError: the device's memory does not suffice.
    """
    try:
        return work()
    except torch.OutOfMemoryError as error:
        logger.warning("out of memory: %s", str(error))
    release()
    raise OutOfMemoryError(f"the device has too little free memory for this; {WHAT_TO_DO}")


def release() -> None:
    """Give back what the allocator keeps. Call it outside the except clause: until that is left, the error's
    traceback keeps the tensors of the failed try alive."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _plans(height: int, width: int, *, step: int, tile_px: int) -> Iterator[tuple[int, Plan]]:
    """Side and plan, then those of its halves that cut the board otherwise.

    They end at two multiples of the model's size, because tiles must overlap by one.
    """
    plan = plan_tiles(height, width, step=step, tile_px=tile_px)
    yield tile_px, plan
    while (tile_px := step * (tile_px // 2 // step)) >= 2 * step:
        smaller = plan_tiles(height, width, step=step, tile_px=tile_px)
        if smaller.tiles != plan.tiles:
            plan = smaller
            yield tile_px, plan
