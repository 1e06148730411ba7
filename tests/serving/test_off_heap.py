"""Arrays that are kept for long are given back as they came, and lie where nothing else does."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from serving.off_heap import LEAST_BYTES, OffHeap


@pytest.fixture
def maps() -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    shapes = {"4": (1, 30, 40), "16": (2, 8, 10), "all": (30, 40), "none": (0, 3)}
    return {name: rng.random(shape, np.float32) for name, shape in shapes.items()}


def test_arrays_come_back_as_they_were_and_are_copies(maps: dict[str, NDArray[np.float32]]) -> None:
    maps["turned"] = maps["all"].T
    kept = OffHeap(maps)
    first = {name: values.copy() for name, values in maps.items()}
    for values in maps.values():
        values[...] = -1
    assert list(kept.arrays()) == list(first)
    for name, values in kept.arrays().items():
        assert values.dtype == np.float32
        assert np.array_equal(values, first[name]), name


def test_what_was_read_outlives_what_kept_it(maps: dict[str, NDArray[np.float32]]) -> None:
    kept = OffHeap(maps)
    read = kept.arrays()["16"]
    del kept
    gc.collect()
    assert np.array_equal(read, maps["16"])


def test_small_maps_count_their_pages(maps: dict[str, NDArray[np.float32]]) -> None:
    assert OffHeap({"32": np.ones((2, 3), np.float32)}).size == LEAST_BYTES
    assert OffHeap({"4": np.ones((100, 100), np.float32)}).size == 40_000


def test_the_pages_are_no_part_of_the_heap_and_go_back_when_dropped() -> None:
    """16 MB, kept and dropped: the process's private memory grows by little, the shared part by all."""

    def memory_kb(kind: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))

    values = np.ones((400, 100, 100), np.float32)
    before = memory_kb("RssShmem")
    kept = [OffHeap({"4": each}) for each in values]
    assert memory_kb("RssShmem") - before >= 15_000
    del kept
    assert memory_kb("RssShmem") - before <= 100
