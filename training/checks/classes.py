"""Classes that may be one: by their names, and by what their boxes show."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from inspect_vit.intervals import clopper_pearson
from inspect_vit.results import Sample
from training.checks.findings import Example, Finding

MIN_LETTERS_FOR_SLIP = 5
"""Names shorter than this may differ by one letter and mean different things."""
EXAMPLES = 4
"""Boxes of a class that are shown."""
MIN_EXAMPLES = 20
"""Fewer boxes of a class say nothing about how it looks."""
MAX_EXAMPLES = 300
"""Boxes taken of each of two classes that are compared."""
ALIKE_BELOW = 0.75
"""Two classes look alike when the share of boxes whose nearest neighbour is of their own class is below this,
95 % interval included. Guessing gives 0.5; any two of the six classes of DeepPCB give 0.91 or more."""


def check_names(
    class_names: Sequence[str], labels: Counter[str], examples: Mapping[str, tuple[Example, ...]]
) -> Iterator[Finding]:
    """Names that differ in case, spacing or punctuation only, or by one slip; and names that no box has.

    Args:
        labels: boxes of each name.
        examples: boxes of each name to be shown.
    """
    names = list(dict.fromkeys((*class_names, *sorted(labels))))
    for first, second in combinations(names, 2):
        counts = f"{first!r} ({labels[first]} boxes) and {second!r} ({labels[second]})"
        shown = examples.get(first, ()) + examples.get(second, ())
        if _letters(first) == _letters(second):
            message = f"{counts} differ in case, spacing or punctuation only"
            yield Finding("class-spelling", message, examples=shown)
        elif _is_slip(_letters(first), _letters(second)):
            yield Finding("class-near-spelling", f"{counts} differ by one letter", examples=shown)
    for name in names:
        if not labels[name]:
            yield Finding("class-unused", f"{name!r} is a class, and no box is of it")


def choose_examples(samples: Sequence[Sample]) -> dict[str, tuple[Example, ...]]:
    """A few boxes of each class, from as many pictures as there are, evenly spaced over the set."""
    found: dict[str, list[Example]] = {}
    for sample in samples:
        for label in dict.fromkeys(sample.labels):
            left, top, right, bottom = sample.boxes[sample.labels.index(label)].tolist()
            found.setdefault(label, []).append(Example(label, sample.image, (left, top, right, bottom)))
    return {
        label: tuple(boxes[i] for i in np.linspace(0, len(boxes) - 1, min(EXAMPLES, len(boxes))).astype(int))
        for label, boxes in found.items()
    }


def _letters(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in folded if letter.isalnum()) or folded


def _is_slip(first: str, second: str) -> bool:
    """One letter added, left out, changed, or two swapped; not a digit, which numbers kinds."""
    short, long = sorted((first, second), key=len)
    if len(long) - len(short) > 1 or len(short) < MIN_LETTERS_FOR_SLIP:
        return False
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest, other = short[start:], long[start:]
    if any(letter.isdigit() for letter in (rest[:1] + other[:1])):
        return False
    if len(short) < len(long):
        return rest == other[1:]
    swapped = len(rest) > 1 and rest[:2] == other[1::-1]
    return rest[1:] == other[1:] or (swapped and rest[2:] == other[2:])


@dataclass(frozen=True)
class Lookalikes:
    """Two classes held against each other."""

    first: str
    second: str
    share: float
    """Of boxes whose nearest neighbour on another picture is of their own class; 0.5 by chance."""
    high: float
    """Upper end of its exact 95 % interval."""
    examples: int
    """Boxes taken of each class."""


def compare_classes(
    descriptors: NDArray[np.float32], labels: Sequence[str], pictures: NDArray[np.int64], *, seed: int = 0
) -> list[Lookalikes]:
    """Every two classes with MIN_EXAMPLES boxes, as many of the one as of the other.

    It asks whether plain nearest neighbours tell the two apart, not whether a network would: a difference of
    a few pixels, of colour, or outside the box is not seen. Boxes of one picture are no neighbours.

    Args:
        descriptors: (N, D), as `descriptors.describe_boxes` makes them.
        pictures: (N,) number of the picture that each box is on.
    """
    of_class = {name: np.flatnonzero(np.array(labels) == name) for name in dict.fromkeys(labels)}
    large = [name for name, numbers in of_class.items() if len(numbers) >= MIN_EXAMPLES]
    answers: list[Lookalikes] = []
    for first, second in combinations(large, 2):
        rng = np.random.default_rng((seed, len(answers)))
        examples = min(len(of_class[first]), len(of_class[second]), MAX_EXAMPLES)
        chosen = np.concatenate([rng.permutation(of_class[name])[:examples] for name in (first, second)])
        own = np.repeat([0, 1], examples)
        vectors = descriptors[chosen]
        squares = (vectors**2).sum(1)
        distances = squares[:, None] + squares - 2 * vectors @ vectors.T
        distances[pictures[chosen][:, None] == pictures[chosen]] = np.inf
        right = int((own[distances.argmin(1)] == own).sum())
        share, high = right / len(own), clopper_pearson(right, len(own))[1]
        answers.append(Lookalikes(first, second, share, high, examples))
    return answers


def check_looks(
    compared: Sequence[Lookalikes], examples: Mapping[str, tuple[Example, ...]]
) -> Iterator[Finding]:
    """Two classes that plain nearest neighbours cannot tell apart; `examples` of each class go with them."""
    for pair in compared:
        if pair.high < ALIKE_BELOW:
            message = (
                f"{pair.first!r} and {pair.second!r}: the nearest neighbour of {pair.share:.0%} of "
                f"{2 * pair.examples} boxes is of their own class (50 % by chance; at most {pair.high:.0%}, "
                "with 95 % confidence)"
            )
            shown = examples.get(pair.first, ()) + examples.get(pair.second, ())
            yield Finding("class-lookalike", message, examples=shown)
