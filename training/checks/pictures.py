"""What takes the pixels of a labelled picture: all from one decoding of it, in worker processes."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from inspect_vit.results import Sample
from training.checks.alignment import Picture
from training.checks.descriptors import describe_boxes
from training.checks.differences import PairFacts, compare_pair, to_grey
from training.checks.marks import find_painted_boxes
from training.checks.orientation import RotationFacts, try_stored_boxes

THUMB_SIDE_PX = 256
"""Longest side of the small picture that is kept of each: 64 KB, by which near duplicates are found."""
CHUNK = 4
"""Pictures handed to a worker at once."""
POOL_FROM = 16
"""Fewer pictures than this are not worth starting processes for."""


@dataclass(frozen=True)
class PictureFacts:
    """What one picture showed. Without pixels (`error`), everything else is empty."""

    error: str = ""
    """Why it cannot be read."""
    width: int = 0
    height: int = 0
    orientation: int = 1
    """EXIF, 1..8; all else here is on the upright picture."""
    digest: str = ""
    """Of the pixels: equal for equal pictures, however they are stored."""
    thumb: Picture = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    """Grey, at most THUMB_SIDE_PX a side."""
    faults: tuple[str, ...] = ()
    """Why it would not be inspected."""
    warnings: tuple[str, ...] = ()
    reference_error: str = ""
    reference_digest: str = ""
    reference_faults: tuple[str, ...] = ()
    reference_size: tuple[int, int] = (0, 0)
    """(width, height)."""
    pair: PairFacts | None = None
    """None without a readable reference of the same size."""
    rotation: RotationFacts | None = None
    """None for a picture that EXIF does not turn, or without boxes."""
    painted: tuple[int, ...] = ()
    """Numbers of the boxes whose frame is painted into the picture."""
    descriptors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """(N, D), one for each box."""


@dataclass(frozen=True)
class _Read:
    """One decoded picture."""

    rgb: Picture
    digest: str
    orientation: int
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def examine_all(
    samples: Sequence[Sample], *, workers: int | None = None
) -> Iterator[tuple[int, PictureFacts]]:
    """(number of the sample, its facts), in the order in which they are done; each picture is decoded once.

    A picture on which a decoder dies, not only complains, is named like one that cannot be read.

    Args:
        workers: processes; default one per core this process may use. Each holds a board, its reference and
            some maps of their size: about 15 bytes a pixel.
    """
    count = num_workers(workers)
    # Boards of one reference follow each other, so that a worker has it already.
    order = sorted(range(len(samples)), key=lambda number: (str(samples[number].reference or ""), number))
    bare = [replace(sample, masks=None) for sample in samples]
    if count == 1 or len(samples) < POOL_FROM:
        for number in order:
            yield number, examine(bare[number])
        return
    chunks = [order[start : start + CHUNK] for start in range(0, len(order), CHUNK)]
    unfinished: list[int] = []
    with new_pool(count) as pool:
        waiting: dict[Future[list[PictureFacts]], list[int]] = {}
        try:
            for chunk in chunks:
                waiting[pool.submit(_examine_several, [bare[number] for number in chunk])] = chunk
            for future in as_completed(waiting):
                try:
                    yield from zip(waiting[future], future.result(), strict=True)
                except BrokenProcessPool:
                    unfinished += waiting[future]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    yield from _one_at_a_time(bare, unfinished)


def num_workers(workers: int | None) -> int:
    """The number asked for, else one per core that this process may use."""
    return workers or (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def new_pool(workers: int) -> ProcessPoolExecutor:
    """Processes started afresh rather than forked: a fork of a process with threads may hang."""
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=cv2.setNumThreads, initargs=(1,)
    )


def _one_at_a_time(samples: Sequence[Sample], numbers: Sequence[int]) -> Iterator[tuple[int, PictureFacts]]:
    """After a worker died: which picture was it?"""
    pool: Executor | None = None
    try:
        for number in numbers:
            pool = pool or new_pool(1)
            try:
                yield number, pool.submit(examine, samples[number]).result()
            except BrokenProcessPool:
                yield (
                    number,
                    PictureFacts(error="the process that read it died, of the file or for want of memory"),
                )
                pool.shutdown()
                pool = None
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _examine_several(samples: list[Sample]) -> list[PictureFacts]:
    return [examine(sample) for sample in samples]


def examine(sample: Sample) -> PictureFacts:
    """Decode a board, and its reference unless that was the last one, and take from them what checks need."""
    board = _read(sample.image)
    if isinstance(board, str):
        return PictureFacts(error=board)
    grey = to_grey(board.rgb)
    height, width = grey.shape
    facts = PictureFacts(
        width=width,
        height=height,
        orientation=board.orientation,
        digest=board.digest,
        thumb=_thumb(grey),
        faults=board.faults,
        warnings=board.warnings,
    )
    pair = None
    if sample.reference is not None:
        reference = _read_reference(sample.reference)
        if isinstance(reference, str):
            facts = replace(facts, reference_error=reference)
        else:
            facts = replace(
                facts,
                reference_digest=reference.digest,
                reference_faults=reference.faults,
                reference_size=(reference.rgb.shape[1], reference.rgb.shape[0]),
            )
            if reference.rgb.shape == board.rgb.shape:
                pair = compare_pair(board.rgb, reference.rgb, sample.boxes)
    rotation = None
    if board.orientation != 1 and len(sample.boxes):
        rotation = try_stored_boxes(sample.boxes, (width, height), board.orientation, pair)
    return replace(
        facts,
        pair=pair,
        rotation=rotation,
        painted=tuple(find_painted_boxes(board.rgb, sample.boxes)),
        descriptors=describe_boxes(grey, sample.boxes),
    )


def _read(path: Path) -> _Read | str:
    """The picture, or why it cannot be read."""
    try:
        rgb, intake = read_image(path)
    except ImageError as error:
        return str(error)
    except MemoryError:
        return "it does not fit into this machine's memory"
    digest = hashlib.blake2b(np.int64(rgb.shape[1]).tobytes(), digest_size=16)
    digest.update(np.ascontiguousarray(rgb).data)
    return _Read(rgb, digest.hexdigest(), intake.orientation, intake.errors, intake.warnings)


@lru_cache(maxsize=1)
def _read_reference(path: Path) -> _Read | str:
    return _read(path)


def _thumb(grey: Picture) -> Picture:
    scale = min(THUMB_SIDE_PX / max(grey.shape), 1.0)
    size = (max(round(grey.shape[1] * scale), 1), max(round(grey.shape[0] * scale), 1))
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
