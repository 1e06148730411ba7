"""What both models say of every acceptance board, kept on disk picture by picture.

A gate that was stopped goes on where it was, and a set that has grown costs only its new pictures: what a
version says of a picture and its reference in one mode does not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspect_vit.calibration import Mode
from inspect_vit.console import say
from inspect_vit.files import write_atomically
from inspect_vit.gate_report import PROGRESS_NAME
from inspect_vit.inspector import Inspector, laid_reference
from inspect_vit.matching import Detections, as_detections
from inspect_vit.results import Sample, Verdict
from training.gate_product import Placed, Product, does_not_count, place
from training.gate_set import Board
from training.poses import Pixels, read_picture, read_reference
from training.progress import track
from training.true_size import true_size_px

FORMAT = 1
SAVE_EVERY_S, TELL_EVERY_S = 20.0, 2.0
Sizes = dict[str, list[float | None]]
"""Of the counted defects of each picture, px; None for one that the recipe lets pass."""


@dataclass(frozen=True)
class Look:
    """What one model says of one picture: calls from a low score up, none where the verdict is ERROR."""

    detections: Detections
    """Labels index the model's own classes."""
    is_error: bool


@dataclass
class Kept:
    """The looks of one model, by the digest of the picture, and their file."""

    inspector: Inspector
    path: Path
    lowest_score: float
    """From which calls are listed."""
    looks: dict[str, Look]


def keep(
    folder: Path, inspector: Inspector, mode: Mode, *, lowest_score: float, product: Product | None = None
) -> Kept:
    """What the folder already holds of this model. Looks that list fewer calls are made anew."""
    metadata = inspector.metadata
    # A version names weights and configuration; that a reference is needed is stated beside them.
    needs = ".needs-reference" if metadata.needs_reference else ""
    path = folder / f"{metadata.version}{needs}.{mode}{_suffix(product)}.npz"
    return Kept(inspector, path, lowest_score, _load(path, lowest_score) if path.is_file() else {})


def inspect_with(
    models: Sequence[Kept],
    boards: Sequence[Board],
    mode: Mode,
    *,
    out: Path,
    product: Product | None = None,
) -> Sizes:
    """Let each model inspect what it has not yet; a picture is read and aligned once. Shows progress.

    Args:
        product: the recipe that says what of a board counts; None: all does.

    Returns:
        sizes by the digest of the picture, one for each counted defect.

    Raises:
        ImageError: a picture that cannot be read; the message names it.
    """
    path = models[0].path.with_name(f"true_sizes.{mode}{_suffix(product)}.json")
    sizes: Sizes = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    todo = [
        board
        for board in boards
        if _measure_of(board) not in sizes or any(board.digest not in kept.looks for kept in models)
    ]
    if len(todo) < len(boards):
        say(f"{len(boards) - len(todo)} of {len(boards)} pictures were inspected before")

    def save() -> None:
        for kept in models:
            _save(kept)
        write_atomically(path, json.dumps(sizes).encode())

    start = saved = told = time.monotonic()
    try:
        for number, board in enumerate(track(todo, total=len(todo), label="inspecting with both")):
            now = time.monotonic()
            if now - saved > SAVE_EVERY_S:
                save()
                saved = now
            if not number or now - told > TELL_EVERY_S:
                _tell(out, number, len(todo), elapsed_s=now - start)
                told = now
            sizes[_measure_of(board)] = _look_at(board, models, mode, product)
    finally:
        if todo:
            save()
    _tell(out, len(todo), len(todo), elapsed_s=time.monotonic() - start)
    return {board.digest: sizes[_measure_of(board)] for board in boards}


def counted_boards(boards: Sequence[Board], sizes: Sizes) -> tuple[list[Board], list[list[float]]]:
    """The boards, defects that the recipe lets pass being ignored ones, and the sizes of those that count."""
    counted: list[Board] = []
    kept: list[list[float]] = []
    for board in boards:
        found = sizes[board.digest]
        if None in found:
            ignored = board.sample.is_ignored.copy()
            ignored[~ignored] = [size is None for size in found]
            board = replace(board, sample=replace(board.sample, ignored=tuple(ignored.tolist())))
        counted.append(board)
        kept.append([size for size in found if size is not None])
    return counted, kept


