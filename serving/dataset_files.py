"""Data sets on the disk: INSPECT_VIT_HOME/datasets/FINGERPRINT/{train,acceptance}, COCO labels and pictures.

Pictures are linked, not copied, so that retention does not take them from a data set, and a data set takes no
room while the inspections are there. The golden reference is written as it was laid under the board: training
wants pairs in register. A folder is whole or not there: it is made beside, and renamed at the end.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from inspect_vit.alignment import lay_under
from inspect_vit.errors import ImageError
from inspect_vit.files import write_atomically
from inspect_vit.image_io import read_image
from inspect_vit.overlay import encode_png
from serving.config import ServingConfig
from serving.dataset_schemas import Dataset, DatasetFilter, Part, References
from serving.datasets import LabelledBoard, select_boards
from serving.errors import BusyError
from serving.ids import day_of
from serving.locking import alone, shared
from serving.review_schemas import Point
from serving.roles import Actor
from serving.store import Store

FOLDER, SUMMARY, LABELS = "datasets", "dataset.json", "annotations.coco.json"
MAKING, POSTED, LAID = ".making-", ".posted", ".laid"
SUFFIXES = {
    b"\xff\xd8": ".jpg",
    b"\x89PNG": ".png",
    b"BM": ".bmp",
    b"II": ".tif",
    b"MM": ".tif",
    b"RIFF": ".webp",
}
RETRY_S = 30


@dataclass(frozen=True)
class _Placed:
    """One board with its pictures in the folder, as its labels name them."""

    board: LabelledBoard
    image: str
    reference: str | None


def export_dataset(
    store: Store, config: ServingConfig, wanted: DatasetFilter, actor: Actor, *, wait_s: float
) -> Dataset:
    """The data set of all verified boards that a filter names; written unless it is there already.

    One is written at a time. Laying a reference under its board takes about as long as in an inspection; it
    is done once for a pair and kept for later data sets.

    Args:
        wait_s: longest wait for another one that is being written.

    Raises:
        BusyError: another one is still being written.
        OSError: the disk is full, or cannot be written.
    """
    home = config.home_dir / FOLDER
    home.mkdir(exist_ok=True)
    with alone(home / ".lock", timeout_s=wait_s) as held:
        if not held:
            raise BusyError("another data set is being written", retry_after_s=RETRY_S)
        for stale in home.glob(f"{MAKING}*"):
            shutil.rmtree(stale)
        making = home / f"{MAKING}{secrets.token_hex(8)}"
        (making / POSTED).mkdir(parents=True)
        try:
            return _write(store, config, wanted, actor, making)
        finally:
            shutil.rmtree(making, ignore_errors=True)
            _forget_unused(home / LAID)


def list_datasets(config: ServingConfig) -> list[Dataset]:
    """Those on the disk, newest first."""
    folders = (config.home_dir / FOLDER).glob(f"[!.]*/{SUMMARY}")
    found = [one for path in folders if (one := read_summary(path)) is not None]
    return sorted(found, key=lambda one: one.created, reverse=True)


def read_summary(path: Path) -> Dataset | None:
    """None: there is none, or it is damaged."""
    try:
        return Dataset.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _write(store: Store, config: ServingConfig, wanted: DatasetFilter, actor: Actor, making: Path) -> Dataset:
    posted = making / POSTED
    # Retention waits until every picture that is needed has a second name.
    with shared(store.writing_lock):
        selection = select_boards(store.engine, wanted, acceptance_share=config.acceptance_share)
        there = [board for board in selection.boards if _has_pictures(store, board, posted)]
    if num_gone := len(selection.boards) - len(there):
        selection.left_out["gone"] += num_gone
        selection.boards = there
    final = making.parent / selection.fingerprint
    if (found := read_summary(final / SUMMARY)) is not None:
        return found
    classes = sorted({one.label for board in there for one in board.labels if one.kind != "false_call"})
    references: Counter[str] = Counter()
    for part in get_args(Part):
        boards = [board for board in there if board.part == part]
        if boards:
            placed = [_place(board, making, config) for board in boards]
            (making / part / LABELS).write_text(coco_labels(placed, classes), encoding="utf-8")
            references.update(_reference_word(one) for one in placed)
    shutil.rmtree(posted)
    dataset = Dataset(
        **dict(selection.preview()),
        fingerprint=selection.fingerprint,
        created=datetime.now(UTC),
        actor=actor.name or "",
        references=References(**{word: references[word] for word in References.model_fields}),
        folder=f"{FOLDER}/{selection.fingerprint}",
    )
    (making / SUMMARY).write_text(dataset.model_dump_json(indent=1) + "\n", encoding="utf-8")
    for path in (*(one for one in making.rglob("*") if one.is_dir() or one.suffix == ".json"), making):
        _sync(path)
    if final.exists():
        # Without its summary nobody can tell what a folder lost.
        final.replace(making.with_name(f"{making.name}-old"))
        shutil.rmtree(making.with_name(f"{making.name}-old"))
    making.replace(final)
    _sync(final.parent)
    return dataset


def _has_pictures(store: Store, board: LabelledBoard, posted: Path) -> bool:
    """Give the pictures of a board a second name; False where one of them is gone."""
    day = store.pictures.root / day_of(board.inspection)
    try:
        for sha256 in {board.image_sha256, board.reference_sha256} - {None}:
            _link(day / str(sha256), posted / str(sha256))
    except FileNotFoundError:
        return False
    return True


def _place(board: LabelledBoard, making: Path, config: ServingConfig) -> _Placed:
    """Put a board and its reference where its labels name them."""
    folder, stem = making / board.part, board.image_sha256[:16]
    source = making / POSTED / board.image_sha256
    with source.open("rb") as file:
        magic = file.read(8)
    suffix = next((end for start, end in SUFFIXES.items() if magic.startswith(start)), ".png")
    image, reference = f"images/{stem}{suffix}", None
    _link(source, folder / image)
    laid = _lay(board, making, config)
    if laid is not None:
        reference = f"references/{stem}_temp.png"
        _link(laid, folder / reference)
    return _Placed(board, image, reference)


def _lay(board: LabelledBoard, making: Path, config: ServingConfig) -> Path | None:
    """The reference as it lies under the board, drawn once for a pair; None: there is none, or none fits."""
    if board.reference_sha256 is None:
        return None
    kept = making.parent / LAID / f"{board.image_sha256[:32]}-{board.reference_sha256[:32]}.png"
    if kept.exists():
        return kept
    image, reference = (
        (making / POSTED / name).read_bytes() for name in (board.image_sha256, board.reference_sha256)
    )
    try:
        pixels, golden = (read_image(data, max_pixels=config.max_pixels)[0] for data in (image, reference))
    except ImageError:
        # The limit on pictures was lowered since, say: then the pair cannot be trained on as a pair.
        return None
    laid = lay_under(pixels, golden).picture
    if laid is None:
        return None
    kept.parent.mkdir(exist_ok=True)
    write_atomically(kept, encode_png(laid))
    return kept


def coco_labels(placed: list[_Placed], classes: list[str]) -> str:
    """COCO's JSON; what is not known to be a defect or good is `iscrowd`."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, one in enumerate(placed, start=1):
        board = one.board
        entry = {"id": number, "file_name": one.image, "width": board.width, "height": board.height}
        images.append(
            entry | ({"reference": one.reference} if one.reference else {}) | {"group": board.group}
        )
        for label in board.labels:
            if label.kind == "false_call":
                continue
            left, top, right, bottom = label.box_xyxy
            annotation: dict[str, Any] = {
                "id": len(annotations) + 1,
                "image_id": number,
                "category_id": classes.index(label.label) + 1,
                "bbox": [left, top, right - left, bottom - top],
                "area": (right - left) * (bottom - top),
                "iscrowd": int(not label.is_defect),
            }
            if label.polygon is not None:
                corners = [value for point in label.polygon for value in point]
                annotation |= {"segmentation": [corners], "area": _area(label.polygon)}
            annotations.append(annotation)
    categories = [{"id": number, "name": name} for number, name in enumerate(classes, start=1)]
    return coco_text({"images": images, "annotations": annotations, "categories": categories})


def coco_text(lists: dict[str, list[dict[str, Any]]]) -> str:
    """JSON with one entry a line: people read and compare these files."""
    return "{\n" + ",\n".join(f'"{key}": [{_lines(entries)}]' for key, entries in lists.items()) + "\n}\n"


def _area(polygon: tuple[Point, ...]) -> float:
    """By the shoelace formula."""
    following = (*polygon[1:], polygon[0])
    return abs(sum(x * v - u * y for (x, y), (u, v) in zip(polygon, following, strict=True))) / 2


def _reference_word(one: _Placed) -> str:
    if one.board.reference_sha256 is None:
        return "none"
    return "not_laid" if one.reference is None else "laid"


def _lines(entries: list[dict[str, Any]]) -> str:
    return ",".join("\n" + json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in entries)


def _link(source: Path, target: Path) -> None:
    """A second name for a file; a copy where the file system has none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _forget_unused(folder: Path) -> None:
    """Laid references that no data set has any more."""
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.stat().st_nlink == 1:
                path.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
