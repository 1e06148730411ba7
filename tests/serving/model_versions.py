"""A home with three model versions, and what the gate says of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.model_start import start_with
from serving.registry import add_version
from serving.roles import Actor, Role
from serving.store import Store

ENGINEER = Actor("ada", Role.ENGINEER)


@dataclass(frozen=True)
class Versions:
    """A home with a in production, and the candidates b, made from it, and c, which knows a class more."""

    home: Path
    checkpoints: tuple[Path, Path, Path]

    def fill(self, store: Store, home: Path) -> list[str]:
        """Add them to a store, of which the folders may be there already."""
        a = start_with(store.engine, home, self.checkpoints[0])
        b = add_version(store.engine, home, self.checkpoints[1], parent=a, actor=ENGINEER).version
        return [a, b, add_version(store.engine, home, self.checkpoints[2], actor=ENGINEER).version]


def gate(base: str, candidate: str, result: str = "pass", **changes: Any) -> dict[str, Any]:
    """What `evaluate --against` writes, of an acceptance set without defects."""
    false_calls = {"result": "pass", "num_boards": 9, "base_boards": 0, "candidate_boards": 0, "newly": 0}
    false_calls |= {"cleared": 0, "bound": 0.01, "net_bound": 0.01, "needs": 0, "calls": []}
    return {
        **{"format": 1, "result": result, "words": [f"{result}: spur"], "created": "2026-11-30T10:00:00Z"},
        **{"base": {"name": "a", "version": base}, "candidate": {"name": "b", "version": candidate}},
        "data": {"sets": ["x"], "fingerprint": "f" * 12, "pictures": 9, "boards": 9, "defects": 0},
        **{"mode": "with_reference", "unit": "group", "found_by": "own class", "recipe": None},
        **{"margin": 0.02, "false_call_margin": 0.02, "confidence": 0.95},
        **{"thresholds": {}, "base_thresholds": {}, "calibration": None, "classes": []},
        **{"false_calls": false_calls, "new_classes": [], "retired_classes": []},
        **changes,
    }
