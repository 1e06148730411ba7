"""GET /v1/inspections/{id}/attention: what is asked, and which of the computed maps that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX, defect_query, point_query, to_cells
from inspect_vit.drawing import Rect
from inspect_vit.errors import ConfigError
from inspect_vit.results import InspectionResult
from serving.errors import FieldError
from serving.schemas import LEVELS, AttentionFormat, AttentionMethod, MapLevel

ChoiceT = TypeVar("ChoiceT", bound=str)
PARAMETERS = {"method", "level", "head", "x", "y", "defect", "format", "scale", "crop", "contour"}
LARGEST_NUMBER = 6
"""Most digits of a head or defect number."""
SCALES = (0.1, 16.0)
"""Drawn pixels per pixel of the board."""
TOP_CALL = 1
"""Defects are listed highest score first."""

Maps = dict[str, NDArray[np.float32]]
"""By level. Attention: {"4", "16", "32"}: (num_heads, h_l, w_l) on the level's own tokens, uniform 1.
Relevance: {"4", "16", "32", "all"}: (h, w), logits. Roll-out: {"all"}: (h, w), share of each cell."""


@dataclass(frozen=True)
class Shown:
    """How an answer is drawn; nothing here changes what is computed."""

    scale: float = 1.0
    crop: Rect | None = None
    """None: all of the board."""
    contour: float | None = None
    """Also draw a line at this value, in the map's unit."""


