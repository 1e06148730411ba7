"""The model routes in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.model_schemas import (
    ModelComparison,
    ModelPage,
    ModelReport,
    RetireRequest,
    RollbackRequest,
    ShadowReport,
    ShadowRequest,
    StageReport,
)

MODEL_MODELS: list[tuple[Any, Any]] = [
    *((model, "serialization") for model in (ModelPage, ModelReport, ModelComparison)),
    *((model, "serialization") for model in (StageReport, ShadowReport)),
    *((model, "validation") for model in (RollbackRequest, RetireRequest, ShadowRequest)),
]


def model_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    version = {"name": "version", "in": "path", "required": True, "schema": {"type": "string"}}
    other = {"name": "with", "in": "query", "required": True, "schema": {"type": "string"}}
    other["description"] = "the version to compare with"

    def answers(schema: str, codes: list[int]) -> dict[str, Any]:
        made: dict[str, Any] = responses(_json(schema), codes)
        words = {
            "404": "no such version or recipe",
            "409": "the version is corrupt, retired, in use or not in production, or the recipe was changed",
            "410": "the version's files are not on this server",
        }
        for code in map(str, codes):
            if code in words:
                made[code] = {**made[code], "description": words[code]}
        return made

    def change(summary: str, body: str, schema: str, codes: list[int], *, required: bool) -> dict[str, Any]:
        return {
            "summary": summary,
            "parameters": [version],
            "requestBody": {"required": required, "content": _json(body)},
            "responses": answers(schema, codes),
        }

    def read(summary: str, schema: str, codes: list[int], *more: dict[str, Any]) -> dict[str, Any]:
        return {"summary": summary, "parameters": [version, *more], "responses": answers(schema, codes)}

    one = "/v1/models/{version}"
    return {
        "/v1/models": {
            "get": {
                "summary": "All model versions: where each is from, what it inspects, what became of it",
                "responses": responses(_json("ModelPage"), [422]),
            }
        },
        one: {"get": read("One model version", "ModelReport", [404, 422])},
        f"{one}/compare": {
            "get": read("Figures of two versions", "ModelComparison", [404, 409, 410, 422], other)
        },
        f"{one}/rollback": {
            "post": change(
                "Take a version out of production, back to the one before it",
                "RollbackRequest",
                "StageReport",
                [404, 408, 409, 410, 422],
                required=False,
            )
        },
        f"{one}/retire": {
            "post": change(
                "Flag a version as not to be promoted any more; its files stay",
                "RetireRequest",
                "ModelReport",
                [404, 408, 409, 422],
                required=False,
            )
        },
        f"{one}/shadow": {
            "post": change(
                "Let a candidate inspect a share of the boards too, after their answer",
                "ShadowRequest",
                "ShadowReport",
                [404, 408, 409, 410, 422],
                required=True,
            ),
            "get": read("What a candidate said beside production", "ShadowReport", [404, 422]),
        },
    }


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
