"""Is a fading lamp noticed before a defect is missed, and how often is a steady line called drifting?

    python benchmarks/drift.py data_samples --steady 2000

Boards of data_samples as a camera takes them one after the other: a little shifted and turned, with sensor
noise, a light and a focus that are never quite the same. They are inspected against the golden reference and
watched as the service watches a recipe's boards.

Lamp: 50 good boards, then the lamp loses 0.5 % of its first light with every board. Counted are the boards
until the first alarm, and until the first planted defect that is found at full light is missed (looked for at
every tenth board, then board by board). Not missed is what comes back as ERROR. The alarm is that of the
picture alone: registration and network can only make it come earlier.
Steady: good boards and, one in twenty, bad ones; every alarm is false, and is acknowledged at once."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit import Inspector, read_image
from inspect_vit.alignment import LaidReference, lay_under
from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.picture_statistics import picture_statistics
from inspect_vit.registration import Golden, prepare
from inspect_vit.results import InspectionResult, Verdict
from serving.alarms import View
from serving.drift import Board, Observation, State, judge
from serving.watched import measure
from training.formats.coco import read_coco

Pixels = NDArray[np.uint8]
EXPOSURE = 0.9
"""Of full scale, so that nothing is clipped."""
LOSS = 0.005
BASELINE = 50
NUM_LAMP, STEP = 191, 10
"""Boards until the lamp is nearly out."""
VIEW = View(recipe="line", reference="golden", camera="", revision=1, model_version="")


@dataclass(frozen=True)
class Product:
    """A bad board, its golden reference, and the planted defects."""

    name: str
    bad: Pixels
    good: Pixels
    labels: tuple[str, ...]
    boxes: NDArray[np.float32]
    """(n, 4) box_xyxy, px."""


def take(picture: Pixels, rng: np.random.Generator, *, light: float = 1.0) -> Pixels:
    """(H, W, 3): the board as the camera sees it once more, with so much of the first light.

    Up to 2 px and 0.1 degrees off, a blur of 0.3 to 0.5 px, light within 0.4 %, noise of 2 grey levels (all
    but the first as standard deviations or limits of a uniform draw).
    """
    height, width = picture.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), float(rng.uniform(-0.1, 0.1)), 1.0)
    matrix[:, 2] += rng.uniform(-2, 2, 2)
    seen = cv2.warpAffine(picture, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
    seen = cv2.GaussianBlur(seen, (0, 0), float(rng.uniform(0.3, 0.5)))
    gain = EXPOSURE * light * (1 + rng.normal(0, 0.004))
    noise = rng.standard_normal((height, width, 1), np.float32) * 2
    return np.asarray((seen * np.float32(gain) + noise).round().clip(0, 255), np.uint8)


class Line:
    """One product on its line: inspects boards, and watches them."""

    def __init__(self, inspector: Inspector, product: Product, *, seed: int) -> None:
        self.inspector, self.product = inspector, product
        self.rng = np.random.default_rng(seed)
        self.reference = np.asarray((product.good * np.float32(EXPOSURE)).round(), np.uint8)
        self.golden: Golden = prepare(self.reference)
        self.state = State()
        self.alarms: list[str] = []
        self.num_boards = 0

    def inspect(self, picture: Pixels) -> InspectionResult:
        """As the service does it: with what reading the picture finds."""
        done, data = cv2.imencode(".bmp", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        assert done
        pixels, intake = read_image(bytes(data))
        return self.inspector.inspect(pixels, reference=self.lay(pixels), intake=intake)

    def lay(self, picture: Pixels) -> LaidReference:
        return lay_under(picture, self.reference, golden=self.golden)

    def post(self, picture: Pixels, *, is_inspected: bool) -> list[str]:
        """One more board on the line: the alarms that it raises, which are acknowledged at once."""
        laid = self.lay(picture) if is_inspected else LaidReference(None)
        result = self.inspector.inspect(picture, reference=laid) if is_inspected else None
        self.num_boards += 1
        seen = Observation(
            view=VIEW,
            board=Board(image_sha256=str(self.num_boards), serial=None),
            inspection_id=str(self.num_boards),
            time=(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.num_boards)).isoformat(),
            measured=measure(picture_statistics(picture), laid.registration, result),
        )
        sight = judge(self.state, [], seen)
        raised = [alarm.subject for alarm in sight.alarms]
        charts = {
            name: chart.restarted() if name in raised else chart for name, chart in sight.state.charts.items()
        }
        self.state = sight.state.model_copy(update={"charts": charts})
        return raised

    def found(self, light: float, seed: int) -> tuple[set[int], Verdict]:
        """Which planted defects are found on a bad board, and its verdict."""
        result = self.inspect(take(self.product.bad, np.random.default_rng(seed), light=light))
        middles = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in self.product.boxes]
        hit = {
            number
            for number, (x, y) in enumerate(middles)
            for defect in result.defects
            if defect.box_xyxy[0] - 6 <= x <= defect.box_xyxy[2] + 6
            and defect.box_xyxy[1] - 6 <= y <= defect.box_xyxy[3] + 6
        }
        return hit, result.verdict


def lamp(line: Line, *, say: Callable[[str], None]) -> tuple[int, list[str], int | None, int | None]:
    """Boards of the fading lamp until the alarm, what alarmed, and until a miss and until the first ERROR."""
    for number in range(BASELINE):
        raised = line.post(take(line.product.good, line.rng), is_inspected=False)
        assert not raised, f"false alarm of {raised} at board {number + 1}"
    alarm, subjects = 0, []
    while not subjects:
        alarm += 1
        picture = take(line.product.good, line.rng, light=1 - LOSS * alarm)
        subjects = line.post(picture, is_inspected=False)
    # One seed for all: the same bad board under less and less light, and nothing else.
    at_first, _ = line.found(1.0, seed=7)
    miss, error = _first_miss(line, at_first, range(STEP, NUM_LAMP, STEP), say)
    last = miss or error
    if last is not None:
        fine, fine_error = _first_miss(line, at_first, range(last - STEP + 1, last), say)
        miss, error = fine or miss, fine_error or error
    return alarm, subjects, miss, error


def _first_miss(
    line: Line, at_first: set[int], boards: range, say: Callable[[str], None]
) -> tuple[int | None, int | None]:
    for number in boards:
        hit, verdict = line.found(1 - LOSS * number, seed=7)
        say(f"{line.product.name}: {1 - LOSS * number:.1%} light, {len(at_first & hit)} of {len(at_first)}")
        if verdict is Verdict.ERROR:
            return None, number
        if at_first - hit:
            return number, None
    return None, None


def products(folder: Path, names: list[str]) -> Iterator[Product]:
    for sample in read_coco(folder).samples:
        name = sample.image.stem.removesuffix("_test")
        if name in names and sample.reference is not None:
            bad, good = read_image(sample.image)[0], read_image(sample.reference)[0]
            yield Product(name, bad, good, sample.labels, sample.boxes)


def cut(product: Product, side: int) -> Product:
    """The middle of a product."""
    top, left = ((length - side) // 2 for length in product.bad.shape[:2])
    window = slice(top, top + side), slice(left, left + side)
    bad, good = (np.ascontiguousarray(picture[window]) for picture in (product.bad, product.good))
    boxes = product.boxes - np.array([left, top, left, top], np.float32)
    inside = (boxes[:, :2] >= 0).all(1) & (boxes[:, 2:] <= side).all(1)
    labels = tuple(label for label, kept in zip(product.labels, inside, strict=True) if kept)
    return replace(product, bad=bad, good=good, labels=labels, boxes=boxes[inside])


def steady(line: Line, num_boards: int, *, inspect_every: int, say: Callable[[str], None]) -> Counter[str]:
    """False alarms by statistic."""
    counted: Counter[str] = Counter()
    for number in range(num_boards):
        picture = line.product.bad if line.rng.random() < 0.05 else line.product.good
        is_inspected = number % inspect_every == 0
        counted.update(line.post(take(picture, line.rng), is_inspected=is_inspected))
        say(f"{line.product.name}: {number + 1} of {num_boards} steady boards, {counted.total()} alarms")
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder data_samples")
    parser.add_argument("--checkpoint", type=Path, default=default_checkpoint())
    parser.add_argument("--boards", nargs="*", default=["board_01", "board_05", "colour_01"])
    parser.add_argument("--steady", type=int, default=2000, help="steady boards; 0: none")
    parser.add_argument("--steady-board", default="board_01")
    parser.add_argument("--side", type=int, default=320, help="px of the steady boards, cut from the middle")
    parser.add_argument(
        "--inspect-every",
        type=int,
        default=1,
        help="of the steady boards, those that are inspected; of the others the picture alone is watched",
    )
    options = parser.parse_args()
    inspector = Inspector(options.checkpoint)

    def say(text: str) -> None:
        print(f"\r{text:78.78}", end="", file=sys.stderr, flush=True)

    if options.boards:
        print(
            "| board | boards until the alarm | light then | by | until a miss | light then | first ERROR |"
        )
        print("|---|---|---|---|---|---|---|", flush=True)
    for product in products(options.data, options.boards):
        alarm, subjects, miss, error = lamp(Line(inspector, product, seed=1), say=say)
        say("")
        missed = "none | -" if miss is None else f"{miss} | {1 - LOSS * miss:.1%}"
        row = [product.name, alarm, f"{1 - LOSS * alarm:.1%}", ", ".join(subjects), missed, error or "none"]
        print(f"\r| {' | '.join(map(str, row))} |", flush=True)
    if options.steady:
        (product,) = products(options.data, [options.steady_board])
        line = Line(inspector, cut(product, options.side), seed=2)
        counted = steady(line, options.steady, inspect_every=options.inspect_every, say=say)
        seen = -(-options.steady // options.inspect_every)
        print(
            f"\r{options.steady} steady boards, {seen} of them inspected: "
            f"{counted.total()} false alarms {dict(counted) or ''}"
        )


if __name__ == "__main__":
    main()
