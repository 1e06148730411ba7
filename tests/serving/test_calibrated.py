"""A service with a calibration says in every report what its thresholds promise, and when they do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspect_vit.calibration import Calibration, save_calibration
from inspect_vit.checkpoint import read_metadata
from inspect_vit.errors import ConfigError
from serving.run import prepare


def test_every_report_carries_the_claims_or_why_they_are_void(
    start_server: Any,
    make_calibration: Callable[..., Calibration],
    tiny_checkpoint: Path,
    board_png: bytes,
    tmp_path: Path,
) -> None:
    metadata = read_metadata(tiny_checkpoint)
    thresholds = dict.fromkeys(metadata.model.class_names, 0.0101)
    calibration = make_calibration(thresholds, metadata.version, reference_mode="without_reference")
    save_calibration(tmp_path / "c.json", calibration)
    home = tmp_path / "home"
    home.mkdir()
    running = start_server(home, CALIBRATION=str(tmp_path / "c.json"), CAMERA="line 3")
    try:
        for recipe in ("panel 7", "panel 8"):
            assert running.client.put(f"/v1/recipes/{recipe}", json={}).status_code == 200
        answers = {
            recipe: running.client.post(
                "/v1/inspect", files={"image": board_png}, data={"recipe": recipe}
            ).json()
            for recipe in ("panel 7", "panel 8")
        }
        # Random weights call something on every board at thresholds so low.
        assert answers["panel 7"]["verdict"] == "FAIL"
        told = answers["panel 7"]["calibration"]
        assert (told["valid"], told["n"], told["camera"]) == (True, 59, "line 3")
        assert told["claims"][0]["bound"] == pytest.approx(calibration.claims[0].bound)
        void = answers["panel 8"]["calibration"]
        assert not void["valid"]
        assert "panel 8" in void["void_because"][0]
        stored = running.client.get(f"/v1/inspections/{answers['panel 7']['id']}").json()
        assert stored["calibration"] == told
    finally:
        running.stop()


def test_without_a_calibration_the_report_says_so(server: Any, board_png: bytes) -> None:
    assert server.client.post("/v1/inspect", files={"image": board_png}).json()["calibration"] is None


def test_a_calibration_is_looked_at_before_the_server_starts(
    make_calibration: Callable[..., Calibration],
    tiny_checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environ = {"INSPECT_VIT_HOME": str(tmp_path)}
    path = tmp_path / "c.json"
    with pytest.raises(ConfigError, match="cannot read the calibration"):
        prepare(tiny_checkpoint, port=4121, calibration=path, environ=environ)
    save_calibration(path, make_calibration({"a": 0.2}, "0000"))
    command = prepare(tiny_checkpoint, port=4121, calibration=path, camera="line 3", environ=environ)
    assert "void" in capsys.readouterr().err
    assert command.environ["INSPECT_VIT_CALIBRATION"] == str(path)
    assert command.environ["INSPECT_VIT_CAMERA"] == "line 3"
