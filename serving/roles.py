"""Who asks, and what a role may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a key may do; each role may do all that the ones before it may."""

    LINE = "line"
    OPERATOR = "operator"
    ENGINEER = "engineer"
    ADMIN = "admin"

    def covers(self, wanted: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(wanted)


@dataclass(frozen=True)
class Actor:
    """Whoever made a request: the name and role of its key. Without keys: no name, and every right."""

    name: str | None
    role: Role

    @property
    def sees_only(self) -> str | None:
        """The actor whose inspections alone this one may see: a line sees its own. None: all."""
        return self.name if self.role is Role.LINE else None


ANYONE = Actor(name=None, role=Role.ADMIN)
"""The actor of every request to a server without keys."""
SERVICE = Actor(name="(service)", role=Role.ADMIN)
"""The actor of what the service does by itself."""
