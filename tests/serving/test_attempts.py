"""A board that comes back is the next attempt of its serial; a request sent again is the same one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa
from alembic import command
from sqlalchemy.orm import Session

from serving.attempts import check_sender
from serving.config import ServingConfig
from serving.database import alembic_config, make_engine
from serving.errors import OvertakenError
from serving.pictures import sha256_hex
from serving.store import Store


def attempts(store: Store, serial: str) -> list[int | None]:
    """Oldest first."""
    return [item.report.attempt for item in reversed(store.page(limit=100, serial=serial))]


def test_each_new_picture_of_a_serial_is_the_next_attempt(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    for image in (b"dirty", b"cleaned", b"dirty", b"cleaned again"):
        boards.add(store, boards.report(serial="SN-1"), image=image)
    boards.add(store, boards.report(serial="SN-2"), image=b"other board")
    boards.add(store, boards.report(), image=b"nameless")
    assert attempts(store, "SN-1") == [1, 2, 1, 3], "the third is the first request sent again"
    assert attempts(store, "SN-2") == [1]
    assert store.page(limit=1)[0].report.attempt is None
    assert [item.report.serial for item in store.page(limit=10, serial="SN-1")] == ["SN-1"] * 4
    store.close()


def test_two_services_never_give_one_number_to_two_pictures(config: ServingConfig, boards: Any) -> None:
    stores = [Store(config.model_copy(update={"database_wait_s": 30.0})) for _ in range(2)]

    def add(number: int) -> None:
        boards.add(stores[number % 2], boards.report(serial="SN-1"), image=b"picture %d" % number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))
    assert sorted(number or 0 for number in attempts(stores[0], "SN-1")) == list(range(1, 25))
    for store in stores:
        store.close()


def test_two_services_store_one_key_once(config: ServingConfig, boards: Any) -> None:
    stores = [Store(config.model_copy(update={"database_wait_s": 30.0})) for _ in range(2)]

    def add(number: int) -> bool:
        return bool(boards.add(stores[number % 2], boards.report(), key="line-3/8"))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 1
    assert len(stores[1].page(limit=100)) == 1
    for store in stores:
        store.close()


def test_the_first_serial_of_a_picture_is_found(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    boards.add(store, boards.report(), image=b"picture")
    digest = store.page(limit=1)[0].image_sha256
    assert store.first_sender(digest) is None, "a picture without a serial belongs to nobody"
    first = boards.report(serial="SN-1")
    boards.add(store, first, image=b"picture")
    boards.add(store, boards.report(serial="SN-2"), image=b"picture")
    assert store.first_sender(digest) == (first.id, "SN-1", None)
    store.close()


def test_two_services_never_take_one_picture_for_two_boards(config: ServingConfig, boards: Any) -> None:
    """All have looked who sent it before any of them stores it."""
    stores = [Store(config.model_copy(update={"database_wait_s": 30.0})) for _ in range(2)]
    digest = sha256_hex(b"picture")

    def add(number: int) -> bool:
        report = boards.report(serial=f"SN-{number}", verdict="PASS")

        def check(session: Session) -> None:
            check_sender(session, report.id, image_sha256=digest, serial=f"SN-{number}")

        try:
            return bool(boards.add(stores[number % 2], report, image=b"picture", beside=check))
        except OvertakenError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 1
    (kept,) = stores[0].page(limit=100)
    assert stores[1].first_sender(digest) == (kept.report.id, kept.report.serial, None)
    names = {path.name for path in stores[0].pictures.root.rglob("*") if path.is_file()}
    assert {name for name in names if name.endswith(".npz")} == {f"{kept.report.id}.npz"}
    assert add(int(str(kept.report.serial).removeprefix("SN-"))), "the same board may come again"
    for store in stores:
        store.close()


def test_migrations_up_and_down_keep_every_inspection(config: ServingConfig, boards: Any) -> None:
    """0001 -> head numbers what is there as adding it would have; head -> 0001 leaves what 0001 reads."""
    config.home_dir.mkdir()
    engine = make_engine(config.sqlalchemy_url)
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), "0001")
        columns = {column["name"] for column in sa.inspect(connection).get_columns("inspections")}
        for serial, image in [("A", "x"), (None, "n"), ("A", "y"), ("B", "z"), ("A", "x"), ("A", "w")]:
            report = boards.report(serial=serial)
            row = {
                "id": report.id,
                "verdict": "FAIL",
                "serial": serial,
                "recipe": None,
                "model_version": "v",
                "image_sha256": image,
                "reference_sha256": None,
                "idempotency_key": None,
                "request_sha256": "d",
                "report": report.model_dump_json(exclude={"attempt"}),
            }
            table = sa.table("inspections", *map(sa.column, row))
            connection.execute(table.insert(), row)
        before = connection.execute(sa.select(*map(sa.column, sorted(columns))).select_from(table)).all()
    store = Store(config)
    assert attempts(store, "A") == [1, 2, 1, 3]
    assert attempts(store, "B") == [1]
    assert store.page(limit=10)[4].report.attempt is None
    store.close()
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "0001")
        assert {column["name"] for column in sa.inspect(connection).get_columns("inspections")} == columns
        after = connection.execute(sa.select(*map(sa.column, sorted(columns))).select_from(table)).all()
        assert sorted(map(tuple, after)) == sorted(map(tuple, before))
        command.downgrade(alembic_config(connection), "base")
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]
        command.upgrade(alembic_config(connection), "head")
    engine.dispose()
