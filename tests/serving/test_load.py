"""The soak tells a leak from noise, and refuses to judge from too little."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.load import FLAT_MB, WARM_UP_S, Usage, judge


def samples(mb_per_1000: float, *, descriptors_per_1000: float = 0.0, num: int = 240) -> list[Usage]:
    """A sample every 10 s of a server that fills for the warm-up, with noise of 3 MB and peaks of 50."""
    rng = np.random.default_rng(0)
    done = np.arange(num) * 25
    memory = 800 + mb_per_1000 * done / 1000 + rng.normal(0, 3, num)
    seconds = 10.0 * np.arange(num)
    memory -= 200 * np.clip(1 - seconds / WARM_UP_S, 0, 1)
    memory[rng.choice(num, 5, replace=False)] += 50
    files = np.round(23 + descriptors_per_1000 * done / 1000 + rng.integers(0, 2, num))
    return [
        Usage(float(s), int(n), float(mb), int(fd))
        for s, n, mb, fd in zip(seconds, done, memory, files, strict=True)
    ]


def test_noise_peaks_and_warming_up_are_no_leak() -> None:
    is_flat, words = judge(samples(0.0))
    assert is_flat, words
    assert words.count("flat") == 2


@pytest.mark.parametrize("leak", [2 * FLAT_MB, 20.0])
def test_a_leak_of_memory_is_found_and_its_size_told(leak: float) -> None:
    is_flat, words = judge(samples(leak))
    assert not is_flat
    first = words.splitlines()[0]
    assert "NOT FLAT" in first
    assert float(first.split(":")[1].split()[0]) == pytest.approx(leak, abs=1.0)


def test_a_leak_of_descriptors_is_found() -> None:
    is_flat, words = judge(samples(0.0, descriptors_per_1000=4.0))
    assert not is_flat
    assert "NOT FLAT" in words.splitlines()[1]


def test_a_short_soak_judges_nothing() -> None:
    with pytest.raises(ValueError, match="wanted at least 10; soak for longer"):
        judge(samples(0.0, num=70))
