"""The recipe routes in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.openapi_parts import RECIPE_NAME, REVISION_TAG
from serving.reference_pictures import LARGEST_SHOWN_PX

_FILE = {"type": "string", "format": "binary"}
_NAME = {"name": "name", "in": "path", "required": True, "schema": RECIPE_NAME}
_REVISION = {
    "name": "revision",
    "in": "query",
    "description": "default: the newest",
    "schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
}
_PAGE = {"application/json": {"schema": {"$ref": "#/components/schemas/RecipePage"}}}
_ONE = {"application/json": {"schema": {"$ref": "#/components/schemas/RecipeReport"}}}


def recipe_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    number = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
    longest = {
        "name": "longest",
        "in": "query",
        "description": "a JPEG with a longest side of at most so many pixels; default: the file as sent",
        "schema": {"type": "integer", "minimum": 1, "maximum": LARGEST_SHOWN_PX},
    }
    deleted = responses({}, [404, 422])
    deleted["204"] = {"description": "taken out of use; its revisions stay"}
    del deleted["200"]
    return {
        "/v1/recipes": {"get": {"summary": "Recipes in use, by name", "responses": responses(_PAGE, [422])}},
        "/v1/recipes/{name}": {
            "put": _put(responses),
            "get": {
                "summary": "A recipe",
                "parameters": [_NAME, _REVISION],
                "responses": responses(_ONE, [404, 422]),
            },
            "delete": {
                "summary": "Take a recipe out of use",
                "parameters": [_NAME],
                "responses": deleted,
            },
        },
        "/v1/recipes/{name}/revisions": {
            "get": {
                "summary": "All revisions of a recipe, newest first",
                "parameters": [_NAME],
                "responses": responses(_PAGE, [404, 422]),
            }
        },
        "/v1/recipes/{name}/references/{number}": {
            "get": {
                "summary": "A golden reference as it was sent, or as a browser can show it",
                "parameters": [_NAME, number, _REVISION, longest],
                "responses": responses({"image/*": {"schema": _FILE}}, [404, 422]),
            }
        },
    }


def _put(responses: Any) -> dict[str, Any]:
    body = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "recipe": {"$ref": "#/components/schemas/Recipe"},
            "reference": {
                "type": "array",
                "maxItems": 8,
                "items": _FILE,
                "description": "golden references; the file's name is the reference's",
            },
            "good": {
                "type": "array",
                "minItems": 3,
                "maxItems": 20,
                "items": _FILE,
                "description": "good boards, whose median becomes the reference",
            },
        },
    }
    matching = {
        "name": "If-Match",
        "in": "header",
        "description": "revision that the change is for, in quotes; another one there: 409",
        "schema": REVISION_TAG,
    }
    new = {
        "name": "If-None-Match",
        "in": "header",
        "description": "*: only if there is no such recipe yet",
        "schema": {"type": "string"},
    }
    return {
        "summary": "Store a new revision of a recipe; without pictures it keeps the references it has",
        "parameters": [_NAME, matching, new],
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": body,
                    "encoding": {"recipe": {"contentType": "application/json"}},
                },
                "application/json": {"schema": {"$ref": "#/components/schemas/Recipe"}},
            },
        },
        "responses": responses(_ONE, [400, 408, 409, 413, 415, 422, 503, 507]),
    }
