"""The routes of data sets, examples and jobs in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.dataset_schemas import Dataset, DatasetFilter, DatasetPage, DatasetPreview, ExamplePage
from serving.job_schemas import CurvesReport, Job, JobPage, PromoteRequest, RetrainRequest
from serving.openapi_parts import INSPECTION_ID, LABEL

JOB_MODELS: list[tuple[Any, Any]] = [
    (DatasetFilter, "validation"),
    (DatasetPreview, "serialization"),
    (Dataset, "serialization"),
    (DatasetPage, "serialization"),
    (ExamplePage, "serialization"),
    (RetrainRequest, "validation"),
    (PromoteRequest, "validation"),
    (Job, "serialization"),
    (JobPage, "serialization"),
    (CurvesReport, "serialization"),
]
_ID = {"name": "id", "in": "path", "required": True, "schema": INSPECTION_ID}
_VERSION = {"type": "string", "pattern": "^[0-9a-f]{12}$"}
_STATES = ["waiting", "running", "done", "failed", "cancelled"]


def job_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""

    def told(content: dict[str, Any], statuses: list[int], **words: str) -> dict[str, Any]:
        found = dict(responses(content, statuses))
        for status, description in words.items():
            found[status[1:]] = {**found[status[1:]], "description": description}
        return found

    def accepted(statuses: list[int], **words: str) -> dict[str, Any]:
        found = told(_json("Job"), statuses, **words)
        return {"202": {**found.pop("200"), "description": "the job waits for its turn"}, **found}

    def of_job(content: dict[str, Any], *more: int) -> dict[str, Any]:
        words = {"_404": "no such job"} | ({"_409": "the job's state does not allow it"} if more else {})
        return told(content, [404, *more, 422], **words)

    moment, job = {"type": "string", "format": "date-time"}, "/v1/jobs/{id}"
    return {
        "/v1/datasets": {
            "get": {
                "summary": "Data sets on the disk, newest first",
                "responses": told(_json("DatasetPage"), [422]),
            },
            "post": {
                "summary": "Write the verified boards as a data set; the same content is the same data set",
                "requestBody": {"required": False, "content": _json("DatasetFilter")},
                "responses": told(
                    _json("Dataset"), [408, 413, 422, 503, 507], _503="another one is being written"
                ),
            },
        },
        "/v1/datasets/preview": {
            "get": {
                "summary": "What a data set would hold, counted",
                "parameters": [
                    _query("recipe", {**LABEL, "minLength": 1}, "only boards of this recipe"),
                    _query("since", moment, "first moment of inspection; UTC where no zone is named"),
                    _query("until", moment, "exclusive"),
                    _query("labels", LABEL, "only boards with a defect of one of these classes, with commas"),
                ],
                "responses": told(_json("DatasetPreview"), [422]),
            }
        },
        "/v1/examples": {
            "get": {
                "summary": "Labelled places on verified boards, and how many defects of each class there are",
                "parameters": [
                    _query("label", LABEL, "only this class, as it was reviewed"),
                    _query("recipe", LABEL, "only boards of this recipe"),
                    _limit(),
                ],
                "responses": told(_json("ExamplePage"), [422]),
            }
        },
        "/v1/retrain": {
            "post": {
                "summary": "Start a job: a model learns classes from verified boards and becomes a candidate",
                "requestBody": {"required": True, "content": _json("RetrainRequest")},
                "responses": accepted(
                    [404, 408, 413, 422, 503, 507],
                    _404="no such version or recipe",
                    _503="too many jobs wait",
                ),
            }
        },
        "/v1/models/{version}/promote": {
            "post": {
                "summary": "Start a job: compare a version with the one in production, on boards neither "
                "was trained on, and promote it if it passes",
                "parameters": [{"name": "version", "in": "path", "required": True, "schema": _VERSION}],
                "requestBody": {"required": False, "content": _json("PromoteRequest")},
                "responses": accepted(
                    [404, 408, 409, 410, 413, 422, 503, 507],
                    _404="no such version or recipe",
                    _409="it is in production there already, retired, or its files are damaged",
                    _410="its folder is gone",
                    _503="too many jobs wait",
                ),
            }
        },
        "/v1/jobs": {
            "get": {
                "summary": "Jobs, newest first; their gate and table are null here",
                "parameters": [
                    _query("state", {"type": "string", "enum": _STATES}, "only jobs in this state"),
                    _query("before", INSPECTION_ID, "only jobs older than this one"),
                    _limit(),
                ],
                "responses": told(_json("JobPage"), [422]),
            }
        },
        job: {
            "get": {"summary": "One job", "parameters": [_ID], "responses": of_job(_json("Job"))},
            "delete": {
                "summary": "Cancel a job; what it learnt is kept, and it can be resumed",
                "parameters": [_ID],
                "responses": of_job(_json("Job"), 409),
            },
        },
        f"{job}/resume": {
            "post": {
                "summary": "Let a job go on that failed or was cancelled",
                "parameters": [_ID],
                "responses": of_job(_json("Job"), 409),
            }
        },
        f"{job}/log": {
            "get": {
                "summary": "The last 200 kB that its process wrote",
                "parameters": [_ID],
                "responses": of_job({"text/plain": {"schema": {"type": "string"}}}),
            }
        },
        f"{job}/curves": {
            "get": {
                "summary": "What was measured while it learnt",
                "parameters": [_ID],
                "responses": of_job(_json("CurvesReport")),
            }
        },
    }


def _limit() -> dict[str, Any]:
    return _query("limit", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}, "page size")


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
