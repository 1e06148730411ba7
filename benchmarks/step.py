"""Time a training step of nano: threads against processes, the C allocator's defaults against keeping memory.

    python benchmarks/step.py

Each line is a fresh set of processes that train on random crops at once; shown is the median time per crop.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from inspect_vit.allocator import KEEP_FREED_MEMORY

ROOT = Path(__file__).resolve().parent.parent
LARGE_PAGES = "GLIBC_TUNABLES"
KEEP = {name: value for name, value in KEEP_FREED_MEMORY.items() if name != LARGE_PAGES}


def work(threads: int, crops: int, steps: int) -> None:
    """One training process: prints its median seconds per step."""
    import torch

    from inspect_vit.config import ModelConfig, load_config
    from inspect_vit.model import HierarchicalViT

    torch.set_num_threads(threads)
    model = HierarchicalViT(load_config(ROOT / "configs" / "nano.yaml", ModelConfig)).train()
    model.to(memory_format=torch.channels_last)
    board = torch.randint(256, (crops, 1, 320, 320), dtype=torch.uint8)
    times = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        head = model(board, board, torch.ones(crops)).head
        (head.centre_logits.mean() + head.distances.mean() + head.mask_logits.mean()).backward()
        times.append(time.perf_counter() - start)
    print(statistics.median(times[2:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=8, help="timed steps of each line")
    parser.add_argument("--work", nargs=2, type=int, metavar=("THREADS", "CROPS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.steps)
        return
    print("| processes x threads | allocator | ms per crop | ratio |\n|---|---|---|---|")
    first = None
    for name, env in {"default": {}, "kept": KEEP, "kept, large pages": KEEP_FREED_MEMORY}.items():
        for processes, threads in ((1, 2), (2, 1)):
            crops = 8 // processes
            command = [
                sys.executable,
                __file__,
                "--steps",
                str(options.steps),
                "--work",
                str(threads),
                str(crops),
            ]
            running = [
                subprocess.Popen(command, env=os.environ | env, stdout=subprocess.PIPE, text=True)
                for _ in range(processes)
            ]
            seconds = max(float(process.communicate()[0]) for process in running)
            ms = 1e3 * seconds / 8
            first = first or ms
            print(f"| {processes} x {threads} | {name} | {ms:.1f} | {ms / first:.2f} |", flush=True)


if __name__ == "__main__":
    main()
