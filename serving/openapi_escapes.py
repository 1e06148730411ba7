"""The routes of an escape in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.openapi_parts import RECIPE_NAME
from serving.spot_schemas import Spot
from serving.threshold_schemas import ThresholdReport, ThresholdRequest

ESCAPE_MODELS: list[tuple[Any, Any]] = [
    (Spot, "serialization"),
    (ThresholdReport, "serialization"),
    (ThresholdRequest, "validation"),
]


def escape_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    box = {
        "name": "box",
        "in": "query",
        "required": True,
        "description": "left,top,right,bottom in whole pixels of the posted image",
        "schema": {"type": "string", "pattern": "^[0-9]{1,6}(,[0-9]{1,6}){3}$"},
        "example": "100,120,140,150",
    }
    set_to = responses(_json("ThresholdReport"), [404, 408, 409, 413, 422, 503])
    set_to["404"] = {**set_to["404"], "description": "no such recipe"}
    refused = "the reviewed boards do not support it: the message says which; or the recipe was changed"
    set_to["409"] = {**set_to["409"], "description": refused}
    return {
        "/v1/inspections/{id}/spot": {
            "get": {
                "summary": "What the network sees at a spot, called or not: each level's evidence",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    box,
                ],
                "responses": responses(_json("Spot"), [404, 410, 422, 503]),
            }
        },
        "/v1/recipes/{name}/thresholds": {
            "post": {
                "summary": "Set the threshold of a class, if reviewed boards of the acceptance part allow it",
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": RECIPE_NAME}],
                "requestBody": {"required": True, "content": _json("ThresholdRequest")},
                "responses": set_to,
            }
        },
    }


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
