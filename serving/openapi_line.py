"""The routes of the line's figures and of challenge boards in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.challenge_schemas import ChallengeReport, ChallengeRequest, ClearRequest
from serving.openapi_parts import LABEL, RECIPE_NAME
from serving.preview_schemas import Preview
from serving.stats_schemas import Stats
from serving.tested import ImportReport

LINE_MODELS: list[tuple[Any, Any]] = [
    (Stats, "serialization"),
    (ImportReport, "serialization"),
    (Preview, "serialization"),
    (ChallengeReport, "serialization"),
    (ChallengeRequest, "validation"),
    (ClearRequest, "validation"),
]
_NAME = {"name": "name", "in": "path", "required": True, "schema": RECIPE_NAME}
_TEXT = {"type": "string"}


def line_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    of_recipe = "/v1/recipes/{name}"

    def body(schema: str) -> dict[str, Any]:
        return {"required": True, "content": _json(schema)}

    def named(content: dict[str, Any], statuses: list[int]) -> dict[str, Any]:
        found = responses(content, statuses)
        found["404"] = {**found["404"], "description": "no such recipe"}
        return dict(found)

    return {
        "/v1/stats": {
            "get": {
                "summary": "Figures of the line: yield, false calls, escapes, Pareto, trend, agreement",
                "parameters": _span(),
                "responses": responses(_json("Stats"), [422]),
            }
        },
        "/v1/stats.csv": {
            "get": {
                "summary": "The same as a table, one figure a row",
                "parameters": _span(),
                "responses": responses({"text/csv": {"schema": _TEXT}}, [422]),
            }
        },
        "/v1/test-results": {
            "post": {
                "summary": "Results of in-circuit or functional test, all or none: which boards escaped",
                "requestBody": {
                    "required": True,
                    "content": {
                        "text/csv": {
                            "schema": {
                                **_TEXT,
                                "description": "header serial,result and maybe label,time; pass or fail",
                                "example": "serial,result\nSN-17,fail\n",
                            }
                        }
                    },
                },
                "responses": responses(_json("ImportReport"), [408, 413, 422]),
            }
        },
        f"{of_recipe}/challenge": {
            "get": {
                "summary": "The challenge boards of a recipe, and whether it is locked",
                "parameters": [_NAME],
                "responses": named(_json("ChallengeReport"), [404, 422]),
            },
            "put": {
                "summary": "Store which boards with known defects are shown, and how often",
                "parameters": [_NAME],
                "requestBody": body("ChallengeRequest"),
                "responses": named(_json("ChallengeReport"), [404, 408, 413, 422]),
            },
        },
        f"{of_recipe}/challenge/clear": {
            "post": {
                "summary": "Unlock a recipe that a challenge board locked",
                "parameters": [_NAME],
                "requestBody": body("ClearRequest"),
                "responses": named(_json("ChallengeReport"), [404, 408, 413, 422]),
            }
        },
        f"{of_recipe}/preview": {
            "get": {
                "summary": "What other thresholds would do, by the boards that people have reviewed",
                "parameters": [_NAME, _query("label", LABEL, "only this class")],
                "responses": named(_json("Preview"), [404, 422]),
            }
        },
    }


def _span() -> list[dict[str, Any]]:
    moment = {"type": "string", "format": "date-time"}
    return [
        _query(
            "since", moment, "first moment counted; UTC where no zone is named; default: 30 days before until"
        ),
        _query("until", moment, "exclusive; default: now"),
        _query("recipe", LABEL, "only boards of this recipe"),
        _query(
            "bucket",
            {"type": "string", "enum": ["hour", "day"], "default": "day"},
            "of the trend; a span of at most 32 days for hours, 400 for days",
        ),
    ]


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
