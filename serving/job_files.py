"""What a job leaves in INSPECT_VIT_HOME/jobs/ID: its log, how far it is, what it measured."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from serving.config import ServingConfig
from serving.job_schemas import CurvesReport, Progress
from serving.scrubbing import scrubbed

LOG, RUN, DATASET = "log.txt", "run", "dataset.json"
SHOWN_LOG_BYTES, MOST_LOG_BYTES = 200_000, 4_000_000
MAX_POINTS, MAX_CURVE_BYTES = 500, 20_000_000
KEPT_OF_RUN = ("progress.json", "metrics.jsonl", "curves.png", "table.json", "gate.json", "gate.md")
MAX_REASON_CHARS, MOST_ERROR_LINES = 1000, 20
_CUT = "(earlier lines were cut)\n"


class JobFiles:
    """The folder of one job. Its progress and its curves are read as they are, also while it runs."""

    def __init__(self, config: ServingConfig, job: str) -> None:
        self._config = config
        self.folder = config.home_dir / "jobs" / job
        self.run = self.folder / RUN

    @property
    def log(self) -> Path:
        return self.folder / LOG

    def progress(self) -> Progress | None:
        try:
            return Progress.model_validate_json((self.run / "progress.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def curves(self) -> CurvesReport:
        """Numbers of each line of metrics.jsonl that has a step."""
        points = []
        with suppress(OSError), (self.run / "metrics.jsonl").open(encoding="utf-8", errors="replace") as file:
            for line in file.read(MAX_CURVE_BYTES).splitlines():
                point = _numbers(line)
                if "step" in point:
                    points.append(point)
        stride = -(-len(points) // MAX_POINTS) or 1
        # From the end, so that the newest is always there.
        return CurvesReport(points=tuple(points[::-1][::stride][::-1]))

    def read_log(self, num_bytes: int = SHOWN_LOG_BYTES) -> str:
        """Its last lines, without what is nobody's business; empty where there is none."""
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(size - num_bytes, 0))
                text = file.read(num_bytes).decode("utf-8", errors="replace")
        except OSError:
            return ""
        return scrubbed(text if size <= num_bytes else _CUT + text.partition("\n")[2], self._config)

    def last_words(self) -> str:
        """The error that the log ends with, else its last line that says something."""
        # Mistakes of usage come in a box.
        lines = [line.strip(" \u2502") for line in self.read_log(16_384).splitlines()]
        said = [line for line in lines if re.search(r"\w", line)]
        end = said[-MOST_ERROR_LINES:]
        first = max((n for n, line in enumerate(end) if line.startswith("error: ")), default=len(end) - 1)
        if any(line.startswith("Traceback") for line in end[first:]):
            first = len(end) - 1
        return " ".join(end[max(first, 0) :]).removeprefix("error: ")[:MAX_REASON_CHARS]

    def bound_log(self) -> None:
        """Cut what is old from a log that grows without end; its writer appends, so it goes on behind."""
        with suppress(OSError):
            if self.log.stat().st_size > MOST_LOG_BYTES:
                with self.log.open("r+b") as file:
                    file.seek(-SHOWN_LOG_BYTES, 2)
                    tail = file.read()
                    file.truncate(0)
                with self.log.open("ab") as file:
                    file.write(_CUT.encode() + tail)

    def forget_state(self) -> None:
        """Remove what only going on would need."""
        if self.run.is_dir():
            for path in self.run.iterdir():
                if path.name not in KEPT_OF_RUN:
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _numbers(line: str) -> dict[str, float]:
    try:
        found: Any = json.loads(line, parse_constant=lambda _: None)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    }
