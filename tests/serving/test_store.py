"""The store on its own: order of writing, what a second process may do, migrations, a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from serving.archive import pack_maps, unpack_result
from serving.config import ServingConfig
from serving.database import Base
from serving.errors import IdempotencyConflictError, NotFoundError, StorageFullError, StoreError
from serving.ids import day_of
from serving.pictures import PictureFiles, no_room
from serving.store import Store


def names(config: ServingConfig) -> set[str]:
    return {path.name for path in (config.home_dir / "pictures").rglob("*") if path.is_file()}


def test_maps_survive_packing_within_half_a_step_of_8_bits(boards: Any) -> None:
    result = boards.result
    restored = unpack_result(boards.report(), pack_maps(result))
    assert np.abs(restored.defect_map - result.defect_map).max() <= 0.5 / 255 + 1e-6
    for level, gate in result.gate_maps.items():
        assert np.abs(restored.gate_maps[level] - gate).max() <= 0.5 / 255 + 1e-6
    for field in ("verdict", "reasons", "defects", "class_names", "thresholds", "width", "with_reference"):
        assert getattr(restored, field) == getattr(result, field)


def test_what_was_added_is_read_by_the_next_server(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    report = boards.report(serial="SN-1")
    stored, _ = store.add(
        report,
        image=b"board",
        reference=b"golden",
        maps=b"maps",
        thresholds={},
        request_sha256="d",
        idempotency_key=None,
    )
    store.close()
    later = Store(config)
    found = later.get(report.id)
    assert found == stored
    assert found.report.timings_ms["store"] > 0
    assert found.report.model_copy(update={"timings_ms": report.timings_ms, "attempt": None}) == report
    assert later.read_image(found) == b"board"
    assert later.read_reference(found) == b"golden"
    assert later.read_maps(found) == b"maps"
    assert later.num_swept == 0
    later.close()


def test_files_without_a_row_are_swept_at_the_next_start(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    report = boards.report()
    boards.add(store, report)
    kept = names(config)
    store.pictures.write_all(day_of(report.id), {"0" * 64: b"orphan", f"{store.new_id()[0]}.npz": b"orphan"})
    store.close()
    later = Store(config)
    assert later.num_swept == 2
    assert names(config) == kept
    later.close()


def test_a_second_server_never_sweeps_what_the_first_is_writing(config: ServingConfig, boards: Any) -> None:
    first = Store(config)
    report = boards.report()
    boards.add(first, report)
    first.pictures.write_all(day_of(report.id), {"0" * 64: b"written, its row is about to be committed"})
    second = Store(config)
    assert second.num_swept == 0
    assert "0" * 64 in names(config)
    second.close()
    first.close()


def test_a_row_that_cannot_be_committed_leaves_no_maps(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    report = boards.report()
    boards.add(store, report)
    before = names(config)
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE inspections"))
    with pytest.raises(sa.exc.DBAPIError):
        boards.add(store, boards.report())
    assert names(config) == before
    store.close()


def test_a_key_names_one_request(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    first = boards.report()
    assert boards.add(store, first, key="k", digest="a")
    before = names(config)
    assert not boards.add(store, boards.report(), key="k", digest="a"), "the first answer stands"
    assert names(config) == before
    with pytest.raises(IdempotencyConflictError, match=first.id):
        boards.add(store, boards.report(), key="k", digest="b")
    assert store.find_by_key("unknown", "a") is None
    store.close()


def test_pages_filter_and_continue(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    reports = [boards.report(serial=f"SN-{number % 2}") for number in range(6)]
    for report in reports:
        boards.add(store, report)
    newest_first = sorted((report.id for report in reports), reverse=True)
    assert [item.report.id for item in store.page(limit=4)] == newest_first[:4]
    assert [item.report.id for item in store.page(limit=9, before=newest_first[3])] == newest_first[4:]
    assert {item.report.serial for item in store.page(limit=9, serial="SN-1")} == {"SN-1"}
    assert store.page(limit=9, verdict="PASS") == []
    store.close()


def test_pictures_of_a_removed_day_are_reported_as_removed(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    report = boards.report()
    boards.add(store, report)
    shutil.rmtree(config.home_dir / "pictures" / day_of(report.id))
    with pytest.raises(NotFoundError, match=day_of(report.id)):
        store.read_image(store.get(report.id))
    store.close()


def test_the_migrations_make_the_tables_that_the_code_declares(config: ServingConfig) -> None:
    store = Store(config)
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    store.close()


def test_sqlite_waits_for_the_disk_and_for_others(tmp_path: Path) -> None:
    store = Store(ServingConfig(home=tmp_path, database_wait_s=10.0))
    with store.engine.connect() as connection:
        found = {
            pragma: connection.execute(sa.text(f"PRAGMA {pragma}")).scalar()
            for pragma in ("journal_mode", "synchronous", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 10_000}
    store.close()


def test_a_database_of_a_newer_version_is_refused(config: ServingConfig) -> None:
    store = Store(config)
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(StoreError, match="newer inspect-vit"):
        Store(config)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="INSPECT_VIT_HOME"):
        Store(ServingConfig(home=tmp_path / "file" / "home"))


def test_too_little_room_is_told_before_anything_is_written(tmp_path: Path) -> None:
    pictures = PictureFiles(tmp_path, min_free_bytes=10**18)
    with pytest.raises(StorageFullError, match="MB free"):
        pictures.check_room()


def test_a_disk_that_fills_while_writing_leaves_no_half_file(tmp_path: Path) -> None:
    """A file size limit stands for the full disk: the write fails half way, as on one."""
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from serving.errors import StorageFullError\n"
        "from serving.pictures import PictureFiles\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "pictures = PictureFiles(Path(sys.argv[1]), min_free_bytes=0)\n"
        "try:\n"
        "    pictures.write_all('2026-01-01', {'a': bytes(10), 'b': bytes(5000)})\n"
        "except StorageFullError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert "the disk is full" in done.stdout
    assert [path.name for path in (tmp_path / "2026-01-01").iterdir()] == ["a"]


def test_every_way_a_disk_is_full_is_storage_full() -> None:
    for number in (errno.ENOSPC, errno.EDQUOT):
        assert os.strerror(number) in str(no_room(OSError(number, os.strerror(number))))
