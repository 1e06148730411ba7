"""The packed service answers as the checkout does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from serving.run import wait_until_ready

PROJECT = Path(__file__).resolve().parents[1]


def test_a_built_bento_answers_as_the_library(
    tiny_checkpoint: Path, sample_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
    environ |= {
        "BENTOML_HOME": str(tmp_path / "bentoml"),
        "BENTOML_DO_NOT_TRACK": "true",
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "prometheus"),
        "INSPECT_VIT_HOME": str(tmp_path / "state"),
        "INSPECT_VIT_CHECKPOINT": str(tiny_checkpoint),
        "INSPECT_VIT_KEYS": "off",
        "PYTHONPATH": "",
    }
    for folder in ("bentoml", "prometheus", "elsewhere"):
        (tmp_path / folder).mkdir()
    bentoml = [sys.executable, "-m", "bentoml"]
    built = subprocess.run(
        [*bentoml, "build", "--output", "tag"],
        cwd=PROJECT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    tag = built.stdout.strip().removeprefix("__tag__:")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*bentoml, "serve", tag, "--port", str(port), "--timeout-graceful-shutdown", "5"],
            cwd=tmp_path / "elsewhere",
            env=environ,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(process, url)
        files = {
            name: path.read_bytes() for name, path in zip(("image", "reference"), sample_pair, strict=True)
        }
        report = httpx.post(f"{url}/v1/inspect", files=files, timeout=300).raise_for_status().json()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)

    from inspect_vit import Inspector, read_image

    (image, intake), (reference, _) = (read_image(path) for path in sample_pair)
    expected = Inspector(tiny_checkpoint).inspect(image, reference=reference, intake=intake)
    assert report["verdict"] == expected.verdict
    assert report["model"] == {"name": "tiny", "version": expected.model_version}
    assert report["score"] == pytest.approx(expected.score, abs=1e-3)
    assert [defect["label"] for defect in report["defects"]] == [defect.label for defect in expected.defects]
    sources = {path.name for path in (tmp_path / "bentoml" / "bentos").rglob("src/*")}
    assert {"inspect_vit", "serving", "training", "configs", "data_samples", "README.md"} <= sources
    assert not {"tests", ".git", ".venv"} & sources
