"""gate.json travels to the service whole, and what is no gate.json is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.gate_report import AcceptanceSet, FalseCallResult, Gate, Side, load_gate, save_gate

GATE = Gate(
    result="insufficient",
    words=("INSUFFICIENT: b against a",),
    created="2026-11-30T10:00:00+00:00",
    base=Side(name="a", version="0" * 12),
    candidate=Side(name="b", version="1" * 12),
    data=AcceptanceSet(sets=("boards, all",), fingerprint="0123456789ab", pictures=0, boards=0, defects=0),
    mode="with_reference",
    unit="group",
    found_by="own class",
    recipe=None,
    margin=0.02,
    false_call_margin=0.02,
    confidence=0.95,
    thresholds={"short": 0.3},
    base_thresholds={"short": 0.4},
    calibration=None,
    classes=(),
    false_calls=FalseCallResult(
        result="insufficient", num_boards=0, base_boards=0, candidate_boards=0, newly=0, cleared=0,
        bound=None, net_bound=None, needs=149, calls=(),
    ),
    new_classes=(),
    retired_classes=(),
)  # fmt: skip


def test_a_gate_is_read_as_it_was_written(tmp_path: Path) -> None:
    save_gate(tmp_path / "new" / "gate.json", GATE)
    assert load_gate(tmp_path / "new" / "gate.json") == GATE


def test_what_is_no_gate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    with pytest.raises(ConfigError, match="cannot read the gate's answer"):
        load_gate(path)
    path.write_text("{")
    with pytest.raises(ConfigError, match="evaluate --against makes one"):
        load_gate(path)
    tree = json.loads(GATE.model_dump_json())
    for change, words in (
        ({"result": "maybe"}, "result"),
        ({"format": 2}, "format"),
        ({"extra": 1}, "extra"),
    ):
        path.write_text(json.dumps(tree | change))
        with pytest.raises(ConfigError, match=words):
            load_gate(path)
