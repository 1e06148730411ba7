"""Migrations that no other test undoes, with data in what they drop."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import command

from serving.config import ServingConfig
from serving.database import AlarmRow, DriftRow, alembic_config, make_engine
from serving.store import Store

OF_0005 = {"drift_states", "alarms"}


def test_alarms_and_what_is_watched_go_and_come_without_an_inspection_lost(
    config: ServingConfig, boards: Any
) -> None:
    store = Store(config)
    for serial in ("A", "B"):
        boards.add(store, boards.report(serial=serial))
    store.close()
    engine = make_engine(config.sqlalchemy_url)
    watched = {"recipe": "panel", "reference": "top", "camera": "", "revision": 1, "model_version": "v"}
    drift = {**watched, "state": "{}"}
    alarm = {**watched, "raised": "2026-03-02T08:00:00.000+00:00", "kind": "drift", "subject": "light"}
    alarm |= {"message": "the light falls", "details": "{}"}
    everything = sa.text("SELECT * FROM inspections ORDER BY id")
    with engine.begin() as connection:
        before = connection.execute(everything).all()
        command.downgrade(alembic_config(connection), "0005")
        for _ in range(2):
            connection.execute(sa.insert(AlarmRow).values(alarm))
        connection.execute(sa.insert(DriftRow).values(drift))
        assert connection.execute(sa.select(AlarmRow.id).order_by(AlarmRow.id)).scalars().all() == [1, 2]
        command.downgrade(alembic_config(connection), "0004")
        assert not OF_0005 & set(sa.inspect(connection).get_table_names())
        assert connection.execute(everything).all() == before
        command.upgrade(alembic_config(connection), "0005")
        there = sa.inspect(connection)
        assert set(there.get_table_names()) >= OF_0005
        assert [one["name"] for one in there.get_indexes("alarms")] == ["ix_alarms_acknowledged_recipe"]
        for table in (AlarmRow, DriftRow):
            assert connection.execute(sa.select(table)).all() == [], "nothing is made up of what was dropped"
        connection.execute(sa.insert(AlarmRow).values(alarm))
        assert connection.execute(everything).all() == before
        command.upgrade(alembic_config(connection), "head")
        assert connection.execute(sa.select(AlarmRow.subject)).scalars().all() == ["light"]
    engine.dispose()
    store = Store(config)
    assert [one.report.serial for one in store.page(limit=9)] == ["B", "A"]
    store.close()
