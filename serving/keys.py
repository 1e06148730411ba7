"""API keys: made and shown once, kept as hashes, each with a name and a role.

A key is 160 random bits, which nobody can guess or try out, so one SHA-256 keeps it safe at rest: slow
hashes and salts are for passwords, which people choose. Its first part is no secret: it finds the row, whose
hash is then compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from sqlalchemy import Engine, delete, exists, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from inspect_vit.errors import ConfigError
from serving.audit import record, utc_now
from serving.database import KeyRow, SessionRow
from serving.roles import Actor, Role

ID_BYTES, SECRET_BYTES = 4, 20
KEY_FORM = re.compile(rf"ivk_([0-9a-f]{{{2 * ID_BYTES}}})_[0-9a-f]{{{2 * SECRET_BYTES}}}")
"""The prefix lets scanners for leaked secrets know one when they see it."""
MAX_NAME_CHARS = 100


@dataclass(frozen=True)
class KeyInfo:
    """What is known of a key, but for the key. Times are UTC texts; `revoked` is None while it works."""

    id: str
    name: str
    role: Role
    created: str
    revoked: str | None


def create_key(engine: Engine, name: str, role: Role, *, by: Actor) -> str:
    """Make a key; the returned text is nowhere else, so show it.

    Raises:
        ConfigError: a name that is unfit, or that a key has or had: the audit trail speaks of keys by name.
    """
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable() or name.startswith("("):
        raise ConfigError(
            f"a key cannot be named {name[:120]!r}; wanted 1 to {MAX_NAME_CHARS} printable characters, "
            "the first no bracket, such as 'AOI 3'"
        )
    key_id = secrets.token_hex(ID_BYTES)
    key = f"ivk_{key_id}_{secrets.token_hex(SECRET_BYTES)}"
    try:
        with Session(engine) as session:
            session.add(KeyRow(id=key_id, name=name, role=role.value, sha256=_digest(key), created=utc_now()))
            record(session, by, "key_created", object_name=name, details={"id": key_id, "role": role.value})
            session.commit()
    except IntegrityError as error:
        raise ConfigError(
            f"a key named {name!r} is or was there, and the audit trail knows it by that name; take another"
        ) from error
    return key


def revoke_key(engine: Engine, name: str, *, by: Actor) -> KeyInfo:
    """End a key and its sessions; the next request with it is refused.

    Raises:
        ConfigError: no key of that name works.
    """
    with Session(engine) as session:
        row = session.scalar(select(KeyRow).where(KeyRow.name == name))
        if row is None or row.revoked is not None:
            names = session.scalars(select(KeyRow.name).where(KeyRow.revoked.is_(None)).order_by(KeyRow.name))
            known = ", ".join(repr(found) for found in names) or "none"
            state = "does not exist" if row is None else f"was revoked at {row.revoked}"
            raise ConfigError(f"the key {name[:120]!r} {state}; keys that work: {known}")
        row.revoked = utc_now()
        session.execute(delete(SessionRow).where(SessionRow.key_id == row.id))
        record(session, by, "key_revoked", object_name=name, details={"id": row.id, "role": row.role})
        info = _to_info(row)
        session.commit()
    return info


def list_keys(engine: Engine) -> list[KeyInfo]:
    """All keys there ever were, oldest first."""
    with Session(engine) as session:
        return [_to_info(row) for row in session.scalars(select(KeyRow).order_by(KeyRow.created, KeyRow.id))]


def has_keys(engine: Engine) -> bool:
    """Whether any key works."""
    with Session(engine) as session:
        return bool(session.scalar(select(exists().where(KeyRow.revoked.is_(None)))))


def find_key(session: Session, key: str) -> KeyRow | None:
    """The row of a key that works, or None; why not is not told."""
    form = KEY_FORM.fullmatch(key)
    row = session.get(KeyRow, form[1]) if form else None
    if row is None or not hmac.compare_digest(row.sha256, _digest(key)) or row.revoked is not None:
        return None
    return row


def actor_of(row: KeyRow) -> Actor:
    return Actor(name=row.name, role=Role(row.role))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _to_info(row: KeyRow) -> KeyInfo:
    return KeyInfo(id=row.id, name=row.name, role=Role(row.role), created=row.created, revoked=row.revoked)
