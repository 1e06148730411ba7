"""The alarm routes in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.alarm_schemas import AcknowledgeRequest, AlarmPage, AlarmReport

ALARM_MODELS: list[tuple[Any, Any]] = [
    (AlarmPage, "serialization"),
    (AlarmReport, "serialization"),
    (AcknowledgeRequest, "validation"),
]


def alarm_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    number = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
    acknowledged = responses(_json("AlarmReport"), [404, 408, 422])
    acknowledged["404"] = {**acknowledged["404"], "description": "no such alarm"}
    return {
        "/v1/alarms": {
            "get": {
                "summary": "Drift and repeated defects that the service noticed, newest first",
                "parameters": [
                    _query("state", {"type": "string", "enum": ["open", "all"], "default": "open"}, "which"),
                    _query("recipe", {"type": "string", "maxLength": 200}, "only of this recipe"),
                    _query("before", number, "only alarms before this number"),
                    _query(
                        "limit",
                        {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
                        "page size",
                    ),
                ],
                "responses": responses(_json("AlarmPage"), [422]),
            }
        },
        "/v1/alarms/{id}/acknowledge": {
            "post": {
                "summary": "Close an alarm, and watch for its cause anew; a closed one stays as it is",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": number}],
                "requestBody": {"required": False, "content": _json("AcknowledgeRequest")},
                "responses": acknowledged,
            }
        },
    }


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
