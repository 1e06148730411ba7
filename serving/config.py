"""Settings of the service, read once from the environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from inspect_vit.config import AttentionBackend, Frozen, validate

PREFIX = "INSPECT_VIT_"
DATA_VARIABLE = "INSPECT_VIT_DATA"
"""Names the data sets of training and tests; the one variable with our prefix that is not a setting here."""

logger = logging.getLogger("inspect_vit.serving")


class ServingConfig(Frozen):
    """One server. Every field is set by the environment variable INSPECT_VIT_<FIELD>, in capitals."""

    home: Path = Field(
        default=Path("~/.inspect-vit"),
        description="folder of the database and the pictures; made when it is missing",
    )
    checkpoint: Path | None = Field(
        default=None,
        description="a model's .safetensors file, which goes into production at the start; default: the "
        "version that is in production, at the first start the one that ships with inspect-vit",
    )
    calibration: Path | None = Field(
        default=None,
        description="calibration.json of `inspect-vit calibrate`; default: the checkpoint's own thresholds",
    )
    camera: str = Field(
        default="",
        description="camera and lighting of the pictures; a calibration made with others is void",
    )
    database_url: str = Field(
        default="", description="SQLAlchemy URL; default: the SQLite file inspect-vit.db in the home folder"
    )
    loaded_models: int = Field(
        default=3,
        ge=1,
        description="model versions kept in memory: the one in production, and those last used",
    )
    device: str = Field(default="auto", description="auto (CUDA when there is one), cpu, cuda, cuda:1, ...")
    attention_backend: AttentionBackend = Field(default="auto", description="auto, eager, sdpa or flash")
    max_upload_mb: float = Field(
        default=64.0, gt=0, description="largest request body in MB (10^6 bytes); over it: 413"
    )
    max_megapixels: float = Field(
        default=64.0,
        gt=0,
        description="largest picture in megapixels; over it 413. A request holds some 9 MB for each, "
        "two pictures and the maps, and three requests hold pictures at a time",
    )
    queue_size: int = Field(
        default=32, gt=0, description="inspections waiting or running at the same time; one more answers 503"
    )
    min_free_mb: float = Field(
        default=200.0, ge=0, description="free disk space in MB under which nothing more is accepted: 507"
    )
    golden_cache_mb: float = Field(
        default=512.0, ge=0, description="memory in MB for golden references of recipes that are kept ready"
    )
    keys: Literal["on", "off"] = Field(
        default="on",
        description="off: nobody is asked for a key, and only this machine is answered",
    )
    session_hours: float = Field(
        default=12.0, gt=0, le=24 * 30, description="hours after which the station asks for the key again"
    )
    database_wait_s: float = Field(
        default=10.0, gt=0, description="longest wait for a locked or silent database in seconds; then 503"
    )
    deadline_s: float = Field(
        default=60.0, gt=0, description="a request whose turn has not come after so many seconds: 503"
    )
    stall_s: float = Field(
        default=30.0, gt=0, description="a request body of which nothing came for so many seconds: 408"
    )
    keep_days: float | None = Field(
        default=None,
        gt=0,
        description="days after which a PASS or reviewed board is deleted; default: kept for ever",
    )
    keep_gb: float | None = Field(
        default=None,
        gt=0,
        description="GB (10^9 bytes) of pictures above which the oldest PASS and reviewed boards are "
        "deleted; default: no limit",
    )
    audit_share: float = Field(
        default=0.02,
        ge=0.0,
        le=1.0,
        description="share of the PASS boards that are drawn, by chance, for people to look at",
    )
    acceptance_share: float = Field(
        default=0.3,
        ge=0.0,
        le=1.0,
        description="share of the boards, by a hash of the serial, that only examine: nothing is ever "
        "trained on them, and new thresholds and models are held against them. Raised later, it takes boards "
        "that models were trained on",
    )
    acceptance: Path | None = Field(
        default=None,
        description="folder of labelled boards, in any format, that every promotion is also measured on",
    )
    job_threads: int | None = Field(
        default=None,
        ge=1,
        description="threads of a retraining job; default: half of the cores, so that boards are inspected "
        "meanwhile",
    )
    job_nice: int = Field(
        default=10,
        ge=0,
        le=19,
        description="how far a retraining job gives way to the service: niceness above the service's own",
    )
    samples: Path | None = Field(
        default=None,
        description="folder of sample boards for the station; default: data_samples beside serving/",
    )

    @property
    def home_dir(self) -> Path:
        return self.home.expanduser().absolute()

    @property
    def max_upload_bytes(self) -> int:
        return int(self.max_upload_mb * 1e6)

    @property
    def max_pixels(self) -> int:
        return int(self.max_megapixels * 1e6)

    @property
    def sqlalchemy_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home_dir / 'inspect-vit.db'}"


def from_environment(environ: Mapping[str, str]) -> ServingConfig:
    """Read the INSPECT_VIT_* variables; an empty one counts as unset, an unknown one is reported in the log.

    Raises:
        ConfigError: a value that does not fit, named by its variable.
    """
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX) or not value or name == DATA_VARIABLE:
            continue
        field = name.removeprefix(PREFIX).lower()
        if field in ServingConfig.model_fields:
            values[field] = value
        else:
            known = ", ".join(PREFIX + known.upper() for known in ServingConfig.model_fields)
            logger.warning("%s is not a setting and does nothing; settings are %s", name, known)
    return validate(values, ServingConfig, source=f"environment ({PREFIX}*)")


def to_environment(config: ServingConfig) -> dict[str, str]:
    """The variables that make `from_environment` read this configuration again."""
    return {
        PREFIX + name.upper(): str(value)
        for name, value in config.model_dump(exclude_defaults=True, exclude_none=True).items()
    }