@dataclass(frozen=True)
class AttentionAsk:
    """One question; without point and defect, the attention that tokens receive from all of the board."""

    method: AttentionMethod = "attention"
    level: MapLevel = "4"
    head: int | Literal["all"] | None = None
    """None: the mean over the heads."""
    point: tuple[float, float] | None = None
    """(x, y), px of the posted image."""
    defect: int | None = None
    """Number of the defect in the inspection, from 1."""
    format: AttentionFormat = "png"
    shown: Shown = Shown()

    @property
    def rows(self) -> tuple[object, ...]:
        """What the maps themselves depend on: a cell, a defect, or nothing. The rest is which is shown."""
        if self.point is not None:
            return "cell", *(int(value // CELL_PX) for value in self.point)
        return () if self.defect is None else ("defect", self.defect)

    @property
    def tested(self) -> int | None:
        """Number of the defect that the map is tested on, the one asked or the top call; none for a point."""
        return None if self.point is not None else self.defect or TOP_CALL

    @property
    def name(self) -> tuple[object, ...]:
        """What tells the map from others of the same rows."""
        head = None if self.head == "all" else self.head
        return self.method, self.level, head


def read_ask(query: Mapping[str, str]) -> AttentionAsk:
    """Query parameters, already known to be among PARAMETERS.

    Raises:
        FieldError: a wrong value, one of x and y alone, or parameters that make no sense together.
    """
    method = _choice(query, "method", get_args(AttentionMethod), "attention")
    level = _level(query, method)
    if method != "attention":
        for name in ("head", "x", "y"):
            if name in query:
                raise FieldError(
                    f"{name}: met together with method={method}, wanted a defect",
                    hint=f"{method} explains a call and has no heads; method=attention has both",
                )
    head: int | Literal["all"] | None = None
    if "head" in query:
        head = "all" if query["head"] == "all" else _number(query, "head", "a number from 0, or all")
    point = None
    if ("x" in query) != ("y" in query):
        missing = "y" if "x" in query else "x"
        raise FieldError(
            f"{missing}: missing, wanted beside {'x' if missing == 'y' else 'y'}: a point has both"
        )
    if "x" in query:
        point = (_real(query, "x", "a number of pixels"), _real(query, "y", "a number of pixels"))
    defect = _number(query, "defect", "the id of a defect") if "defect" in query else None
    if point is not None and defect is not None:
        raise FieldError("defect: met together with x and y, wanted a defect or a point")
    if defect is None and method != "attention":
        defect = TOP_CALL
    file_format = _choice(query, "format", get_args(AttentionFormat), "png")
    if file_format == "npz":
        for name in ("scale", "crop", "contour"):
            if name in query:
                raise FieldError(f"{name}: met together with format=npz, wanted a picture to draw it on")
    return AttentionAsk(method, level, head, point, defect, file_format, _shown(query, method))


def asked_cells(ask: AttentionAsk, result: InspectionResult) -> NDArray[np.float32] | None:
    """Weights of cells (h, w) whose rows are asked; None for the whole board.

    Raises:
        FieldError: a point outside the picture, or a defect that the inspection does not have.
    """
    if ask.point is not None:
        x, y = ask.point
        try:
            return point_query(x, y, width=result.width, height=result.height)
        except ConfigError as error:
            raise FieldError(str(error)) from error
    if ask.defect is None:
        return None
    count = len(result.defects)
    if not 1 <= ask.defect <= count:
        wanted = f"wanted 1 to {count}" if count else "and this inspection lists no defects"
        raise FieldError(f"defect: {ask.defect}, {wanted}")
    return defect_query(result.defect_map, result.class_names, result.defects[ask.defect - 1])


def chosen_map(ask: AttentionAsk, maps: Maps, cells: tuple[int, int]) -> NDArray[np.float32]:
    """The asked map on cells: (h, w), or (num_heads, h, w) for head=all.

    Raises:
        FieldError: a head that the level does not have.
    """
    values = maps[ask.level]
    if ask.method != "attention":
        return values
    if isinstance(ask.head, int) and ask.head >= len(values):
        last = len(values) - 1
        raise FieldError(f"head: {ask.head}, wanted 0 to {last} on the {ask.level} px level, or all")
    shown = to_cells(values, cells, int(ask.level) // CELL_PX)
    if ask.head == "all":
        return shown
    return np.asarray(shown.mean(0) if ask.head is None else shown[ask.head], np.float32)


def _level(query: Mapping[str, str], method: AttentionMethod) -> MapLevel:
    """Attention is of one level; relevance of one or all together; roll-out of all together."""
    if method == "attention":
        return _choice(query, "level", LEVELS, "4")
    if method == "relevance":
        return _choice(query, "level", get_args(MapLevel), "all")
    if query.get("level", "all") != "all":
        raise FieldError(
            f"level: {query['level'][:40]!r}, wanted all: roll-out adds the levels by the defect's gate share"
        )
    return "all"


def _shown(query: Mapping[str, str], method: AttentionMethod) -> Shown:
    scale = _real(query, "scale", "a number") if "scale" in query else 1.0
    if not SCALES[0] <= scale <= SCALES[1]:
        raise FieldError(f"scale: {scale:g}, wanted {SCALES[0]:g} to {SCALES[1]:g} drawn pixels per pixel")
    contour = _real(query, "contour", "a value of the map") if "contour" in query else None
    if contour is not None and method != "relevance" and contour <= 0:
        raise FieldError(f"contour: {contour:g}, wanted a value above 0")
    return Shown(scale, read_rect("crop", query["crop"]) if "crop" in query else None, contour)


def read_rect(name: str, text: str) -> Rect:
    """left,top,right,bottom in whole pixels. Raises FieldError that names the parameter."""
    parts = text.split(",")
    if len(parts) != 4 or not all(part.isascii() and part.isdecimal() and len(part) < 7 for part in parts):
        raise FieldError(f"{name}: {text[:40]!r}, wanted left,top,right,bottom in whole pixels")
    left, top, right, bottom = (int(part) for part in parts)
    if right <= left or bottom <= top:
        raise FieldError(f"{name}: {text[:40]!r}, wanted left < right and top < bottom")
    return left, top, right, bottom


def _choice(query: Mapping[str, str], name: str, choices: tuple[ChoiceT, ...], default: ChoiceT) -> ChoiceT:
    value = query.get(name, default)
    for choice in choices:
        if value == choice:
            return choice
    raise FieldError(f"{name}: {value[:40]!r}, wanted one of {', '.join(choices)}")


def _number(query: Mapping[str, str], name: str, wanted: str) -> int:
    value = query[name]
    if not (value.isascii() and value.isdecimal()) or len(value) > LARGEST_NUMBER:
        raise FieldError(f"{name}: {value[:40]!r}, wanted {wanted}")
    return int(value)


def _real(query: Mapping[str, str], name: str, wanted: str) -> float:
    try:
        value = float(query[name])
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise FieldError(f"{name}: {query[name][:40]!r}, wanted {wanted}")
    return value