def _look_at(board: Board, models: Sequence[Kept], mode: Mode, product: Product | None) -> list[float | None]:
    """Inspect one picture with every model that has not; the sizes of its defects."""
    sample = board.sample
    image, intake = read_picture(sample.image)
    own = read_reference(sample) if mode == "with_reference" and sample.reference is not None else None
    placed = Placed(laid_reference(image, own)) if product is None else place(product, image, own)
    for kept in models:
        if board.digest not in kept.looks:
            result = kept.inspector.inspect(
                image,
                reference=placed.laid,
                min_score=kept.lowest_score,
                intake=intake,
                ignore=placed.ignore,
                min_size_px=placed.min_size_px,
            )
            kept.looks[board.digest] = Look(as_detections(result), result.verdict is Verdict.ERROR)
    golden = None if placed.laid is None else placed.laid.picture
    boxes = _counted(sample)
    labels = [label for label, flag in zip(sample.labels, sample.is_ignored, strict=True) if not flag]
    passed = does_not_count(placed, image, boxes, labels)
    return [
        None if is_passed else _size_px(image, golden, box)
        for box, is_passed in zip(boxes, passed.tolist(), strict=True)
    ]


def _suffix(product: Product | None) -> str:
    return "" if product is None else f".{product.key}"


def _size_px(image: Pixels, golden: Pixels | None, box: NDArray[np.float32]) -> float:
    """The true size, as evaluations give it; without a reference, or where nothing differs, the box's."""
    size = 0 if golden is None else true_size_px(image, golden, box)[0]
    return float(size or max(box[2] - box[0], box[3] - box[1]))


def _counted(sample: Sample) -> NDArray[np.float32]:
    return np.ascontiguousarray(sample.boxes[~sample.is_ignored], np.float32)


def _measure_of(board: Board) -> str:
    """Names the picture and the defects that are measured on it."""
    sample = board.sample
    text = f"{board.digest} {sample.labels} {sample.ignored} ".encode()
    return hashlib.sha256(text + _counted(sample).tobytes()).hexdigest()[:24]


def _tell(out: Path, done: int, total: int, *, elapsed_s: float) -> None:
    left = elapsed_s / done * (total - done) if done else None
    tree = {
        "stage": "inspecting",
        "done": done,
        "total": total,
        "eta_s": None if left is None else round(left),
    }
    write_atomically(out / PROGRESS_NAME, (json.dumps(tree) + "\n").encode())


def _save(kept: Kept) -> None:
    looks = list(kept.looks.values())
    calls = [look.detections for look in looks]
    kept.path.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.path.with_name(f".{kept.path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        np.savez_compressed(
            file,
            allow_pickle=False,
            format=np.array(FORMAT),
            lowest_score=np.array(kept.lowest_score),
            digests=np.array(list(kept.looks), dtype="U64"),
            errors=np.array([look.is_error for look in looks], np.bool_),
            counts=np.array([len(c) for c in calls], np.int64),
            boxes=np.concatenate([np.zeros((0, 4), np.float32), *(c.boxes for c in calls)]),
            scores=np.concatenate([np.zeros(0, np.float32), *(c.scores for c in calls)]),
            labels=np.concatenate([np.zeros(0, np.int64), *(c.labels for c in calls)]),
        )
    temporary.replace(kept.path)


def _load(path: Path, lowest_score: float) -> dict[str, Look]:
    """Nothing where the file is damaged, of another format, or lists calls from a higher score on."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if int(arrays["format"]) != FORMAT or float(arrays["lowest_score"]) > lowest_score:
                return {}
            if not len(arrays["counts"]):
                return {}
            cuts = np.cumsum(arrays["counts"])[:-1]
            columns = [np.split(arrays[column], cuts) for column in ("boxes", "scores", "labels")]
            calls = [Detections(*row) for row in zip(*columns, strict=True)]
            rows = zip(arrays["digests"].tolist(), calls, arrays["errors"].tolist(), strict=True)
            return {str(digest): Look(found, bool(is_error)) for digest, found, is_error in rows}
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        say(f"{path} cannot be read ({error}); its pictures are inspected again")
        return {}
