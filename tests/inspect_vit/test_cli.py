"""The command line: exit codes a script can trust, results on stdout, remarks on stderr, no tracebacks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import cv2
import numpy as np
import pytest

from inspect_vit.batch import pair_references, unique_names
from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from inspect_vit.cli import main
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector


def run(*arguments: object) -> int:
    """Run the command in this process; returns its exit code."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


@pytest.fixture(scope="module")
def touchy_checkpoint(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same random weights with thresholds so low that something is found on any board."""
    model, metadata = load_checkpoint(tiny_checkpoint)
    path = tmp_path_factory.mktemp("touchy") / "touchy.safetensors"
    limits = dict.fromkeys(metadata.model.class_names, 0.0101)
    save_checkpoint(
        path,
        model,
        name="touchy",
        thresholds={"with_reference": limits, "without_reference": limits},
        training={"epochs": 0},
    )
    return path


def write_board(path: Path, *, flipped: int = 0) -> Path:
    """A binary scan of 320 x 320 px, its first few cells black for white and white for black."""
    cells = np.random.default_rng(0).integers(0, 2, (20, 20)).astype(np.uint8) * 255
    cells[0, :flipped] = 255 - cells[0, :flipped]
    assert cv2.imwrite(str(path), np.kron(cells, np.ones((16, 16), np.uint8)))
    return path


class TestInspect:
    def test_a_passed_board_exits_0_and_leaves_report_and_pictures(
        self, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        image, reference = write_board(tmp_path / "a.png"), write_board(tmp_path / "good.png", flipped=1)
        out = tmp_path / "new" / "report"
        code = run("inspect", image, "--reference", reference, "--checkpoint", tiny_checkpoint, "--out", out)
        shown = capsys.readouterr()
        assert code == 0, shown.err
        report = json.loads((out / "a.json").read_text())
        pixels, golden = read_image(image)[0], read_image(reference)[0]
        inspector = Inspector(tiny_checkpoint)
        want = inspector.inspect(pixels, reference=golden)
        assert report["verdict"] == want.verdict == "PASS"
        assert report["score"] == pytest.approx(want.score, abs=1e-3)
        assert report["image"] == {"width": 320, "height": 320}
        assert report["model"] == {"name": "tiny", "version": inspector.metadata.version}
        found = report["reference"]
        assert found["covered"] == 1.0
        assert found["shift_px"] == pytest.approx(0, abs=0.05)
        assert found["residual_px"] == pytest.approx(0, abs=0.05)
        assert report["links"]["reference"] == str(reference)
        for kind in ("overlay", "defect_map", "gate"):
            picture = cv2.imread(str(out / report["links"][kind]), cv2.IMREAD_UNCHANGED)
            assert picture.shape[:2] == (320, 320)
        assert cv2.imread(str(out / report["links"]["sheet"])) is not None
        assert "PASS" in shown.out
        assert "wrote 5 files" in shown.err

    def test_a_failed_board_exits_1_and_lists_its_defects(
        self, touchy_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        image = write_board(tmp_path / "b.png")
        assert run("inspect", image, "--checkpoint", touchy_checkpoint, "--out", tmp_path) == 1
        shown = capsys.readouterr().out
        report = json.loads((tmp_path / "b.json").read_text())
        assert report["verdict"] == "FAIL"
        assert [defect["id"] for defect in report["defects"]] == list(range(1, len(report["defects"]) + 1))
        assert report["reference"] is None
        first = report["defects"][0]
        assert first["score"] == max(defect["score"] for defect in report["defects"])
        assert re.search(rf"1 .*{first['label']}.*{first['score']:.2f}", shown)

    def test_min_score_lists_more_without_changing_the_verdict(
        self, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        image = write_board(tmp_path / "c.png")
        options = ("--checkpoint", tiny_checkpoint, "--out", tmp_path, "--json", "--min-score", "0.0101")
        assert run("inspect", image, *options) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["verdict"] == "PASS"
        assert report["defects"]

    def test_one_bad_picture_stops_nothing_and_exits_3(
        self, touchy_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        good = write_board(tmp_path / "good.png")
        cut = tmp_path / "cut.png"
        cut.write_bytes(good.read_bytes()[:200])
        black = tmp_path / "black.png"
        cv2.imwrite(str(black), np.zeros((320, 320), np.uint8))
        missing = tmp_path / "missing.png"
        out = tmp_path / "out"
        pictures = (cut, missing, black, good)
        assert run("inspect", *pictures, "--checkpoint", touchy_checkpoint, "--out", out, "--json") == 3
        reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [report["id"] for report in reports] == ["cut", "missing", "black", "good"]
        assert [report["verdict"] for report in reports] == ["ERROR", "ERROR", "ERROR", "FAIL"]
        assert "damaged or cut short" in reports[0]["reasons"][0]
        assert "no such picture" in reports[1]["reasons"][0]
        assert reports[2]["reasons"][0].startswith("black frame")
        assert reports[2]["defects"] == []
        assert (out / "black_overlay.png").is_file()
        assert not (out / "cut_overlay.png").exists()
        for report in reports:
            assert json.loads((out / f"{report['id']}.json").read_text()) == report

    def test_a_reference_that_cannot_be_aligned_is_an_error_of_that_board(
        self, tiny_checkpoint: Path, tmp_path: Path
    ) -> None:
        image = write_board(tmp_path / "d.png")
        turned = tmp_path / "turned.png"
        cv2.imwrite(str(turned), cv2.imread(str(image))[::-1, ::-1])
        code = run(
            "inspect", image, "--reference", turned, "--checkpoint", tiny_checkpoint, "--out", tmp_path
        )
        assert code == 3
        report = json.loads((tmp_path / "d.json").read_text())
        assert report["reasons"][0].startswith("upside down")
        figures = {name: value for name, value in report["reference"].items() if name != "note"}
        assert figures == dict.fromkeys(figures)
        assert report["defects"] == []


class TestPairing:
    def test_by_name_rule_then_by_same_name(self, tmp_path: Path) -> None:
        for name in ("x_temp.jpg", "y.bmp", "x_test.png"):
            (tmp_path / name).touch()
        boards = [Path("in/x_test.png"), Path("in/y.png"), Path("in/z_test.png")]
        paired = pair_references(boards, references=tmp_path)
        assert [pair.reference for pair in paired] == [tmp_path / "x_temp.jpg", tmp_path / "y.bmp", None]
        assert paired[2].fault is not None
        assert "z_temp and z_test" in paired[2].fault

    def test_a_board_is_never_its_own_reference(self, tmp_path: Path) -> None:
        board = tmp_path / "board.png"
        board.touch()
        (pair,) = pair_references([board], references=tmp_path)
        assert pair.reference is None
        assert pair.fault

    def test_impossible_options(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="exclude each other"):
            pair_references([Path("a")], reference=Path("b"), references=tmp_path)
        with pytest.raises(ConfigError, match="not a folder"):
            pair_references([Path("a")], references=tmp_path / "none")

    def test_files_of_one_name_do_not_overwrite_each_other(self) -> None:
        names = unique_names([Path(p) for p in ("a/x.png", "b/x.png", "x-2.png", "x.jpg")])
        assert names[:2] == ["x", "x-2"]
        assert len(set(names)) == 4


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("inspect", "a.png", "--checkpoint", "none.safetensors"), "none.safetensors"),
            (("inspect", "a.png", "--reference", "none.png"), "no reference picture none.png"),
            (("inspect", "a.png", "--references", "none"), "not a folder"),
            (("inspect", "."), r"is a folder; name the pictures in it"),
            (("inspect", "a.png", "--device", "abacus"), "abacus"),
            (("train", "--config", "none.yaml"), "cannot read the configuration none.yaml"),
            (("train", "--config", "{project}/configs/nano.yaml"), "Field required"),
            (("evaluate", "--data", "none", "--out", "o"), "none"),
            (("model-info", "x", "--config", "y"), "not both"),
            (("model-info", "--config", "none.yaml"), "none.yaml"),
            (("serve", "--host", "nonsense"), "nonsense"),
            (("serve", "--sample", "none"), "no sample pair in none"),
        ],
    )
    def test_mistakes_are_one_line_and_exit_2(
        self,
        arguments: tuple[str, ...],
        words: str,
        project: Path,
        tiny_checkpoint: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("INSPECT_VIT_HOME", str(tmp_path / "home"))
        given = [argument.format(project=project) for argument in arguments]
        if given[0] in ("inspect", "serve", "evaluate") and "--checkpoint" not in given:
            given += ["--checkpoint", str(tiny_checkpoint)]
        assert run(*given) == 2
        shown = capfd.readouterr()
        (line,) = (text for text in shown.err.splitlines() if text.startswith("error: "))
        assert words in line
        assert "Traceback" not in shown.err
        assert shown.out == ""

    def test_a_score_outside_0_to_1_is_refused(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("inspect", "a.png", "--min-score", "1.5") == 2
        assert "min-score" in capfd.readouterr().err

    def test_help_loads_nothing_heavy(self) -> None:
        script = (
            "import sys\nfrom inspect_vit.cli import main\n"
            "try:\n    main(['--help'])\nexcept SystemExit:\n"
            "    print('heavy:', sorted({'torch', 'cv2', 'bentoml', 'albumentations'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "heavy: []"
        for command in ("serve", "inspect", "train", "evaluate", "model-info"):
            assert command in done.stdout


def test_evaluate_prints_the_report_it_writes(
    tiny_checkpoint: Path, deeppcb_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "evaluate", "--checkpoint", tiny_checkpoint, "--data", deeppcb_root, "--out", tmp_path, "--limit", "2"
    )
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert shown.out.strip() == (tmp_path / "report.md").read_text(encoding="utf-8").strip()
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))


def test_serve_inspects_the_sample_and_keeps_serving_until_interrupted(
    tiny_checkpoint: Path, project: Path, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "--checkpoint",
        str(tiny_checkpoint),
        "--port",
        str(port),
        "--sample",
        "data_samples",
        "--without-keys",
    ]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "inspect_vit.cli", "serve", *options],
            cwd=project,
            env={**os.environ, "INSPECT_VIT_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert server.stdout is not None
    try:
        lines = []
        for line in server.stdout:
            lines.append(line.rstrip())
            if line.startswith("Ctrl-C"):
                break
        shown = "\n".join(lines)
        assert re.search("PASS|FAIL", shown), (tmp_path / "log").read_text(errors="replace")
        assert "board_01_test.png" in shown
        overlay = Path(next(line for line in lines if line.startswith("overlay")).split(maxsplit=1)[1])
        assert cv2.imread(str(overlay)).shape == (640, 640, 3)
        station = next(line for line in lines if line.startswith("QA station")).split()[-1]
        with urllib.request.urlopen(station, timeout=30) as response:
            assert response.status == 200
        os.killpg(server.pid, signal.SIGINT)
        assert server.wait(timeout=60) == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "the port is free again"
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        server.stdout.close()
