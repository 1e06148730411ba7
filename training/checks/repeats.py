"""Findings about pictures that show the same: copies, leaks between splits, boards without a common group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from inspect_vit.results import Sample
from training.checks.duplicates import Pair
from training.checks.findings import Finding
from training.checks.pictures import PictureFacts
from training.formats.splits import board_of

SPLIT_ORDER = ("train", "val", "test")
MOST_NAMED = 6


def check_copies(samples: Sequence[Sample], copies: Sequence[Sequence[int]]) -> Iterator[Finding]:
    """Pictures with the same pixels.

    Args:
        copies: numbers of the samples that are one picture, two and more each.
    """
    for numbers in copies:
        for number in numbers[1:]:
            first, second = samples[numbers[0]], samples[number]
            same = first.image == second.image
            what = "listed twice" if same else f"the same pixels as {_name(first)}"
            if not _labels_agree(first, second):
                message = f"{what}, with {_boxes(second)} here and {_boxes(first)} there"
                yield Finding(
                    "duplicate-disagrees", message, second.image, second.origin, others=(first.image,)
                )
            if first.split != second.split and first.split and second.split:
                yield _leak(first, second, what)
            elif _labels_agree(first, second):
                yield Finding("duplicate", what, second.image, second.origin, others=(first.image,))


def check_pairs(samples: Sequence[Sample], pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Pictures that differ by nothing but noise, scale, light or turning."""
    for pair in pairs:
        if pair.likeness != "near":
            continue
        first, second = samples[pair.first], samples[pair.second]
        turn = f", turned by {90 * (pair.turn % 4)} degrees" if pair.turn % 4 else ""
        mirrored = ", mirrored" if pair.turn >= 4 else ""
        what = f"the same as {_name(first)} but for noise, scale or light{mirrored}{turn}"
        if first.split != second.split and first.split and second.split:
            yield _leak(first, second, what)
        else:
            yield Finding("near-duplicate", what, second.image, second.origin, others=(first.image,))


def check_boards(samples: Sequence[Sample], pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Boards with pictures in several splits, by group and by what the pictures show."""
    torn: dict[str, list[Sample]] = {}
    for sample in samples:
        torn.setdefault(board_of(sample), []).append(sample)
    torn = {board: of for board, of in torn.items() if len({s.split for s in of if s.split}) > 1}
    shown = [(samples[pair.first], samples[pair.second]) for pair in pairs]
    for board, of_board in torn.items():
        sizes = {split: sum(s.split == split for s in of_board) for split in SPLIT_ORDER}
        counts = ", ".join(f"{size} in {split}" for split, size in sizes.items() if size)
        crossing = {
            second.image if first.split == "train" else first.image
            for first, second in shown
            if board_of(first) == board_of(second) == board and first.split != second.split
        }
        seen = f"; {len(crossing)} show the same place as one in another split" if crossing else ""
        example = next(s for s in of_board if s.split != "train")
        message = f"group {board}: {counts}{seen}"
        yield Finding("board-in-two-splits", message, example.image, example.origin)
    for numbers in _connected(len(samples), pairs):
        members = [samples[number] for number in numbers]
        if len(boards := {board_of(member) for member in members}) == 1:
            continue
        first, rest = members[0], members[1:]
        parted = len({member.split for member in members if member.split}) > 1
        groups = sorted({member.group for member in members if member.group})
        named = f" of groups {', '.join(groups)}" if groups else " without a group"
        message = f"{len(members)} pictures{named} show one board, counted as {len(boards)}"
        kind = "board-in-two-splits" if parted else "same-board"
        others = tuple(member.image for member in rest[:MOST_NAMED])
        yield Finding(kind, message, first.image, first.origin, others=others)


def check_references(samples: Sequence[Sample], facts: Sequence[PictureFacts]) -> Iterator[Finding]:
    """Labelled boards that are the reference of a board, their own included."""
    used = {
        found.reference_digest: sample
        for sample, found in zip(samples, facts, strict=True)
        if found.reference_digest
    }
    for sample, found in zip(samples, facts, strict=True):
        if sample.labels and (user := used.get(found.digest)) is not None:
            whose = "its own reference" if user.image == sample.image else f"the reference of {_name(user)}"
            message = f"it has {_boxes(sample)}, and is {whose}"
            yield Finding("defective-reference", message, sample.image, sample.origin, others=(user.image,))


def find_copies(facts: Sequence[PictureFacts]) -> list[list[int]]:
    """Numbers of pictures with the same pixels, two and more each."""
    by_digest: dict[str, list[int]] = {}
    for number, found in enumerate(facts):
        if found.digest:
            by_digest.setdefault(found.digest, []).append(number)
    return [numbers for numbers in by_digest.values() if len(numbers) > 1]


def _leak(first: Sample, second: Sample, what: str) -> Finding:
    """On the picture whose split comes first: leaving that one out mends it."""
    early, late = sorted((first, second), key=lambda sample: SPLIT_ORDER.index(sample.split))
    message = f"in {early.split}; {_name(late)} in {late.split} is the same picture: {what}"
    return Finding("split-leak", message, early.image, early.origin, others=(late.image,))


def _labels_agree(first: Sample, second: Sample) -> bool:
    """The same boxes under the same classes, in any order."""
    listed = (
        sorted(zip(sample.labels, np.round(sample.boxes).tolist(), strict=True)) for sample in (first, second)
    )
    return next(listed) == next(listed)


def _connected(count: int, pairs: Sequence[Pair]) -> list[list[int]]:
    """Numbers that pairs join, directly or through others; two and more each."""
    parent = list(range(count))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for pair in pairs:
        parent[root(pair.second)] = root(pair.first)
    joined: dict[int, list[int]] = {}
    for number in sorted({number for pair in pairs for number in (pair.first, pair.second)}):
        joined.setdefault(root(number), []).append(number)
    return list(joined.values())


def _boxes(sample: Sample) -> str:
    count = len(sample.labels)
    return f"{count} {'box' if count == 1 else 'boxes'}"


def _name(sample: Sample) -> str:
    return sample.image.name
