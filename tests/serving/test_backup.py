"""A backup of a store in use, restored elsewhere, answers the same; what is damaged or in the way is told."""

from __future__ import annotations

import shutil
import tarfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from inspect_vit.cli import main
from serving.backup import SUMS, back_up
from serving.config import ServingConfig
from serving.database import make_engine
from serving.errors import StoreError
from serving.pictures import sha256_hex
from serving.restore import insert_rows, restore
from serving.retention import Limits, prune
from serving.rows import row_to_line
from serving.store import Store, StoredInspection

EXTRA = sa.Table(
    "extra",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("text", sa.String(32)),
    sa.Column("moment", sa.DateTime(timezone=True)),
    sa.Column("data", sa.LargeBinary),
    sa.Column("flag", sa.Boolean),
    sa.Column("share", sa.Float),
)
"""A table that this version's code knows nothing of, with every kind of column."""


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> ServingConfig:
    """Where to restore: a home that is not there yet and an empty database of either kind."""
    url = ""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").empty("restored")
    return ServingConfig(home=tmp_path / "restored", database_url=url, min_free_mb=0.0)


def contents(store: Store) -> dict[str, tuple[StoredInspection, bytes, bytes | None, bytes]]:
    found = store.page(limit=10_000)
    return {
        item.report.id: (item, store.read_image(item), store.read_reference(item), store.read_maps(item))
        for item in found
    }


def test_a_backup_under_load_answers_the_same_in_either_database(
    config: ServingConfig, target: ServingConfig, boards: Any, tmp_path: Path
) -> None:
    store = Store(config)
    stop = threading.Event()

    def load() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            # Half of the boards are pruned as soon as they are there, the other half failed.
            verdict = "PASS" if number % 2 else "FAIL"
            report = boards.report(serial=f"SN-{number % 5}", verdict=verdict, days_ago=9 - number % 3)
            boards.add(store, report, image=b"board %d" % number, key=f"key-{number}")
            prune(store, Limits(8.5, None), pause_s=0.0)

    for number in range(6):
        boards.add(store, boards.report(serial="SN-x"), image=b"first %d" % number)
    before = contents(store)
    (config.home_dir / "models" / "v1").mkdir(parents=True)
    (config.home_dir / "models" / "v1" / "weights").write_bytes(b"weights")
    loader = threading.Thread(target=load)
    loader.start()
    try:
        told = back_up(config, tmp_path / "backup.tar")
    finally:
        stop.set()
        loader.join()
    assert told.missing == ()
    after = contents(store)
    store.close()

    assert restore(target, tmp_path / "backup.tar").num_rows == told.num_rows
    restored = Store(target)
    found = contents(restored)
    assert restored.num_swept == 0
    assert len(found) == told.num_rows["inspections"]
    assert before.items() <= found.items(), "all that was there before"
    assert {key: after[key] for key in found.keys() & after.keys()} == {
        key: found[key] for key in found.keys() & after.keys()
    }
    assert (target.home_dir / "models" / "v1" / "weights").read_bytes() == b"weights"
    assert boards.add(restored, boards.report(serial="SN-x"), image=b"back again")
    assert restored.page(limit=1)[0].report.attempt == 7
    restored.close()


def test_every_kind_of_column_survives_and_numbers_go_on(
    config: ServingConfig, target: ServingConfig, tmp_path: Path
) -> None:
    moment = datetime(2026, 11, 29, 12, 0, 0, 123_456, tzinfo=UTC)
    row = {"text": "\u00b5 \x7f", "moment": moment, "data": bytes(range(256)), "flag": True, "share": 0.1}
    lines = tmp_path / "extra.jsonl"
    found = []
    for each in (config, target):
        each.home_dir.mkdir()
        engine = make_engine(each.sqlalchemy_url)
        with engine.begin() as connection:
            EXTRA.create(connection)
            if each is config:
                connection.execute(
                    EXTRA.insert(), [{**row, "number": 7}, {**dict.fromkeys(row), "number": 9}]
                )
            else:
                insert_rows(connection, EXTRA, lines)
            found.append(connection.execute(sa.select(EXTRA).order_by("number")).mappings().all())
            lines.write_bytes(b"".join(map(row_to_line, found[-1])))
            if each is target:
                assert connection.execute(EXTRA.insert().returning(EXTRA.c.number), row).scalar() == 10
        engine.dispose()
    # SQLite keeps no time zone; times are stored in UTC.
    assert [{**each, "moment": naive(each)} for each in found[0]] == [
        {**each, "moment": naive(each)} for each in found[1]
    ]
    assert naive(found[1][0]) == moment.replace(tzinfo=None)
    assert dict(found[1][0]) == {**row, "number": 7, "moment": found[1][0]["moment"]}


