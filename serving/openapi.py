"""The OpenAPI document of our routes: the framework describes only its own APIs.

The schemas come from `schemas.py`; a test holds the paths and methods to the routes that are really there.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

from pydantic.json_schema import models_json_schema

from inspect_vit.recipe import Recipe
from serving.account_schemas import AuditPage, LoginRequest, SessionReport
from serving.openapi_access import SECURITY_SCHEMES, account_paths, add_security
from serving.openapi_alarms import ALARM_MODELS, alarm_paths
from serving.openapi_escapes import ESCAPE_MODELS, escape_paths
from serving.openapi_jobs import JOB_MODELS, job_paths
from serving.openapi_line import LINE_MODELS, line_paths
from serving.openapi_models import MODEL_MODELS, model_paths
from serving.openapi_parts import INSPECTION_ID, LABEL
from serving.openapi_pictures import PICTURE_MODELS, picture_paths
from serving.openapi_recipes import recipe_paths
from serving.openapi_reviews import REVIEW_MODELS, review_paths
from serving.schemas import (
    EVIDENCE_MAPS,
    AttentionFormat,
    AttentionMethod,
    ErrorReport,
    EvidenceReport,
    InspectionPage,
    InspectionReport,
    InspectOptions,
    RecipePage,
    RecipeReport,
)

_PNG = {"image/png": {"schema": {"type": "string", "format": "binary"}}}
_NPZ = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ERRORS = {
    400: "the image cannot be decoded, or the body is not readable multipart",
    404: "no such inspection, or no such picture of it",
    408: "the body stopped coming before it was whole",
    409: "the Idempotency-Key or the revision is taken, the recipe pins a model that is not there or is "
    "damaged, or a pin would go round the gate",
    410: "the model version that made the inspection is not on this server",
    413: "the body or the picture is too large",
    415: "not an image in a format that is read, or not multipart/form-data",
    422: "a field or query parameter with a wrong value; the message names it",
    503: "the queue is full, the turn did not come or the store is not there; Retry-After says when to retry",
    507: "the disk is full; nothing was stored",
}


@cache
def openapi_document() -> dict[str, Any]:
    """OpenAPI 3.1, as a plain tree."""
    _, schemas = models_json_schema(
        [
            (InspectionReport, "serialization"),
            (InspectionPage, "serialization"),
            (EvidenceReport, "serialization"),
            (ErrorReport, "serialization"),
            (InspectOptions, "validation"),
            (LoginRequest, "validation"),
            (SessionReport, "serialization"),
            (AuditPage, "serialization"),
            (Recipe, "validation"),
            (RecipeReport, "serialization"),
            (RecipePage, "serialization"),
            *ALARM_MODELS,
            *REVIEW_MODELS,
            *PICTURE_MODELS,
            *LINE_MODELS,
            *ESCAPE_MODELS,
            *MODEL_MODELS,
            *JOB_MODELS,
        ],
        ref_template="#/components/schemas/{model}",
    )
    paths = _paths() | account_paths()
    described_by = (
        *(recipe_paths, alarm_paths, review_paths, picture_paths, line_paths),
        *(model_paths, job_paths, escape_paths),
    )
    for described in described_by:
        paths |= described(_responses)
    add_security(paths)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "inspect-vit",
            "version": _version(),
            "description": "Post a picture of a printed circuit board, alone or with its golden reference; "
            "get verdict, defects, defect map and attention overlays.",
        },
        "paths": paths,
        "components": {"schemas": schemas["$defs"], "securitySchemes": SECURITY_SCHEMES},
    }


def _version() -> str:
    try:
        return version("inspect-vit")
    except PackageNotFoundError:
        return "unknown"


def _paths() -> dict[str, Any]:
    one = "/v1/inspections/{id}"
    as_posted = _query("format", "as posted, or a PNG every browser shows", ["posted", "png"], "posted")
    style = _query(
        "style", "grey: 0..255 is probability 0..1; colour: over the board", ["grey", "colour"], "grey"
    )
    reference = _get("The golden reference as posted", _posted(), [404, 422], [as_posted])
    docs = {"summary": "This document", "responses": {"200": _ok({"application/json": {}})}}
    return {
        "/v1/inspect": {"post": _inspect()},
        "/v1/inspections": {"get": _list()},
        one: {"get": _get("One inspection", _json("InspectionReport"), [404, 422])},
        f"{one}/image": {"get": _get("The board as posted", _posted(), [404, 422], [as_posted])},
        f"{one}/reference": {"get": reference},
        f"{one}/defect_map": {"get": _get("Probability of a defect per pixel", _PNG, [404, 422], [style])},
        f"{one}/overlay": {"get": _get("Board, defect map and boxes in one picture", _PNG, [404, 422])},
        f"{one}/gate": {"get": _get("Share of each level in the gated fusion, per pixel", _PNG, [404, 422])},
        f"{one}/attention": {
            "get": _get(
                "What the network looked at: attention of a level for all of the board, a defect or a point; "
                "roll-out or relevance of a defect. The headers evidence-reliable, evidence-drop, "
                "evidence-random-drop and evidence-words say whether the map can be believed",
                _PNG | _NPZ,
                [404, 410, 422, 503],
                _attention_query(),
            )
        },
        f"{one}/evidence": {
            "get": _get(
                "Can the overlays be believed: how far the score falls when what they point at is replaced",
                _json("EvidenceReport"),
                [404, 410, 422, 503],
                [
                    _number("defect", "the defect to test on; default: the top call", "integer"),
                    _query("map", "only this map; default: relevance in total", list(EVIDENCE_MAPS), None),
                ],
            )
        },
        "/metrics": {"get": _plain("Counters in Prometheus' text format")},
        "/docs.json": {"get": docs},
        "/livez": {"get": _plain("200 while the process lives")},
        "/readyz": {"get": _plain("200 when inspections are taken, else 503")},
    }


def _attention_query() -> list[dict[str, Any]]:
    head = _number("head", "attention head of the level, or all side by side; default: their mean", "integer")
    head["schema"] = {"anyOf": [head["schema"], {"const": "all"}]}
    method = _query(
        "method",
        "attention: exact weights; rollout: through all blocks of all levels; relevance: by gradient",
        list(get_args(AttentionMethod)),
        "attention",
    )
    level = _query(
        "level",
        "patch size of the level in pixels, default 4; all of them, the default, for relevance and rollout",
        ["4", "16", "32", "all"],
        None,
    )
    crop = _parameter(
        "crop", "part to draw: left,top,right,bottom in pixels; default: all", {"type": "string"}
    )
    return [
        method,
        level,
        head,
        _number("x", "with y: what this point attended to; pixels of the posted image", "number"),
        _number("y", "see x", "number"),
        _number(
            "defect",
            "what the defect of this id attended to, or what spoke for it; relevance, rollout: default 1",
            "integer",
        ),
        _query(
            "format", "a picture, or float32 numbers per 4 px cell", list(get_args(AttentionFormat)), "png"
        ),
        _number("scale", "drawn pixels per pixel of the board, 0.1 to 16; default 1", "number"),
        crop,
        _number("contour", "also draw a line at this value of the map", "number"),
    ]


def _inspect() -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    return {
        "summary": "Inspect one board and store the result; ERROR means: not inspected",
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "same key and request: the stored answer again; same key, other request: 409",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["image"],
                        "additionalProperties": False,
                        "properties": {
                            "image": {**file, "description": "JPEG, PNG, BMP, TIFF or WebP, 8 or 16 bit"},
                            "reference": {
                                **file,
                                "description": "a good board; it is aligned with the image",
                            },
                            "serial": {**LABEL, "description": "serial number of this board"},
                            "recipe": {**LABEL, "description": "name of the recipe to inspect by"},
                            "options": {"$ref": "#/components/schemas/InspectOptions"},
                        },
                    },
                    "encoding": {"options": {"contentType": "application/json"}},
                }
            },
        },
        "responses": _responses(_json("InspectionReport"), [400, 408, 409, 413, 415, 422, 503, 507]),
    }


def _list() -> dict[str, Any]:
    parameters = [
        _query("verdict", "only this verdict", ["PASS", "FAIL", "ERROR"], None),
        _parameter("serial", "only this board: its attempts, newest first", LABEL),
        _parameter("before", "only inspections older than this id", INSPECTION_ID),
        {
            "name": "limit",
            "in": "query",
            "description": "page size",
            "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
        },
    ]
    return {
        "summary": "Inspections, newest first",
        "parameters": parameters,
        "responses": _responses(_json("InspectionPage"), [422]),
    }


def _get(
    summary: str, content: dict[str, Any], errors: list[int], query: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    identifier = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "summary": summary,
        "parameters": [identifier, *(query or [])],
        "responses": _responses(content, errors),
    }


def _plain(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _ok({"text/plain": {"schema": {"type": "string"}}})}}


def _query(name: str, description: str, choices: list[str], default: str | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "enum": choices}
    if default is not None:
        schema["default"] = default
    return _parameter(name, description, schema)


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _number(name: str, description: str, kind: str) -> dict[str, Any]:
    schema = {"type": kind, "minimum": 0}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _posted() -> dict[str, Any]:
    return {"image/*": {"schema": {"type": "string", "format": "binary"}}}


def _ok(content: dict[str, Any]) -> dict[str, Any]:
    return {"description": "OK", "content": content}


def _responses(content: dict[str, Any], errors: list[int]) -> dict[str, Any]:
    failures = {
        str(status): {"description": _ERRORS[status], "content": _json("ErrorReport")} for status in errors
    }
    return {"200": _ok(content), **failures}
