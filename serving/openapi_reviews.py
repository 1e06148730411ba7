"""Reviews, the queue and its events in the OpenAPI document."""

from __future__ import annotations

from typing import Any, get_args

from serving.openapi_parts import LABEL
from serving.queue_schemas import QueueItem, QueueOrder, QueuePage, QueueState, ReviewEvent
from serving.review_schemas import DispositionRequest, Review, Verification

REVIEW_MODELS: list[tuple[Any, Any]] = [
    (Review, "serialization"),
    (Verification, "validation"),
    (DispositionRequest, "validation"),
    (QueuePage, "serialization"),
    (QueueItem, "serialization"),
    (ReviewEvent, "serialization"),
]


def review_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    one = "/v1/inspections/{id}"
    identifier = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}

    def posted(summary: str, model: str) -> dict[str, Any]:
        answers = responses(_json("Review"), [404, 408, 409, 413, 422, 503])
        taken = "somebody else reviewed it since the revision in `expects`; the hint says who and when"
        answers["409"] = {**answers["409"], "description": taken}
        body = {"required": True, "content": _json(model)}
        return {
            "post": {
                "summary": summary,
                "parameters": [identifier],
                "requestBody": body,
                "responses": answers,
            }
        }

    return {
        f"{one}/review": {
            "get": {
                "summary": "What people said of an inspection, now or up to an earlier revision",
                "parameters": [
                    identifier,
                    _query(
                        "revision",
                        {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
                        "as it stood then, never hasty; 0: before anybody spoke; default: now",
                    ),
                ],
                "responses": responses(_json("Review"), [404, 422]),
            }
        },
        f"{one}/verifications": posted(
            "Say of each call whether it is real, and what was missed: all of it, as a new revision",
            "Verification",
        ),
        f"{one}/disposition": posted(
            "Say what happens to the board, as a new revision", "DispositionRequest"
        ),
        "/v1/queue": {
            "get": {
                "summary": "Boards that wait for people: every FAIL and ERROR, and PASS that were drawn",
                "parameters": _queue_query(),
                "responses": responses(_json("QueuePage"), [422]),
            }
        },
        "/v1/events": {
            "get": {
                "summary": "Server-sent events: `inspection` with a QueueItem, `review` with a ReviewEvent, "
                "`job` with a Job",
                "responses": responses({"text/event-stream": {"schema": {"type": "string"}}}, [422, 503]),
            }
        },
    }


def _queue_query() -> list[dict[str, Any]]:
    moment = {"type": "string", "format": "date-time"}
    return [
        _query(
            "order",
            _one_of(QueueOrder, "newest"),
            "worst: highest score first, ERROR last; uncertain: nearest to a threshold first",
        ),
        _query("state", _one_of(QueueState, "open"), "all: PASS that were not drawn, too"),
        _query("verdict", {"type": "string", "enum": ["PASS", "FAIL", "ERROR"]}, "only this verdict"),
        _query("recipe", LABEL, "only boards of this recipe"),
        _query("label", LABEL, "only boards with a call of this class"),
        _query("serial", LABEL, "only this board"),
        _query("model", LABEL, "only boards inspected by this model version"),
        _query("since", moment, "only boards from this moment on; a day will do"),
        _query("until", moment, "only boards before this moment"),
        _query("limit", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}, "page size"),
        _query(
            "after",
            {"type": "string", "pattern": "^(-?[0-9.]+-)?[0-9a-f]{32}$"},
            "where the page before ended; take `next` as it is",
        ),
    ]


def _one_of(choices: Any, default: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(get_args(choices)), "default": default}


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
