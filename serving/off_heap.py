"""Arrays that are kept for long, away from those that come and go with every board."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES = 16_384
"""What an entry counts at least: it has pages of its own, and the system allows some 65 000 such places."""


class OffHeap:
    """Copies of float32 arrays in pages of their own, which the system gets back when this is dropped.

    Kept on the heap, between the activations of the network, they would leave holes too small for the next
    board's: a process that kept 16 MB of maps so grew by 115 MB, and by 2 MB with their numbers in pages.
    The arrays' headers lie on the heap too, hence no array is kept.
    """

    def __init__(self, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        self._shapes = {name: values.shape for name, values in arrays.items()}
        num_bytes = 4 * sum(values.size for values in arrays.values())
        self._pages = mmap.mmap(-1, max(num_bytes, 1))
        self.size = max(num_bytes, LEAST_BYTES)
        for values in arrays.values():
            self._pages.write(np.asarray(values, np.float32).tobytes())

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Views of what was given; they keep the pages."""
        views, start = {}, 0
        for name, shape in self._shapes.items():
            num = math.prod(shape)
            views[name] = np.frombuffer(self._pages, np.float32, num, start).reshape(shape)
            start += 4 * num
        return views
