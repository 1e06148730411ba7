"""`inspect-vit keys` and `inspect-vit audit`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from inspect_vit.cli import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_VIT_HOME", str(tmp_path))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    return int(str(done.value.code or 0))


def test_a_key_is_shown_once_listed_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("keys", "create", "--role", "line", "--name", "AOI 3") == 0
    key = capsys.readouterr().out.strip()
    assert re.fullmatch(r"ivk_[0-9a-f]{8}_[0-9a-f]{40}", key), "the key alone, so that a script can take it"

    assert run("keys", "list") == 0
    assert run("keys", "list", "--json") == 0
    shown = capsys.readouterr().out
    assert "AOI 3" in shown and key[:12] in shown
    assert key[12:] not in shown
    listed = json.loads(shown.splitlines()[-1])
    assert (listed["name"], listed["role"], listed["revoked"]) == ("AOI 3", "line", None)

    assert run("keys", "revoke", "AOI 3") == 0
    assert "answered 401" in capsys.readouterr().err
    assert run("audit", "--json") == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["action"] for entry in entries] == ["key_revoked", "key_created"]
    assert all(entry["actor"].startswith("(command line: ") for entry in entries)
    assert run("audit", "--action", "key_created") == 0
    shown = capsys.readouterr().out
    assert "key_created" in shown and "AOI 3" in shown and "key_revoked" not in shown
    assert key[12:] not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("keys", "create", "--role", "boss", "--name", "x"),
            "wanted one of line, operator, engineer, admin",
        ),
        (("keys", "create", "--role", "line", "--name", " "), "cannot be named"),
        (("keys", "revoke", "nobody"), "does not exist; keys that work: none"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
