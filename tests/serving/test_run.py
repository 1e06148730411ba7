"""Starting the server: what cannot work is said before anything is started."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from inspect_vit.cli import main
from inspect_vit.errors import CheckpointError, ConfigError
from serving.config import ServingConfig
from serving.keys import create_key
from serving.roles import ANYONE, Role
from serving.run import prepare
from serving.store import Store


def test_a_port_in_use_is_named(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}.*--port"):
            prepare(tiny_checkpoint, port=port, environ={"INSPECT_VIT_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"host": "board-server"}, "not an IP address"),
        ({"port": 0}, "1..65535"),
        ({"port": 70000}, "1..65535"),
    ],
)
def test_an_address_that_cannot_be_is_named(
    tiny_checkpoint: Path, tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        prepare(tiny_checkpoint, environ={"INSPECT_VIT_HOME": str(tmp_path)}, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_without_keys_only_this_machine_is_served(tiny_checkpoint: Path, tmp_path: Path, host: str) -> None:
    environ = {"INSPECT_VIT_HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match=f"{host}: leave --without-keys"):
        prepare(tiny_checkpoint, host=host, without_keys=True, environ=environ)
    with pytest.raises(ConfigError, match="INSPECT_VIT_KEYS=off"):
        prepare(tiny_checkpoint, host=host, environ={**environ, "INSPECT_VIT_KEYS": "off"})


def test_who_starts_a_server_without_any_key_is_told_how_to_make_one(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    environ = {"INSPECT_VIT_HOME": str(tmp_path)}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "keys create --role admin" in prepare(tiny_checkpoint, port=port, environ=environ).notice
    without = prepare(tiny_checkpoint, port=port, without_keys=True, environ=environ)
    assert "Without keys" in without.notice
    assert without.environ["INSPECT_VIT_KEYS"] == "off"
    with closing(Store(ServingConfig(home=tmp_path))) as store:
        create_key(store.engine, "Li Wei", Role.ADMIN, by=ANYONE)
    assert prepare(tiny_checkpoint, port=port, environ=environ).notice == ""


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere\.safetensors"):
        prepare(tmp_path / "nowhere.safetensors", environ={"INSPECT_VIT_HOME": str(tmp_path)})


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
def test_a_damaged_checkpoint_ends_the_start_with_words(
    tiny_checkpoint: Path,
    tmp_path: Path,
    damage: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a user meets it: exit code 2 and one line, not a server that starts again and again."""
    whole = tiny_checkpoint.read_bytes()
    at = len(whole) - 1000
    data = {
        "cut": whole[:at],
        "flipped": whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 2]) + whole[at + 2 :],
        "empty": b"",
        "text": b"not a checkpoint",
    }
    checkpoint = tmp_path / "damaged.safetensors"
    checkpoint.write_bytes(data[damage])
    monkeypatch.setenv("INSPECT_VIT_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--checkpoint", str(checkpoint)])
    assert stopped.value.code == 2
    error = capfd.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "damaged.safetensors" in error


def test_a_device_that_is_not_there_is_named(tiny_checkpoint: Path, tmp_path: Path) -> None:
    environ = {"INSPECT_VIT_HOME": str(tmp_path), "INSPECT_VIT_DEVICE": "cuda:63"}
    with pytest.raises(ConfigError, match="cuda:63"):
        prepare(tiny_checkpoint, environ=environ)


def test_each_server_gets_a_framework_folder_of_its_own_and_makes_no_calls_home(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    environ = {"INSPECT_VIT_HOME": str(tmp_path)}
    ports = []
    for _ in range(2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
    one, other = (prepare(tiny_checkpoint, host="localhost", port=port, environ=environ) for port in ports)
    assert one.environ["BENTOML_HOME"] != other.environ["BENTOML_HOME"]
    assert one.environ["BENTOML_DO_NOT_TRACK"] == "true"
    assert one.url == f"http://127.0.0.1:{ports[0]}"
    assert one.argv[one.argv.index("--host") + 1] == "127.0.0.1"
    assert "--timeout-graceful-shutdown" in one.argv
