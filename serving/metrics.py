"""Counters for Prometheus.

The framework's own are switched off: they are labelled with the raw path, and every inspection id in a path
would be a new time series. Here the label is the route.
"""

from __future__ import annotations

import platform
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from inspect_vit.results import Verdict
from serving.review_schemas import Disposition, Word
from serving.schemas import StoredReport

NO_RECIPE = "(none)"
MISSED = "missed"
OTHER = "other"
KINDS = (
    *((kind, "warning") for kind in ("over-exposed", "under-exposed", "low contrast", "out of focus", OTHER)),
    *(
        (kind, "error")
        for kind in (
            "black frame",
            "almost blank",
            "washed out",
            "too dark",
            "low contrast",
            "out of focus",
            OTHER,
        )
    ),
)
"""Kinds of intake faults and their severity: what `intake.check_quality` says before the colon."""

# Each worker answers from its own registry, in which what is cleared is gone; the client library warns of the
# files that it would share between processes, whose folder the framework names.
warnings.filterwarnings("ignore", message="Clearing labels", category=UserWarning)

SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One server's counters, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.inspections = Counter(
            "inspect_vit_inspections",
            "Inspections that were stored, by verdict, recipe and model version",
            ["verdict", "recipe", "model"],
            registry=self.registry,
        )
        self.defects = Counter(
            "inspect_vit_defects", "Defects that were listed, by class", ["label"], registry=self.registry
        )
        self.requests = Counter(
            "inspect_vit_requests",
            "Answered requests, by route, method and status",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "inspect_vit_request_seconds",
            "Time from request to answer, by route",
            ["route"],
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )
        self.stages = Histogram(
            "inspect_vit_stage_seconds",
            "Time of an inspection's stages",
            ["stage"],
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )
        self.queue_length = Gauge(
            "inspect_vit_queue_length",
            "Requests waiting for or in the model",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.refused = Counter(
            "inspect_vit_refused", "Requests answered 503: the queue was full", registry=self.registry
        )
        self.abandoned = Counter(
            "inspect_vit_abandoned", "Requests whose client hung up before their turn", registry=self.registry
        )
        self.expired = Counter(
            "inspect_vit_expired", "Requests answered 503: their turn had not come", registry=self.registry
        )
        self.short_of_memory = Counter(
            "inspect_vit_short_of_memory",
            "Answers for which the device's memory was short, and what came of it",
            ["outcome"],
            registry=self.registry,
        )
        for outcome in ("smaller_tiles", "refused"):
            self.short_of_memory.labels(outcome)
        self.duplicates = Counter(
            "inspect_vit_duplicate_frames",
            "Inspections with the picture bytes of another serial: verdict ERROR",
            registry=self.registry,
        )
        self.review_words = Counter(
            "inspect_vit_review_words",
            "Words of people on calls, new or changed, and defects that they found missed",
            ["word"],
            registry=self.registry,
        )
        for word in (*get_args(Word), MISSED):
            self.review_words.labels(word)
        self.dispositions = Counter(
            "inspect_vit_dispositions",
            "Dispositions that were set; none: one was taken back",
            ["disposition"],
            registry=self.registry,
        )
        for disposition in (*get_args(Disposition), "none"):
            self.dispositions.labels(disposition)
        self.pruned = Counter(
            "inspect_vit_pruned_inspections", "Inspections that retention deleted", registry=self.registry
        )
        self.pruned_bytes = Counter(
            "inspect_vit_pruned_bytes", "Bytes of pictures that retention deleted", registry=self.registry
        )
        self.prune_failures = Counter(
            "inspect_vit_prune_failures", "Rounds of retention that failed", registry=self.registry
        )
        self.store_bytes = Gauge(
            "inspect_vit_store_bytes",
            "Bytes of stored pictures when retention last looked",
            registry=self.registry,
            multiprocess_mode="max",
        )

        self.golden_lookups = Counter(
            "inspect_vit_golden_lookups",
            "Golden references of recipes that were needed, and whether they were ready in memory",
            ["found"],
            registry=self.registry,
        )
        self.golden_bytes = Gauge(
            "inspect_vit_golden_bytes",
            "Memory that ready golden references take",
            registry=self.registry,
            multiprocess_mode="livesum",
        )

        self.intake = Counter(
            "inspect_vit_intake_warnings",
            "Faults of posted pictures in stored inspections, by kind; errors made the verdict ERROR",
            ["kind", "severity"],
            registry=self.registry,
        )
        for kind, severity in KINDS:
            self.intake.labels(kind, severity)
        self.drift = Gauge(
            "inspect_vit_drift_spreads",
            "Where a statistic of a recipe's boards is now, in spreads of its baseline",
            ["recipe", "reference", "statistic"],
            registry=self.registry,
        )
        self.baseline_boards = Gauge(
            "inspect_vit_baseline_boards",
            "Boards that a statistic's baseline was learnt from",
            ["recipe", "reference", "statistic"],
            registry=self.registry,
        )
        self.open_alarms = Gauge(
            "inspect_vit_open_alarms",
            "Alarms that nobody has acknowledged, by recipe, kind and statistic or class",
            ["recipe", "kind", "subject"],
            registry=self.registry,
        )
        self.watch_failures = Counter(
            "inspect_vit_watch_failures",
            "Stored inspections whose part in drift and repeaters was lost",
            registry=self.registry,
        )
        self._shown: tuple[str, str, str] | None = None
        self._refused: set[str] = set()
        self.model = Gauge(
            "inspect_vit_model_info",
            "1: the model in production for boards whose recipe pins no version",
            ["name", "version", "device"],
            registry=self.registry,
        )
        self.model_loads = Counter(
            "inspect_vit_model_loads", "Model versions that were loaded", registry=self.registry
        )
        self.model_failures = Counter(
            "inspect_vit_model_failures",
            "Times that a version could not go into production: the one before it stayed",
            registry=self.registry,
        )
        self.model_refused = Gauge(
            "inspect_vit_model_refused",
            "1: a version that this process could not load when it was asked for last",
            ["version"],
            registry=self.registry,
        )
        self.build = Gauge(
            "inspect_vit_build_info", "This program", ["version", "python"], registry=self.registry
        )
        self.build.labels(_version(), platform.python_version()).set(1)

    def show_model(self, *, name: str, version: str, device: str) -> None:
        """The one in production; the one before it is 0 from now on."""
        if self._shown is not None:
            self.model.labels(*self._shown).set(0)
        self._shown = name, version, device
        self.model.labels(name, version, device).set(1)
        for verdict in Verdict:
            self.inspections.labels(verdict.value, NO_RECIPE, version)

    def show_refused(self, version: str, *, is_refused: bool) -> None:
        """Whether a version could be loaded; one that always could has no line."""
        if is_refused or version in self._refused:
            self._refused.add(version)
            self.model_refused.labels(version).set(int(is_refused))

    def count_inspection(self, report: StoredReport) -> None:
        """Of a report whose recipe, if any, is in the store: a label is never a client's own word."""
        self.inspections.labels(report.verdict.value, report.recipe or NO_RECIPE, report.model.version).inc()
        for severity, faults in (("warning", report.intake.warnings), ("error", report.intake.errors)):
            for fault in faults:
                self.intake.labels(kind_of(fault, severity), severity).inc()
        for defect in report.defects:
            self.defects.labels(defect.label).inc()
        for stage, spent_ms in report.timings_ms.items():
            self.stages.labels(stage).observe(spent_ms / 1000.0)

    def count_request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        self.requests.labels(route, method, str(status)).inc()
        self.seconds.labels(route).observe(seconds)


def kind_of(fault: str, severity: str) -> str:
    """The kind of a fault of the board or its reference, from its words."""
    kind = fault.removeprefix("reference: ").partition(":")[0]
    return kind if (kind, severity) in KINDS else OTHER


def _version() -> str:
    try:
        return version("inspect-vit")
    except PackageNotFoundError:
        return "unknown"


async def metrics_page(request: Request) -> Response:
    """GET /metrics."""
    metrics: Metrics = request.app.state.backend.metrics
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
