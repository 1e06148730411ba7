"""docs/serving.md names every setting with its default, and every status and code that is answered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serving.config import PREFIX, ServingConfig
from serving.openapi import openapi_document

ROW = re.compile(r"^\| `(INSPECT_VIT_\w+)` \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
IN_WORDS = {
    "checkpoint": "what is in production",
    "calibration": "none",
    "camera": "none",
    "database_url": "SQLite in the home folder",
    "keep_days": "for ever",
    "keep_gb": "no limit",
    "samples": "`data_samples`",
    "acceptance": "none",
    "job_threads": "half of the cores",
}
"""Defaults that are no value but mean one."""


@pytest.fixture(scope="module")
def page(project: Path) -> str:
    return (project / "docs" / "serving.md").read_text(encoding="utf-8")


def test_every_setting_is_there_once_with_its_default(page: str) -> None:
    told = {name: default.strip() for name, default, _ in ROW.findall(page)}
    fields = ServingConfig.model_fields
    assert list(told) == [PREFIX + name.upper() for name in fields]
    assert len(ROW.findall(page)) == len(fields)
    for name, field in fields.items():
        default = told[PREFIX + name.upper()].strip("`")
        if name in IN_WORDS:
            assert field.default in (None, ""), name
            assert default == IN_WORDS[name].strip("`")
        elif isinstance(field.default, float | int):
            assert float(default) == field.default, name
        else:
            assert default == str(field.default), name


# What importing the framework says of packages it uses.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_status_and_code_is_explained(page: str) -> None:
    from serving.service import ANSWERS

    rows = [line for line in page.splitlines() if re.match(r"\| \d{3}", line)]
    explained = {status for row in rows for status in re.findall(r"\b\d{3}\b", row.split("|")[1])}
    described = {
        status
        for methods in openapi_document()["paths"].values()
        for operation in methods.values()
        for status in operation["responses"]
    }
    assert described <= explained
    for status, code in ANSWERS.values():
        if code == "client_gone":
            assert "499 `client_gone`" in page
            continue
        assert any(f"`{code}`" in row and str(status) in row.split("|")[1] for row in rows), (status, code)
