"""What attention and relevance cost beside an inspection, in time and in memory.

    python benchmarks/attention_cost.py

One process, one board; every round runs each line once, in an order that changes from round to round, so that
ratios hold whatever else the machine does. A line's ratio is the median over the rounds of its time by the
plain inspection's in the same round. --check holds the attention of one defect's rows on all levels, taken
from the pass of the verdict, to 20 %.

Memory: each cell is a process of its own, which inspects a board of that size, fills its memory up to the
most that this took, and then shows how much further attention goes.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspect_vit import Inspector, read_image
from inspect_vit.attribution import attention_heads, inspect_with_attention, rollout
from inspect_vit.cells import defect_query
from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.inspector import LEVEL_NAMES
from inspect_vit.relevance import relevance
from inspect_vit.reliability import set_up, try_map
from inspect_vit.results import Defect
from inspect_vit.trace import Trace, inspect_traced

ROOT = Path(__file__).resolve().parent.parent
MOST = 0.2
"""Share of a plain inspection that the attention of one defect may add."""
ADDED = "attention of one defect, all levels, alone"
SIDES_PX = (320, 640, 960, 1280)
MEMORY = ("one defect", "whole board")
Picture = NDArray[np.uint8]


def defect_heads(
    inspector: Inspector, traced: Trace, defect: Defect, defect_map: NDArray[np.float32]
) -> None:
    """What the service computes for one defect: all heads of all levels."""
    query = defect_query(defect_map, inspector.metadata.model.class_names, defect)
    for level in LEVEL_NAMES:
        attention_heads(inspector, traced, level, query=query)


def lines(inspector: Inspector, image: Picture, reference: Picture) -> dict[str, Callable[[], object]]:
    """What is timed, by its name in the table; the plain inspection first."""
    found = inspector.inspect(image, reference=reference, min_score=0.0)
    defect = found.defects[0]
    query = defect_query(found.defect_map, found.class_names, defect)
    _, kept = inspect_traced(inspector, image, reference=reference)

    def with_one_defect() -> None:
        result, traced = inspect_traced(inspector, image, reference=reference)
        defect_heads(inspector, traced, defect, result.defect_map)

    def with_rollout() -> None:
        _, traced = inspect_traced(inspector, image, reference=reference)
        rollout(inspector, traced, defect, query)

    def tried() -> None:
        trial = set_up(inspector, image, reference=reference, defect=defect)
        try_map(trial, found.defect_map.max(0))

    return {
        "inspect": lambda: inspector.inspect(image, reference=reference),
        "inspect + attention of one defect, all levels": with_one_defect,
        ADDED: lambda: defect_heads(inspector, kept, defect, found.defect_map),
        "inspect + attention of the whole board, all levels": lambda: inspect_with_attention(
            inspector, image, reference=reference
        ),
        "inspect + roll-out of one defect": with_rollout,
        "relevance of one defect, alone": lambda: relevance(
            inspector, image, reference=reference, defect=defect
        ),
        "test of one map, alone": tried,
    }


def time_table(inspector: Inspector, image: Picture, reference: Picture, rounds: int) -> dict[str, float]:
    """Print the table; returns each line's ratio to the plain inspection."""
    work = lines(inspector, image, reference)
    names = list(work)
    spent: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            start = time.perf_counter()
            work[name]()
            if turn:  # the first round warms up
                spent[name].append(time.perf_counter() - start)
    plain = np.array(spent["inspect"])
    ratios = {name: np.array(times) / plain for name, times in spent.items()}
    print("| | median ms | by inspect, median | quartiles |\n|---|---|---|---|")
    for name, ratio in ratios.items():
        low, middle, high = np.quantile(ratio, (0.25, 0.5, 0.75))
        median_ms = 1e3 * statistics.median(spent[name])
        print(f"| {name} | {median_ms:.1f} | {middle:.3f} | {low:.3f} to {high:.3f} |")
    return {name: float(np.median(ratio)) for name, ratio in ratios.items()}


def enlarged(picture: Picture, side: int) -> Picture:
    """The board tiled to side x side px: more board, not larger tracks."""
    copies = -(-side // min(picture.shape[:2]))
    return np.ascontiguousarray(np.tile(picture, (copies, copies, 1))[:side, :side])


def added_mb(inspector: Inspector, image: Picture, reference: Picture, what: str) -> float:
    """How much further the peak of this process goes when attention follows an inspection, MB."""
    result, traced = inspect_traced(inspector, image, reference=reference, min_score=0.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ballast = before / 1024 - resident_mb()  # up to here the inspection itself needed
    held = np.ones(int(max(ballast, 0) * 131072))
    start = resident_mb()
    if what == "one defect":
        defect_heads(inspector, traced, result.defects[0], result.defect_map)
    else:
        for level in LEVEL_NAMES:
            attention_heads(inspector, traced, level)
    del held
    return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - start, 0.0)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def memory_table(checkpoint: Path) -> None:
    print("\n| side px | tokens, all levels | " + " | ".join(f"{what}, added MB" for what in MEMORY) + " |")
    print("|---|---|" + "---|" * len(MEMORY))
    for side in SIDES_PX:
        tokens = sum((side // patch) ** 2 for patch in (4, 16, 32))
        cells = []
        for what in MEMORY:
            command = [sys.executable, __file__, "--checkpoint", str(checkpoint), "--memory", str(side), what]
            answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            cells.append(f"{float(answer):.0f}")
        print(f"| {side} | {tokens} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, default=default_checkpoint())
    parser.add_argument("--rounds", type=int, default=30, help="timed rounds, each line once in each")
    parser.add_argument("--check", action="store_true", help="exit 1 when one defect costs over 20 %%")
    parser.add_argument("--memory", nargs=2, metavar=("SIDE", "WHAT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    inspector = Inspector(options.checkpoint)
    samples = ROOT / "data_samples"
    image, reference = (read_image(samples / f"board_01_{kind}.png")[0] for kind in ("test", "temp"))
    if options.memory:
        side, what = int(options.memory[0]), options.memory[1]
        print(added_mb(inspector, enlarged(image, side), enlarged(reference, side), what))
        return
    print(f"{inspector.metadata.name} on {inspector.device}, {image.shape[1]} x {image.shape[0]} px\n")
    ratios = time_table(inspector, image, reference, options.rounds)
    memory_table(options.checkpoint)
    if options.check and ratios[ADDED] > MOST:
        sys.exit("attention of one defect costs more than 20 % of an inspection")


if __name__ == "__main__":
    main()