def naive(row: Any) -> datetime | None:
    return row["moment"].replace(tzinfo=None) if row["moment"] else None


def test_rows_of_a_table_that_the_schema_lacks_are_not_lost_in_silence(
    config: ServingConfig, target: ServingConfig, tmp_path: Path
) -> None:
    store = Store(config)
    with store.engine.begin() as connection:
        EXTRA.create(connection)
    back_up(config, tmp_path / "backup.tar")
    store.close()
    with pytest.raises(StoreError, match="extra"):
        restore(target, tmp_path / "backup.tar")
    assert not target.home_dir.exists()


def test_what_is_in_the_way_is_told(config: ServingConfig, boards: Any, tmp_path: Path) -> None:
    store = Store(config)
    boards.add(store, boards.report())
    store.close()
    archive = tmp_path / "backup.tar"
    back_up(config, archive)
    with pytest.raises(StoreError, match="is there already"):
        back_up(config, archive)
    with pytest.raises(StoreError, match="not empty"):
        restore(config, archive)
    with pytest.raises(StoreError, match="no store in"):
        back_up(ServingConfig(home=tmp_path / "elsewhere"), tmp_path / "other.tar")
    if config.database_url:
        with pytest.raises(StoreError, match=r"database .* is not empty"):
            restore(config.model_copy(update={"home": tmp_path / "new"}), archive)
        assert not (tmp_path / "new").exists()
    assert archive.stat().st_mode & 0o777 == 0o600, "boards and keys are nobody else's business"


def test_no_damaged_archive_is_restored_and_nothing_is_left(boards: Any, tmp_path: Path) -> None:
    source = ServingConfig(home=tmp_path / "source", min_free_mb=0.0)
    store = Store(source)
    image = bytes(range(256)) * 40
    boards.add(store, boards.report(), image=image)
    store.close()
    archive = tmp_path / "backup.tar"
    back_up(source, archive)
    whole = archive.read_bytes()
    target = ServingConfig(home=tmp_path / "target")

    def refused(data: bytes, words: str) -> None:
        (tmp_path / "damaged.tar").write_bytes(data)
        with pytest.raises(StoreError, match=words):
            restore(target, tmp_path / "damaged.tar")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.tar", "damaged.tar", "source"]

    refused(whole[:5000], "cut short|cannot be read")
    refused(whole[: whole.index(SUMS.encode())], "cut short|cannot be read")
    refused(b"", "cannot be read|cut short")
    refused(bytes(20_480), "cut short|cannot be read")
    at = whole.index(image) + 1000
    refused(whole[:at] + b"\xff\xff" + whole[at + 2 :], f"{sha256_hex(image)} .* is damaged")
    refused(whole.replace(b'"format": 1', b'"format": 9'), "format 9")
    refused(whole.replace(b'"format": 1', b'"format": \xff'), "manifest.json .* is damaged")
    refused(whole.replace(b'"format": 1', b'"format"; 1'), "manifest.json .* is damaged")
    refused(whole.replace(b"  manifest.json", b"  m\xffnifest.json"), "SHA256SUMS .* is damaged")
    with pytest.raises(StoreError, match="there is no archive"):
        restore(target, tmp_path / "nowhere.tar")
    with tarfile.open(tmp_path / "damaged.tar", "w") as tar:
        tar.add(archive, "home/../../escaped")
        (tmp_path / SUMS).write_text(f"{sha256_hex(whole)}  home/../../escaped\n")
        tar.add(tmp_path / SUMS, SUMS)
    (tmp_path / SUMS).unlink()
    refused((tmp_path / "damaged.tar").read_bytes(), "no part of a backup")
    restore(target, archive)
    assert len(contents(Store(target))) == 1


def test_pictures_that_were_removed_by_hand_are_named_and_left_out(
    boards: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands, from end to end."""
    store = Store(ServingConfig(home=tmp_path / "source", min_free_mb=0.0))
    report = boards.report(serial="SN-1", days_ago=3)
    boards.add(store, report)
    boards.add(store, boards.report())
    shutil.rmtree(tmp_path / "source" / "pictures" / store.page(limit=9)[1].day)
    store.close()
    monkeypatch.setenv("INSPECT_VIT_HOME", str(tmp_path / "source"))
    archive, target = tmp_path / "backup.tar", tmp_path / "target"
    for arguments in (
        ["backup", str(archive)],
        ["restore", str(archive), "--home", str(target)],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert not stopped.value.code
    captured = capsys.readouterr()
    assert f"{report.id}.npz" in captured.err
    assert "3 files are missing" in captured.err
    assert "2 inspections" in captured.out
    assert "3 files, 0.0 MB" in captured.out
    restored = Store(ServingConfig(home=target))
    assert restored.get(report.id).report.serial == "SN-1"
    restored.close()
