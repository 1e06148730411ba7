"""Keys, sessions and the audit trail in the database: what is kept, refused, and cannot be changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.orm import Session

from inspect_vit.errors import ConfigError
from serving.access import identify
from serving.audit import read_audit, record_alone
from serving.config import ServingConfig
from serving.database import MIGRATIONS, make_engine
from serving.errors import TooManyLoginsError, UnauthorizedError
from serving.keys import create_key, find_key, has_keys, list_keys, revoke_key
from serving.roles import ANYONE, Actor, Role
from serving.sessions import (
    MAX_ADDRESSES,
    MAX_FAILURES,
    MAX_SESSIONS_OF_KEY,
    FailedLogins,
    close_session,
    find_session,
    open_session,
)
from serving.store import Store

HOUR = timedelta(hours=1)
REFUSAL = "append-only"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(ServingConfig(home=tmp_path / "home", min_free_mb=0.0))
    yield store
    store.close()


@pytest.fixture
def engine(store: Store) -> sa.Engine:
    return store.engine


def works(engine: sa.Engine, key: str) -> bool:
    with Session(engine) as session:
        return find_key(session, key) is not None


def test_a_key_is_kept_as_its_hash_alone(engine: sa.Engine, tmp_path: Path) -> None:
    key = create_key(engine, " AOI 3 ", Role.LINE, by=ANYONE)
    token, _ = open_session(engine, key, lifetime=HOUR) or ("", None)
    assert token
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").glob("inspect-vit.db*"))
    for secret in (key, token):
        assert hashlib.sha256(secret.encode()).hexdigest().encode() in kept
        assert secret[-40:].encode() not in kept
    (info,) = list_keys(engine)
    assert (info.name, info.role, info.revoked) == ("AOI 3", Role.LINE, None)


def test_keys_that_do_not_work(engine: sa.Engine) -> None:
    assert not has_keys(engine)
    key = create_key(engine, "AOI 3", Role.LINE, by=ANYONE)
    other = create_key(engine, "AOI 4", Role.LINE, by=ANYONE)
    assert works(engine, key)
    crossed = "_".join([*key.split("_")[:2], other.split("_")[2]])
    for wrong in (
        "",
        "ivk_",
        key[:-1],
        key + "0",
        key.upper(),
        crossed,
        f"ivk_{'0' * 8}_{'0' * 40}",
        f"{key}\n",
    ):
        assert not works(engine, wrong), wrong
    revoke_key(engine, "AOI 3", by=ANYONE)
    assert not works(engine, key)
    assert works(engine, other)
    with pytest.raises(ConfigError, match="was revoked at 20"):
        revoke_key(engine, "AOI 3", by=ANYONE)
    with pytest.raises(ConfigError, match="keys that work: 'AOI 4'"):
        revoke_key(engine, "AOI 5", by=ANYONE)
    with pytest.raises(ConfigError, match="is or was there"):
        create_key(engine, "AOI 3", Role.LINE, by=ANYONE)


def test_a_refusal_says_how_to_make_the_first_key(engine: sa.Engine) -> None:
    with pytest.raises(UnauthorizedError) as refused:
        identify(engine, None, None)
    assert "inspect-vit keys create --role admin" in refused.value.hint
    create_key(engine, "AOI 3", Role.LINE, by=ANYONE)
    with pytest.raises(UnauthorizedError) as refused:
        identify(engine, None, None)
    assert "keys create" not in refused.value.hint


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\x00b", "two\nlines", "(command line: root)"])
def test_names_that_would_spoil_the_audit_trail(engine: sa.Engine, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be named"):
        create_key(engine, name, Role.LINE, by=ANYONE)
    assert list_keys(engine) == []


def test_roles_contain_each_other_in_order() -> None:
    names = ["line", "operator", "engineer", "admin"]
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            assert Role(one).covers(Role(other)) == (i >= j)


def test_a_session_lasts_until_its_time_logout_or_revocation(engine: sa.Engine) -> None:
    key = create_key(engine, "Li Wei", Role.OPERATOR, by=ANYONE)

    def opened(lifetime: timedelta = HOUR) -> str:
        found = open_session(engine, key, lifetime=lifetime)
        assert found is not None
        return found[0]

    assert open_session(engine, key[:-1] + "x", lifetime=HOUR) is None
    over, left, revoked = opened(timedelta(seconds=-1)), opened(), opened()
    assert find_session(engine, over) is None
    found = find_session(engine, left)
    assert found is not None
    assert found.actor == Actor("Li Wei", Role.OPERATOR)
    close_session(engine, left)
    close_session(engine, left)
    assert find_session(engine, left) is None
    assert find_session(engine, revoked) is not None
    revoke_key(engine, "Li Wei", by=ANYONE)
    assert find_session(engine, revoked) is None
    assert find_session(engine, "") is None


def test_a_key_has_a_bounded_number_of_sessions(engine: sa.Engine) -> None:
    key = create_key(engine, "Li Wei", Role.OPERATOR, by=ANYONE)
    for _ in range(MAX_SESSIONS_OF_KEY + 3):
        assert open_session(engine, key, lifetime=HOUR)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM sessions")).scalar() == MAX_SESSIONS_OF_KEY


def test_failed_logins_block_their_address_alone_in_bounded_memory() -> None:
    failed = FailedLogins()
    for _ in range(MAX_FAILURES):
        failed.check("2001:db8::1")
        failed.count("2001:db8::1")
    with pytest.raises(TooManyLoginsError) as refused:
        failed.check("2001:db8::ffff")  # the same /64
    assert 0 < refused.value.retry_after_s <= 300
    failed.check("2001:db8:0:1::1")
    failed.check("192.0.2.1")
    for number in range(MAX_ADDRESSES):
        failed.count(f"10.0.{number // 256}.{number % 256}")
    assert len(failed._failures) == MAX_ADDRESSES
    failed.check("2001:db8::1")


def test_every_change_of_keys_is_in_the_trail_and_nothing_else(engine: sa.Engine) -> None:
    boss = Actor("boss", Role.ADMIN)
    key = create_key(engine, "AOI 3", Role.LINE, by=boss)
    with pytest.raises(ConfigError):
        create_key(engine, "AOI 3", Role.LINE, by=boss)
    token, _ = open_session(engine, key, lifetime=HOUR) or ("", None)
    close_session(engine, token)
    revoke_key(engine, "AOI 3", by=boss)
    entries = read_audit(engine, limit=10)
    assert [(entry.actor, entry.action, entry.object) for entry in reversed(entries)] == [
        ("boss", "key_created", "AOI 3"),
        ("AOI 3", "session_opened", "AOI 3"),
        ("AOI 3", "session_closed", "AOI 3"),
        ("boss", "key_revoked", "AOI 3"),
    ]
    assert [entry.action for entry in read_audit(engine, limit=1, before=entries[1].id)] == ["session_opened"]
    assert {entry.action for entry in read_audit(engine, limit=9, actor="boss")} == {
        "key_created",
        "key_revoked",
    }
    assert len(read_audit(engine, limit=9, action="key_revoked")) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE id = 1",
        "REPLACE INTO audit (id, time, actor, role, action, object, details) "
        "VALUES (1, '', '', '', '', '', '')",
    ],
)
def test_the_audit_trail_takes_no_change(engine: sa.Engine, statement: str) -> None:
    record_alone(engine, ANYONE, "model_promoted", object_name="nano", model_version="0123456789ab")
    before = read_audit(engine, limit=9)
    with pytest.raises(sa.exc.DBAPIError, match=REFUSAL), engine.begin() as connection:
        connection.execute(sa.text(statement))
    assert read_audit(engine, limit=9) == before
    assert before[0].model_version == "0123456789ab"


def test_the_migration_goes_up_and_down_over_data(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'old.db'}")

    def go(revision: str) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            to = command.upgrade if revision != "0001" or not seen else command.downgrade
            to(config, revision)
        seen.append(revision)

    def rows(query: str) -> list[tuple[object, ...]]:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]

    seen: list[str] = []
    go("0001")
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO inspections (id, verdict, model_version, image_sha256, request_sha256, report) "
                "VALUES ('a', 'PASS', 'm', 'i', 'r', '{}')"
            )
        )
    go("0002")
    assert rows("SELECT id, verdict, actor FROM inspections") == [("a", "PASS", None)]
    key = create_key(engine, "AOI 3", Role.LINE, by=ANYONE)
    assert open_session(engine, key, lifetime=HOUR)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE inspections SET actor = 'AOI 3'"))
    go("0001")
    assert sa.inspect(engine).get_table_names() == ["alembic_version", "inspections"]
    assert rows("SELECT id, report FROM inspections") == [("a", "{}")]
    assert "actor" not in {column["name"] for column in sa.inspect(engine).get_columns("inspections")}
    go("0002")
    assert rows("SELECT id, actor FROM inspections") == [("a", None)]
    assert not has_keys(engine)
    engine.dispose()
