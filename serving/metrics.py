"""Counters for Prometheus.

The framework's own are switched off: they are labelled with the raw path, and every inspection id in a path
would be a new time series. Here the label is the route.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from serving.schemas import StoredReport

SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One server's counters, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.inspections = Counter(
            "inspect_vit_inspections",
            "Inspections that were stored, by verdict",
            ["verdict"],
            registry=self.registry,
        )
        for verdict in ("PASS", "FAIL", "ERROR"):
            self.inspections.labels(verdict)
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

    def count_inspection(self, report: StoredReport) -> None:
        self.inspections.labels(report.verdict.value).inc()
        for defect in report.defects:
            self.defects.labels(defect.label).inc()
        for stage, spent_ms in report.timings_ms.items():
            self.stages.labels(stage).observe(spent_ms / 1000.0)

    def count_request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        self.requests.labels(route, method, str(status)).inc()
        self.seconds.labels(route).observe(seconds)


async def metrics_page(request: Request) -> Response:
    """GET /metrics."""
    metrics: Metrics = request.app.state.backend.metrics
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
