"""A version that cannot be loaded is tried once, told once, and again when it changed or a while went by."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from sqlalchemy.orm import Session

from inspect_vit.checkpoint import read_metadata
from serving import model_refusals, models
from serving.config import ServingConfig
from serving.errors import ModelRefusedError, VersionGoneError
from serving.metrics import Metrics
from serving.model_reports import model_report
from serving.model_stages import PROMOTED, put_stage
from serving.models import Models
from serving.store import Store
from tests.serving.model_versions import ENGINEER, Versions


class Loaded:
    """A process with a in production, and how often it tried to load something."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.metrics = Store(ServingConfig(home=home)), Metrics()
        self.tries: list[str] = []
        self.fault: Exception | None = None
        warm_up = models.warm_up

        def watched(inspector: Any) -> None:
            self.tries.append(inspector.metadata.version)
            if self.fault is not None and len(self.tries) > 1:
                raise self.fault
            warm_up(inspector)

        monkeypatch.setattr(models, "warm_up", watched)
        monkeypatch.setattr(models, "POLL_S", 0.01)
        self.models = Models(ServingConfig(home=home, device="cpu"), self.store.engine, self.metrics)

    def promote(self, version: str, replaced: str) -> None:
        with Session(self.store.engine) as session:
            put_stage(session, version, ENGINEER, deed=PROMOTED, replaced=replaced)
            session.commit()

    def until_refused(self, version: str) -> None:
        deadline = time.monotonic() + 60.0
        while version not in self.models.refused():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def home(versions: Versions, tmp_path: Path) -> Path:
    return shutil.copytree(versions.home, tmp_path / "home")


@pytest.fixture
def loaded(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    made = Loaded(home, monkeypatch)
    with closing(made.store), closing(made.models):
        yield made


def test_an_unforeseen_failure_is_tried_and_logged_once_and_the_old_version_stays(
    loaded: Loaded, home: Path, versions: Versions, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = (read_metadata(path).version for path in versions.checkpoints[:2])
    loaded.fault = RuntimeError("the device went away")
    with caplog.at_level(logging.ERROR, "inspect_vit.serving"):
        loaded.promote(b, a)
        loaded.until_refused(b)
        time.sleep(0.5)  # Fifty more looks.
        for _ in range(3):
            with pytest.raises(ModelRefusedError, match=f"{b} cannot be loaded: the device went away"):
                asyncio.run(loaded.models.get(b))
    assert loaded.tries == [a, b]
    told = [one for one in caplog.records if b in one.getMessage()]
    assert [one.getMessage().split(":")[0] for one in told] == [
        f"model version {b} cannot be loaded",
        f"model {b} cannot go into production, {a} stays",
    ]
    assert loaded.models.default.metadata.version == a
    report = model_report(loaded.store.engine, b, loaded.models.versions(), loaded.models.refused())
    assert (report.stage, report.loaded) == ("production", False)
    assert report.refused == f"model version {b} cannot be loaded: the device went away"
    shown = generate_latest(loaded.metrics.registry).decode()
    assert f'inspect_vit_model_refused{{version="{b}"}} 1.0' in shown
    assert "inspect_vit_model_failures_total 1.0" in shown

    loaded.promote(a, b)
    time.sleep(0.2)
    loaded.promote(b, a)
    deadline = time.monotonic() + 60.0
    while len(loaded.tries) < 3:
        assert time.monotonic() < deadline, "somebody decided anew"
        time.sleep(0.01)
    loaded.until_refused(b)

    loaded.fault = None
    (home / "models" / b / "model.safetensors").touch()
    assert loaded.models.wait_for(b, timeout_s=60.0), "its files changed, so it is worth another try"
    assert loaded.models.refused() == {}
    assert (
        f'inspect_vit_model_refused{{version="{b}"}} 0.0' in generate_latest(loaded.metrics.registry).decode()
    )


def test_what_failed_is_tried_again_later_and_ever_later(
    loaded: Loaded, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (read_metadata(path).version for path in versions.checkpoints[:2])
    monkeypatch.setattr(model_refusals, "FIRST_RETRY_S", 0.2)
    loaded.fault = OSError(5, "Input/output error")
    started = time.monotonic()
    loaded.promote(b, a)
    while len(loaded.tries) < 4:
        assert time.monotonic() < started + 60.0
        time.sleep(0.01)
    assert time.monotonic() > started + 0.2 + 0.4, "twice as long after the second try"
    loaded.fault = None
    assert loaded.models.wait_for(b, timeout_s=60.0)


def test_a_pinned_version_that_is_brought_back_is_loaded_at_once(
    loaded: Loaded, home: Path, versions: Versions
) -> None:
    b = read_metadata(versions.checkpoints[1]).version
    folder, aside = home / "models" / b, home / "aside"
    folder.rename(aside)
    for _ in range(2):
        with pytest.raises(VersionGoneError):
            asyncio.run(loaded.models.get(b))
    aside.rename(folder)
    assert asyncio.run(loaded.models.get(b)).metadata.version == b
