"""Settings from the environment."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from inspect_vit.errors import ConfigError
from serving.config import ServingConfig, from_environment, to_environment


def test_every_setting_travels_through_the_environment() -> None:
    config = ServingConfig(
        home=Path("/data"),
        checkpoint=Path("/m.safetensors"),
        database_url="postgresql+pg8000://db/boards",
        loaded_models=2,
        device="cpu",
        attention_backend="sdpa",
        max_upload_mb=12.5,
        max_megapixels=3.0,
        queue_size=7,
        min_free_mb=1.0,
        golden_cache_mb=64.0,
        keys="off",
        session_hours=8.0,
        database_wait_s=2.5,
        deadline_s=20.0,
        stall_s=5.0,
        keep_days=90.0,
        keep_gb=500.0,
        audit_share=0.1,
        acceptance_share=0.2,
        acceptance=Path("/acceptance"),
        job_threads=3,
        job_nice=0,
        samples=Path("/samples"),
        calibration=Path("/calibration.json"),
        camera="line 3, ring light",
    )
    assert set(to_environment(config)) == {
        f"INSPECT_VIT_{name.upper()}" for name in ServingConfig.model_fields
    }
    assert from_environment(to_environment(config)) == config
    assert from_environment({}) == ServingConfig()


def test_an_empty_variable_counts_as_unset() -> None:
    assert from_environment({"INSPECT_VIT_QUEUE_SIZE": ""}) == ServingConfig()


@pytest.mark.parametrize(
    ("name", "value"),
    [("QUEUE_SIZE", "many"), ("QUEUE_SIZE", "0"), ("MAX_UPLOAD_MB", "-1"), ("ATTENTION_BACKEND", "fast")],
)
def test_a_wrong_value_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name.lower()):
        from_environment({f"INSPECT_VIT_{name}": value})


def test_a_misspelt_variable_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="inspect_vit.serving"):
        assert from_environment({"INSPECT_VIT_QUEU_SIZE": "3", "INSPECT_VIT_DATA": "/d"}) == ServingConfig()
    (record,) = caplog.records
    assert "INSPECT_VIT_QUEU_SIZE" in record.getMessage()
    assert "INSPECT_VIT_QUEUE_SIZE" in record.getMessage()


def test_the_home_of_the_user_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = ServingConfig()
    assert config.home_dir == tmp_path / ".inspect-vit"
    assert config.sqlalchemy_url == f"sqlite:///{tmp_path}/.inspect-vit/inspect-vit.db"
