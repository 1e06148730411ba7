"""The routes of tiles, crops, thumbnails, legends and similar calls in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from serving.crops import DEFAULT_SIZE_PX, LARGEST_SIZE_PX
from serving.picture_routes import DEFAULT_SIMILAR, MOST_SIMILAR
from serving.picture_schemas import LegendReport, SimilarCalls, TilesReport
from serving.tiles_ask import LAYERS

PICTURE_MODELS: list[tuple[Any, Any]] = [
    (TilesReport, "serialization"),
    (LegendReport, "serialization"),
    (SimilarCalls, "serialization"),
]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_JPEG = {"image/jpeg": _BINARY}
_PICTURE = {**_JPEG, "image/png": _BINARY}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 999_999}
_BOX = {"type": "string", "pattern": "^[0-9]{1,6}(,[0-9]{1,6}){3}$"}
_REAL = {"type": "number", "minimum": 0}
_LABEL = {"type": "string", "maxLength": 200}


def picture_paths(responses: Any) -> dict[str, Any]:
    """The paths; `responses` puts a 200's content and the errors' status codes into a responses object."""
    one = "/v1/inspections/{id}"
    identifier = _in_path("id", {"type": "string"})
    layer = _in_path("layer", {"type": "string", "enum": list(LAYERS)})
    tile = [_in_path(name, _WHOLE) for name in ("level", "column", "row")]
    size = {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE_PX, "default": DEFAULT_SIZE_PX}
    limit = {"type": "integer", "minimum": 1, "maximum": MOST_SIMILAR, "default": DEFAULT_SIMILAR}
    crop = [
        _query("box", _BOX, "left,top,right,bottom in pixels of the board; default: all of it"),
        _query("size", size, "longer side, px: enlarged a whole number of times, or shrunk"),
    ]
    maps = _map_query()

    def get(
        summary: str, content: dict[str, Any], errors: list[int], parameters: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return {
            "get": {
                "summary": summary,
                "parameters": [identifier, *parameters],
                "responses": responses(content, errors),
            }
        }

    drawn = [404, 410, 422, 503, 507]
    return {
        f"{one}/thumbnail": get("The board, small", _JPEG, [404, 422], []),
        f"{one}/tiles/{{layer}}": get(
            "Size and levels of a layer, once it is ready to be cut into tiles",
            _json("TilesReport"),
            drawn,
            [layer, *maps],
        ),
        f"{one}/tiles/{{layer}}/{{level}}/{{column}}_{{row}}": get(
            "A tile: JPEG of the board, its reference laid under it, or their difference; PNG with opacity "
            "of a map, to be laid over the board",
            _PICTURE,
            drawn,
            [layer, *tile, *maps],
        ),
        f"{one}/crops/{{layer}}": get(
            "A place on the board, enlarged with visible pixels or shrunk; the same place of every layer has "
            "the same size",
            _PICTURE,
            drawn,
            [layer, *crop, *maps],
        ),
        f"{one}/legend/{{layer}}": get(
            "What the colours of a layer mean", _json("LegendReport"), [404, 422, 503], [layer, *maps]
        ),
        f"{one}/defects/{{number}}/similar": get(
            "Calls on other boards of the same recipe that are like this one",
            _json("SimilarCalls"),
            [404, 422],
            [_in_path("number", _WHOLE), _query("limit", limit, "most calls")],
        ),
    }


def _map_query() -> list[dict[str, Any]]:
    return [
        _query("label", _LABEL, "defect_map: of this class alone"),
        _query("defect", _WHOLE, "attention: what the defect of this id attended to"),
        _query("x", _REAL, "attention, with y: what this point attended to; pixels of the posted image"),
        _query("y", _REAL, "see x"),
        _query("head", _WHOLE, "attention: one head of the level; default: their mean"),
    ]


def _in_path(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
