"""Sessions of the QA station: opened with a key, kept in the database, ended by time, logout or revocation.

The browser holds a random token in a cookie that scripts cannot read; the database holds its SHA-256.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from serving.audit import record, utc_now
from serving.database import KeyRow, SessionRow
from serving.errors import TooManyLoginsError
from serving.keys import actor_of, find_key
from serving.roles import Actor

COOKIE = "inspect_vit_session"
TOKEN_BYTES = 32
MAX_SESSIONS_OF_KEY = 50
"""A key that opens more loses its oldest ones."""
MAX_FAILURES, FAILURE_WINDOW_S = 10, 300.0
MAX_ADDRESSES = 10_000


@dataclass(frozen=True)
class OpenSession:
    actor: Actor
    expires: datetime


def open_session(engine: Engine, key: str, *, lifetime: timedelta) -> tuple[str, OpenSession] | None:
    """The token of a new session and the session; None when the key does not work."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with Session(engine) as session:
        row = find_key(session, key)
        if row is None:
            return None
        _tidy(session, row)
        expires = utc_now(lifetime)
        session.add(
            SessionRow(token_sha256=_digest(token), key_id=row.id, created=utc_now(), expires=expires)
        )
        actor = actor_of(row)
        record(session, actor, "session_opened", object_name=row.name)
        session.commit()
    return token, OpenSession(actor, datetime.fromisoformat(expires))


def find_session(engine: Engine, token: str) -> OpenSession | None:
    """The session of a token while it lasts and its key works."""
    with Session(engine) as session:
        found = _find(session, token)
        return found and OpenSession(actor_of(found[1]), datetime.fromisoformat(found[0].expires))


def close_session(engine: Engine, token: str) -> None:
    """End a session; one that is over already is no mistake."""
    with Session(engine) as session:
        found = _find(session, token)
        if found is not None:
            session.delete(found[0])
            record(session, actor_of(found[1]), "session_closed", object_name=found[1].name)
            session.commit()


class FailedLogins:
    """Failed logins by address, so that trying keys out is slow and fills neither memory nor log.

    IPv6 addresses count by their /64, which one machine usually owns whole. Of more than MAX_ADDRESSES the
    ones that failed longest ago are forgotten.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises TooManyLoginsError while an address has failed too often."""
        since, number = self._failures.get(_network(address), (0.0, 0))
        left_s = since + FAILURE_WINDOW_S - monotonic()
        if number >= MAX_FAILURES and left_s > 0:
            raise TooManyLoginsError(
                f"{number} logins from this address failed", retry_after_s=max(1, round(left_s))
            )

    def count(self, address: str) -> None:
        """Note a failed login."""
        now, network = monotonic(), _network(address)
        since, number = self._failures.pop(network, (now, 0))
        if now - since > FAILURE_WINDOW_S:
            since, number = now, 0
        self._failures[network] = since, number + 1
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)


def _find(session: Session, token: str) -> tuple[SessionRow, KeyRow] | None:
    query = (
        select(SessionRow, KeyRow)
        .join(KeyRow, KeyRow.id == SessionRow.key_id)
        .where(SessionRow.token_sha256 == _digest(token))
        .where(SessionRow.expires > utc_now(), KeyRow.revoked.is_(None))
    )
    row = session.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def _tidy(session: Session, row: KeyRow) -> None:
    """Make room for one session more: remove what has expired, and this key's oldest over the limit."""
    session.execute(delete(SessionRow).where(SessionRow.expires <= utc_now()))
    kept = (
        select(SessionRow.token_sha256)
        .where(SessionRow.key_id == row.id)
        .order_by(SessionRow.created.desc())
        .limit(MAX_SESSIONS_OF_KEY - 1)
    )
    session.execute(
        delete(SessionRow).where(SessionRow.key_id == row.id, SessionRow.token_sha256.not_in(kept))
    )


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(ip_network((found, 64), strict=False))
    return str(found)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
