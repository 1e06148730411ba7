"""Verified boards become a data set: which count, what is on them, where they stay; and training reads it.

Over 300 lines: each test is short, and all share one way of making boards and asking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from pydantic import ValidationError
from sqlalchemy import update

from inspect_vit.cli import main
from inspect_vit.image_io import read_image
from serving.config import ServingConfig, to_environment
from serving.dataset_files import export_dataset, list_datasets
from serving.dataset_schemas import Dataset, DatasetFilter
from serving.datasets import list_examples, select_boards
from serving.parts import part_of
from serving.pictures import sha256_hex
from serving.retention import Limits, prune
from serving.review_tables import QueueRow
from serving.store import Store
from tests.serving.reviewing import ANNA, dispose, verify
from tests.serving.verified import HEIGHT, WIDTH, Verified, draw_pair
from training.formats.coco import read_coco

SHARE = 0.4
ALL = DatasetFilter()
SPUR, SHORT = (90.0, 50.0, 160.0, 70.0), (10.5, 20.25, 30.0, 44.0)


@pytest.fixture
def store(config: ServingConfig) -> Iterator[Store]:
    opened = Store(config)
    yield opened
    opened.close()


def export(store: Store, config: ServingConfig, wanted: DatasetFilter = ALL) -> Dataset:
    config = config.model_copy(update={"acceptance_share": SHARE})
    return export_dataset(store, config, wanted, ANNA, wait_s=0.0)


def labels_of(folder: Path, part: str) -> Any:
    return json.loads((folder / part / "annotations.coco.json").read_text())


def named(tree: Any) -> dict[str, list[tuple[str, list[float], int]]]:
    """Class, box and iscrowd of each annotation, by the board."""
    classes = {entry["id"]: entry["name"] for entry in tree["categories"]}
    groups = {entry["id"]: entry["group"] for entry in tree["images"]}
    found: dict[str, list[tuple[str, list[float], int]]] = {group: [] for group in groups.values()}
    for one in tree["annotations"]:
        found[groups[one["image_id"]]].append((classes[one["category_id"]], one["bbox"], one["iscrowd"]))
    return found


def test_only_what_was_said_is_in_it_and_what_was_said_wrongly_is_not(
    store: Store, config: ServingConfig
) -> None:
    line = Verified(store)
    every = [("short", SHORT), ("short", SPUR), ("open", SPUR), ("open", SHORT)]
    mixed = line.inspect(*every, serial="mixed")
    words = [("real", "short"), ("real", "spur"), ("false_call", "open"), ("process_indicator", "open")]
    triangle = [[100, 100], [120, 100], [100, 140]]
    line.review(mixed, *words, missed=[{"label": "scratch", "polygon": triangle}])
    line.review(line.inspect(("short", SHORT), serial="good"), ("false_call", "short"))
    line.review(line.inspect(serial="passed", reference=None))
    line.inspect(("short", SHORT), serial="nobody looked")
    verify(store, line.inspect(serial="error", verdict="ERROR"), 0)
    line.review(line.inspect(("short", SHORT), serial="more", num_defects=7), ("false_call", "short"))
    found = export(store, config)
    whole = {
        group: labels
        for part in ("train", "acceptance")
        if (config.home_dir / found.folder / part).is_dir()
        for group, labels in named(labels_of(config.home_dir / found.folder, part)).items()
    }
    left, top, right, bottom = SHORT
    short = [left, top, right - left, bottom - top]
    assert whole["good"] == whole["passed"] == []
    assert whole["mixed"] == [
        ("short", short, 0),
        ("spur", [90.0, 50.0, 70.0, 20.0], 0),
        ("open", short, 1),
        ("scratch", [100, 100, 20, 40], 0),
    ]
    assert set(whole) == {"mixed", "good", "passed"}
    assert found.left_out == {"error": 1, "undone": 1, "unlisted": 1}
    assert sum((found.pictures.train, found.pictures.acceptance)) == 3
    assert sum((found.good.train, found.good.acceptance)) == 2
    assert set(found.classes) == {"short", "spur", "scratch"}
    assert found.references.model_dump() == {"laid": 2, "not_laid": 0, "none": 1}


def test_hasty_words_are_not_learnt_from(store: Store) -> None:
    line = Verified(store)
    doubted = line.inspect(("short", SHORT))
    line.review(doubted, ("false_call", "short"))
    with store.engine.begin() as connection:
        connection.execute(update(QueueRow).values(hasty=True))
    selection = select_boards(store.engine, ALL, acceptance_share=SHARE)
    assert (selection.boards, selection.left_out) == ([], {"hasty": 1})


def test_the_same_content_is_the_same_folder_and_any_change_another(
    store: Store, config: ServingConfig
) -> None:
    line = Verified(store)
    for serial in ("a", "b", "c"):
        line.scratch(serial=serial)
    first = export(store, config)
    assert export(store, config) == first
    board = line.inspect(("short", SHORT), serial="d")
    line.review(board, ("false_call", "short"))
    second = export(store, config)
    verify(store, board, 1, calls=[{"defect": 1, "word": "real", "label": "short"}])
    dispose(store, board, 2, "scrap")
    third = export(store, config)
    assert len({first.fingerprint, second.fingerprint, third.fingerprint}) == 3
    assert [one.fingerprint for one in list_datasets(config)] == [
        third.fingerprint,
        second.fingerprint,
        first.fingerprint,
    ]
    assert not list((config.home_dir / "datasets").glob(".making-*"))


def test_a_board_stays_in_its_part_for_good(store: Store, config: ServingConfig) -> None:
    """By the definition: the first 8 bytes of SHA-256 of its name, as a fraction."""
    line = Verified(store)
    serials = [f"SN-{n}" for n in range(12)]
    for serial in serials * 2:
        line.scratch(serial=serial)
    boards = select_boards(store.engine, ALL, acceptance_share=SHARE).boards
    assert len(boards) == 24
    for board in boards:
        fraction = int(sha256_hex(f"board:{board.serial}".encode())[:16], 16) / 2**64
        assert board.part == ("acceptance" if fraction < SHARE else "train")
    assert {board.part for board in boards} == {"train", "acceptance"}
    shares = [sum(part_of(f"board {n}", share) == "acceptance" for n in range(4000)) for share in (0, 0.3, 1)]
    assert shares[0] == 0
    assert 1080 < shares[1] < 1320, "4 standard deviations around 1200"
    assert shares[2] == 4000
    assert all(
        part_of(f"board {n}", 0.5) == "acceptance"
        for n in range(999)
        if part_of(f"board {n}", 0.3) == "acceptance"
    )


def test_filters_name_boards_by_recipe_time_and_class(store: Store, config: ServingConfig) -> None:
    line = Verified(store)
    line.scratch(serial="a", recipe="top")
    line.review(line.inspect(serial="b", recipe="top"))
    line.scratch(serial="c")

    def serials(**wanted: Any) -> list[str | None]:
        chosen = DatasetFilter.model_validate_json(json.dumps(wanted))
        return [one.serial for one in select_boards(store.engine, chosen, acceptance_share=SHARE).boards]

    assert serials() == ["a", "b", "c"]
    assert serials(recipe="top") == ["a", "b"]
    assert serials(labels=["scratch"]) == ["a", "c"]
    assert serials(labels=["short"]) == []
    assert serials(since="2100-01-01T00:00:00Z") == serials(until="2001-01-01") == []
    assert serials(since="2001-01-01", until="2100-01-01T00:00:00+05:00") == ["a", "b", "c"]


def test_a_picture_that_came_twice_counts_once_as_it_was_said_last(store: Store) -> None:
    line = Verified(store)
    picture, _ = draw_pair(77)
    line.review(line.inspect(("short", SHORT), image=picture), ("false_call", "short"))
    line.review(line.inspect(("short", SHORT), image=picture), ("real", "short"))
    selection = select_boards(store.engine, ALL, acceptance_share=SHARE)
    assert [[one.kind for one in board.labels] for board in selection.boards] == [["real"]]
    assert selection.left_out == {"repeated": 1}


def test_a_picture_under_another_serial_stays_in_its_part(store: Store) -> None:
    """Else a model is judged on what it learnt from."""
    named = [f"board {n}" for n in range(40)]
    train = next(name for name in named if part_of(name, SHARE) == "train")
    held = next(name for name in named if part_of(name, SHARE) == "acceptance")
    line = Verified(store)
    for number, serials in enumerate(((train, held), (held, train), (train, None), (held, None))):
        picture, _ = draw_pair(50 + number)
        for serial in serials:
            line.review(line.inspect(("short", SHORT), image=picture, serial=serial), ("real", "short"))
    newest = store.page(limit=1)[0].report.created
    for since in (None, newest):
        wanted = DatasetFilter.model_validate({"since": since})
        boards = select_boards(store.engine, wanted, acceptance_share=SHARE).boards
        found = [(board.group, board.part) for board in boards]
        every = [(train, "train"), (held, "acceptance")] * 2
        assert found == (every if since is None else every[-1:])


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31"])
def test_a_time_at_the_end_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="after 1970 and before 9999"):
        DatasetFilter.model_validate({"since": text})


@pytest.mark.parametrize("damage", ["{", None])
def test_a_damaged_data_set_is_not_listed_and_is_written_again(
    store: Store, config: ServingConfig, damage: str | None
) -> None:
    line = Verified(store)
    for serial in ("a", "b"):
        line.scratch(serial=serial)
    made = export(store, config)
    summary = config.home_dir / made.folder / "dataset.json"
    summary.unlink()
    if damage is not None:
        summary.write_text(damage)
    assert list_datasets(config) == []
    again = export(store, config)
    assert again.fingerprint == made.fingerprint
    assert list_datasets(config) == [again]
    assert [path.name for path in (config.home_dir / "datasets").glob(".making-*")] == []


def test_retention_takes_no_picture_from_a_data_set(store: Store, config: ServingConfig) -> None:
    line = Verified(store)
    for serial in ("a", "b", "c", "d"):
        line.scratch(serial=serial)
    found = export(store, config)
    folder = config.home_dir / found.folder
    kept = {path: path.read_bytes() for path in folder.rglob("*.png")}
    assert len(kept) == 8
    assert prune(store, Limits(None, 0), pause_s=0.0).num_inspections == 4
    assert {path: path.read_bytes() for path in folder.rglob("*.png")} == kept
    assert export(store, config).pictures.train == 0, "a later one has what is left"


def test_the_reference_is_written_as_it_lies_under_the_board(store: Store, config: ServingConfig) -> None:
    line = Verified(store)
    board, golden = draw_pair(5)
    pixels, _ = read_image(golden)
    moved = np.roll(pixels, (2, 3), (0, 1))
    shifted = cv2.imencode(".png", moved[..., ::-1])[1].tobytes()
    line.review(line.inspect(serial="moved", image=board, reference=shifted))
    blank = cv2.imencode(".png", np.full((HEIGHT, WIDTH, 3), 200, np.uint8))[1].tobytes()
    line.review(line.inspect(serial="blank", reference=blank))
    found = export(store, config)
    assert (found.references.laid, found.references.not_laid) == (1, 1)
    (path,) = (config.home_dir / found.folder).rglob("*_temp.png")
    laid, _ = read_image(path.read_bytes())
    inside = (slice(20, -20), slice(20, -20))
    off = [np.abs(picture[inside].astype(int) - pixels[inside]).mean() for picture in (laid, moved)]
    assert off[0] < off[1] / 4, "brought back under the board"


def test_examples_are_shown_newest_first_and_counted_by_part(store: Store) -> None:
    line = Verified(store)
    first = line.inspect(("short", SHORT), ("short", SPUR), serial="one")
    line.review(first, ("real", "short"), ("false_call", "short"))
    second = line.inspect(("short", SHORT), serial="two")
    line.review(second, ("real", "scratch"), missed=[{"label": "scratch", "box_xyxy": [300, 240, 320, 256]}])
    selection = select_boards(store.engine, ALL, acceptance_share=1.0)
    page = list_examples(selection, label=None, limit=10)
    assert [(one.inspection, one.kind, one.label, one.part) for one in page.examples] == [
        (second, "reclassified", "scratch", "acceptance"),
        (second, "missed", "scratch", "acceptance"),
        (first, "real", "short", "acceptance"),
        (first, "false_call", "short", "acceptance"),
    ]
    assert {name: one.acceptance for name, one in page.counts.items()} == {"scratch": 2, "short": 1}
    assert page.examples[1].crop == f"/v1/inspections/{second}/crops/image?box=256,192,320,256"
    assert len(list_examples(selection, label="short", limit=1).examples) == 1


def test_training_finds_no_error_in_what_the_command_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    config = ServingConfig(home=tmp_path / "home", min_free_mb=0.0)
    with closing(Store(config)) as store:
        line = Verified(store)
        for n in range(10):
            line.scratch(serial=f"SN-{n}")
        line.review(line.inspect(("short", SHORT)), ("false_call", "short"))
    for name in [name for name in os.environ if name.startswith("INSPECT_VIT_")]:
        monkeypatch.delenv(name)
    for name, value in to_environment(config.model_copy(update={"acceptance_share": SHARE})).items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "set"
    with pytest.raises(SystemExit) as done:
        main(["data", "export", "--out", str(out), "--json"])
    assert done.value.code == 0
    told = Dataset.model_validate_json(capsys.readouterr().out)
    assert told.pictures.train + told.pictures.acceptance == 11
    assert told.pictures.train > 1 < told.pictures.acceptance
    for part in ("train", "acceptance"):
        with pytest.raises(SystemExit) as done:
            main(
                ["data", "check", str(out / part), "--out", str(tmp_path / f"check {part}"), "--workers", "1"]
            )
        assert done.value.code == 0, capsys.readouterr().out
        data = read_coco(out / part)
        assert not data.faults
        assert all(sample.reference is not None and sample.group for sample in data.samples)
        assert sum(label == "scratch" for sample in data.samples for label in sample.labels) == getattr(
            told.classes["scratch"], part
        )
    assert all(path.stat().st_nlink == 1 for path in out.rglob("*.png")), "a copy of its own"
