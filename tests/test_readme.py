"""What README.md tells a newcomer to type is typed here, word for word but for the port."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
README_URL = "http://127.0.0.1:3000"


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def block_with(language: str, words: str) -> str:
    (found,) = (block for block in blocks(language) if words in block)
    return found


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the checkout to a reader, where commands may write."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("data_samples", "configs"):
        (folder / name).symlink_to(PROJECT / name)
    (folder / ".venv" / "bin").mkdir(parents=True)
    for tool in ("inspect-vit", "python"):
        (folder / ".venv" / "bin" / tool).symlink_to(Path(sys.executable).parent / tool)
    return folder


@dataclass(frozen=True)
class Service:
    url: str
    greeting: str
    """What it printed until it was ready."""


@pytest.fixture(scope="module")
def service(desk: Path) -> Iterator[Service]:
    """What `make run` starts, on a free port and in a home of its own."""
    recipe = subprocess.run(
        ["make", "--dry-run", "run"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    (command,) = (line for line in recipe.stdout.splitlines() if " serve " in line)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = desk / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*shlex.split(command), "--port", str(port)],
            cwd=desk,
            env={**os.environ, "INSPECT_VIT_HOME": str(desk / "state")},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 150
            while "Ctrl-C stops" not in (greeting := log.read_text(errors="replace")):
                assert process.poll() is None, greeting
                assert time.monotonic() < deadline, greeting
                time.sleep(0.2)
            yield Service(f"http://127.0.0.1:{port}", greeting)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:  # a machine that is busy; leave no server behind
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_make_run_inspects_a_sample_and_says_where_to_look(service: Service) -> None:
    assert "FAIL" in service.greeting
    assert f"{service.url}/station" in service.greeting
    overlay = re.search(r"overlay\s+(.*\.png)", service.greeting)
    assert overlay
    assert Path(overlay[1]).read_bytes().startswith(b"\x89PNG")


def test_curl_answers_with_a_report(desk: Path, service: Service) -> None:
    result = run(["bash", "-c", block_with("sh", "curl").replace(README_URL, service.url)], desk)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["verdict"] == "FAIL"
    assert report["image"] == {"width": 640, "height": 640}
    labelled = json.loads((PROJECT / "data_samples" / "annotations.coco.json").read_text(encoding="utf-8"))
    truth = [label["bbox"] for label in labelled["annotations"] if label["image_id"] == 1]
    found = [defect["box_xyxy"] for defect in report["defects"]]
    missed = [box for box in truth if not any(_holds_centre(call, box) for call in found)]
    assert not missed, "the shipped model finds every defect of the first sample board"


def _holds_centre(box_xyxy: list[float], bbox: list[float]) -> bool:
    x, y = bbox[0] + bbox[2] / 2, bbox[1] + bbox[3] / 2
    left, top, right, bottom = box_xyxy
    return left <= x < right and top <= y < bottom


def test_python_client_prints_defects_and_saves_the_overlay(desk: Path, service: Service) -> None:
    result = run([sys.executable, "-c", block_with("python", "httpx").replace(README_URL, service.url)], desk)
    assert result.returncode == 0, result.stderr
    *defects, verdict = result.stdout.splitlines()
    assert verdict == "FAIL"
    assert defects
    assert (desk / "overlay.png").read_bytes().startswith(b"\x89PNG")


def test_library_snippet_runs(desk: Path) -> None:
    result = run([sys.executable, "-c", block_with("python", "Inspector(")], desk)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("FAIL")


def test_inspect_command_fails_the_board(desk: Path) -> None:
    result = run(shlex.split(block_with("sh", "inspect-vit inspect")), desk)
    assert result.returncode == 1, result.stderr
    written = [path.suffix for path in (desk / "report").rglob("*")]
    assert ".json" in written
    assert ".png" in written


OWN_BOARDS = block_with("sh", "data check").splitlines()


def test_commands_for_your_own_boards_do_what_they_say(desk: Path) -> None:
    good = desk / "good"
    good.mkdir()
    for path in sorted((PROJECT / "data_samples").glob("*_temp.png"))[:2]:
        (good / path.name).write_bytes(path.read_bytes())
    for command in OWN_BOARDS[:3]:
        command = command.replace("MY_BOARDS", "data_samples").replace("GOOD_BOARDS", "good")
        result = run(shlex.split(command.replace("--count 200", "--count 3")), desk)
        assert result.returncode == 0, result.stderr
    assert "<img" in (desk / "check" / "check.html").read_text(encoding="utf-8")
    assert len(json.loads((desk / "check" / "check.json").read_text(encoding="utf-8"))["findings"]) > 0
    truth, copy, drawn = (
        json.loads((desk / folder / "annotations.coco.json").read_text(encoding="utf-8"))["annotations"]
        for folder in ("data_samples", "coco", "drawn")
    )
    assert [label["bbox"] for label in copy] == [label["bbox"] for label in truth]
    assert drawn


TRAINING = [
    *block_with("sh", "inspect-vit train --config configs/deeppcb").splitlines(),
    *block_with("sh", "add-class").splitlines(),
    OWN_BOARDS[-1],
]


@pytest.mark.parametrize("command", TRAINING)
def test_training_commands_name_real_options(command: str, desk: Path) -> None:
    program, subcommand, *arguments = shlex.split(command)
    result = run([program, subcommand, "--help"], desk)
    assert result.returncode == 0, result.stderr
    for option in (argument for argument in arguments if argument.startswith("--")):
        assert option in result.stdout
    for config in (argument for argument in arguments if argument.endswith(".yaml")):
        assert (PROJECT / config).is_file()


def test_both_languages_show_the_same_commands() -> None:
    chinese = (PROJECT / "README.zh.md").read_text(encoding="utf-8")
    for language in ("sh", "python"):
        assert blocks(language, chinese) == blocks(language)
