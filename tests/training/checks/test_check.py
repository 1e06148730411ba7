"""A set with one fault of each kind: every one is found, at its picture, and nothing else is."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.checks.check import run_check
from training.checks.findings import CheckReport
from training.checks.pictures import examine_all
from training.quarantine import read_quarantine

from .conftest import Picture, WriteSet, draw_board

SPOT = (190, 140, 222, 170, "speck")


def spotted(seed: int, x: int = 200, y: int = 150) -> Picture:
    """A board with one 12 x 10 px spot, which SPOT covers unless it is moved."""
    board = draw_board(seed)
    board[y : y + 10, x : x + 12] = 255 - board[y + 5, x + 6]
    return board


def png(picture: Picture) -> bytes:
    return cv2.imencode(".png", picture)[1].tobytes()


def found(report: CheckReport) -> dict[str, set[str]]:
    """Kind -> names of the pictures, "" for the set as a whole."""
    kinds: dict[str, set[str]] = {}
    for finding in report.findings:
        kinds.setdefault(finding.kind, set()).add(finding.image.name if finding.image else "")
    return kinds


def entry(name: str, seed: int, **other: Any) -> dict[str, Any]:
    return {
        "name": name,
        "picture": spotted(seed),
        "reference": draw_board(seed),
        "boxes": [SPOT],
        "group": f"g{seed}",
    } | other


def test_every_planted_fault_is_found_at_its_picture_and_nothing_else(
    write_set: WriteSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exif = Image.Exif()
    exif[274] = 6
    turned = io.BytesIO()
    Image.fromarray(spotted(8)).save(turned, format="PNG", exif=exif)
    shifted = draw_board(5, height=400, width=500)
    framed = np.dstack([spotted(9, 100, 60)] * 3)
    for left, top, right, bottom in ((90, 50, 122, 80), (250, 200, 300, 240)):
        cv2.rectangle(framed, (left, top), (right - 1, bottom - 1), (0, 255, 0), 2)
    unlabelled = spotted(4)
    unlabelled[40:52, 300:312] = 255 - unlabelled[46, 306]
    root = write_set(
        [
            entry("sound.png", 0),
            entry("cut_short.png", 1, picture=png(spotted(1))[:-900]),
            entry("train.png", 2, split="train"),
            entry("test.png", 2, split="test"),
            entry("good.png", 3, picture=draw_board(3), boxes=[]),
            entry("unlabelled.png", 4, picture=unlabelled),
            entry(
                "shifted.png", 5, picture=shifted[40:360, 50:450], reference=shifted[44:364, 53:453], boxes=[]
            ),
            entry("misplaced.png", 6, boxes=[(20, 220, 60, 250, "speck"), SPOT]),
            entry("turned.png", 8, picture=turned.getvalue(), reference=turned.getvalue(), size=(400, 320)),
            entry(
                "framed.png",
                9,
                picture=framed,
                boxes=[(90, 50, 122, 80, "speck"), (250, 200, 300, 240, "Speck")],
            ),
            entry("other_board.png", 10, reference=draw_board(11)),
            entry("black.png", 12, picture=np.zeros((320, 400), np.uint8), boxes=[]),
            entry("doubled.png", 13, boxes=[SPOT, SPOT]),
        ]
    )
    (root / "stray.png").write_bytes(png(draw_board(14)))
    report = run_check(root, out=tmp_path / "report", workers=1)
    kinds = found(report)
    expected = {
        "corrupt-image": {"cut_short.png"},
        "split-leak": {"train.png"},
        "board-in-two-splits": {"test.png"},
        "empty-labels": {"good.png", "shifted.png", "black.png"},
        "unlabelled-difference": {"unlabelled.png"},
        "reference-shifted": {"shifted.png"},
        "unchanged-box": {"misplaced.png", "turned.png"},
        "labels-rotated": {"turned.png"},
        "defective-reference": {"turned.png"},
        "painted-labels": {"framed.png"},
        "reference-mismatch": {"other_board.png"},
        "unfit-image": {"black.png"},
        "double-box": {"doubled.png"},
        "class-spelling": {""},
    }
    for kind, names in expected.items():
        assert kinds.pop(kind, set()) == names, kind
    assert "stray.png" in kinds.pop("unlabelled-image")
    assert not kinds
    assert report.exit_code == 1
    assert all(finding.message and (finding.where or not finding.image) for finding in report.findings)

    tree = json.loads((tmp_path / "report" / "check.json").read_text(encoding="utf-8"))
    assert tree["counts"]["classes"]["speck"]["boxes"] == 12
    assert sum(tree["severities"].values()) == len(tree["findings"]) == len(report.findings)

    kept_out = read_quarantine(tmp_path / "report" / "quarantine.json")
    assert {path.name for path in kept_out} == {
        "cut_short.png",
        "train.png",
        "turned.png",
        "framed.png",
        "other_board.png",
    }
    shown = capsys.readouterr().out
    assert "Pictures that cannot be read" in shown and "speck" in shown


def test_a_sound_set_has_exit_code_0_and_empty_lists(write_set: WriteSet, tmp_path: Path) -> None:
    root = write_set([entry("a.png", 0), entry("b.png", 1)])
    report = run_check(root, out=tmp_path / "report", workers=1)
    assert [finding.kind for finding in report.findings if finding.severity == "error"] == []
    assert report.exit_code == 0
    assert read_quarantine(tmp_path / "report" / "quarantine.json") == {}


def test_the_page_stands_alone_and_escapes_names(write_set: WriteSet, tmp_path: Path) -> None:
    label = "<b>spur</b> & \u5b54"
    root = write_set([entry("a.png", 0, boxes=[(*SPOT[:4], label), (*SPOT[:4], label)])])
    run_check(root, out=tmp_path / "report", workers=1)
    page = (tmp_path / "report" / "check.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;spur&lt;/b&gt; &amp; \u5b54" in page and "<b>spur" not in page
    assert page.count('src="data:image/jpeg;base64,') >= 1
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*"?([^"#)]+)', page)
    assert all(link.startswith("data:image/jpeg;base64,") for link in outside)


def test_copies_of_one_picture(write_set: WriteSet, tmp_path: Path) -> None:
    soft = cv2.imdecode(
        cv2.imencode(".jpg", spotted(0), [cv2.IMWRITE_JPEG_QUALITY, 70])[1], cv2.IMREAD_GRAYSCALE
    )
    root = write_set(
        [
            entry("first.png", 0),
            entry("same.bmp", 0),
            entry("unlike.png", 0, boxes=[(*SPOT[:4], "scratch")]),
            entry("near.png", 0, picture=np.asarray(soft, np.uint8)),
            entry(
                "defects_moved.png",
                0,
                picture=spotted(0, 60, 40),
                boxes=[(50, 30, 82, 60, "speck")],
                group="other",
            ),
        ]
    )
    kinds = found(run_check(root, out=tmp_path / "report", workers=1))
    assert kinds["duplicate"] == {"same.bmp"}
    assert kinds["duplicate-disagrees"] == {"unlike.png"}
    assert kinds["near-duplicate"] == {"near.png"}
    assert kinds["same-board"] == {"first.png"}


def test_worker_processes_find_what_one_process_finds(write_set: WriteSet, tmp_path: Path) -> None:
    entries = [entry(f"{seed:02d}.png", seed) for seed in range(16)]
    entries += [
        entry("cut_short.png", 16, picture=png(spotted(16))[:-900]),
        entry("again.png", 3, split="test"),
    ]
    root = write_set(entries)
    alone, together = (run_check(root, out=tmp_path / f"report_{n}", workers=n) for n in (1, 2))
    assert alone.as_json() == together.as_json()
    assert found(together)["corrupt-image"] == {"cut_short.png"}


class Deadly(type(Path())):  # type: ignore[misc]
    """A path on which a worker process ends at once, as a decoder that crashes would end it."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def test_a_picture_on_which_a_worker_dies_is_named_and_the_others_are_checked(tmp_path: Path) -> None:
    samples = []
    for seed in range(18):
        path = tmp_path / f"{seed:02d}.png"
        path.write_bytes(png(draw_board(seed)))
        samples.append(Sample(Deadly(path) if seed == 7 else path, np.zeros((0, 4), np.float32), ()))
    facts = dict(examine_all(samples, workers=2))
    assert sorted(facts) == list(range(18))
    assert [number for number, found in sorted(facts.items()) if found.error] == [7]
    assert all(found.width == 400 for number, found in facts.items() if number != 7)


def test_a_limit_takes_pictures_evenly_spaced(write_set: WriteSet, tmp_path: Path) -> None:
    root = write_set([entry(f"{seed}.png", seed) for seed in range(5)])
    report = run_check(root, out=tmp_path / "report", workers=1, limit=3)
    assert (report.counts.pictures, report.num_samples) == (3, 5)
    assert "unlabelled-image" not in found(report)


def test_impossible_options_are_refused(write_set: WriteSet, tmp_path: Path) -> None:
    root = write_set([entry("a.png", 0)])
    with pytest.raises(ConfigError, match="limit 0"):
        run_check(root, out=tmp_path, limit=0)
    with pytest.raises(ConfigError, match="workers -1"):
        run_check(root, out=tmp_path, workers=-1)
    with pytest.raises(ConfigError, match="there is no"):
        run_check(tmp_path / "nowhere", out=tmp_path)
