"""Settings of glibc's allocator for processes that run the network on a CPU."""

from __future__ import annotations

KEEP_FREED_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_MMAP_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "200000000",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Environment of a child process: it keeps freed memory, in large pages, instead of giving it back.

Activations come and go many times a second, and page faults cost time (benchmarks/step.py and request.py).
"""
