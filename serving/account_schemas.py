"""The wire format of logins and the audit trail."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, Field

from inspect_vit.config import Frozen
from serving.roles import Role
from serving.schemas import Wire


class LoginRequest(Frozen):
    """The body of POST /v1/session."""

    key: str = Field(max_length=200, description="an API key; the cookie that is set stands for it")


class SessionReport(Wire):
    actor: str | None = Field(description="name of the key; null: this server runs without keys")
    role: Role
    expires: AwareDatetime | None = Field(description="end of the session; null: no session, the key itself")


class AuditEntry(Wire):
    id: int
    time: AwareDatetime
    actor: str = Field(description="name of the key, or in brackets: (without keys), (command line: USER)")
    role: str
    action: str
    object: str = Field(description="what it was done to")
    details: dict[str, Any]
    model_version: str | None


class AuditPage(Wire):
    entries: tuple[AuditEntry, ...] = Field(description="newest first")
    next: str | None = Field(description="link to the next page, null on the last one")
