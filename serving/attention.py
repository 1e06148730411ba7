"""GET /v1/inspections/{id}/attention: what is asked, and the answer as a picture or as numbers."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX, cells_of, defect_query, point_query, to_cells
from inspect_vit.errors import ConfigError
from inspect_vit.overlay import encode_png, render_attention, render_heads
from inspect_vit.results import InspectionResult
from serving.engine import AttentionMaps, Pixels
from serving.errors import FieldError
from serving.schemas import LEVELS, AttentionFormat, AttentionLevel, StoredReport

ChoiceT = TypeVar("ChoiceT", bound=str)
PARAMETERS = {"level", "head", "x", "y", "defect", "format"}
LARGEST_NUMBER = 6
"""Most digits of a head or defect number."""


@dataclass(frozen=True)
class AttentionAsk:
    """One question; without point and defect, the attention that tokens receive from all of the board."""

    level: AttentionLevel
    head: int | Literal["all"] | None
    """None: the mean over the heads."""
    point: tuple[float, float] | None
    """(x, y), px of the posted image."""
    defect: int | None
    """Number of the defect in the inspection, from 1."""
    format: AttentionFormat

    @property
    def rows(self) -> tuple[object, ...]:
        """What the attention itself depends on: a cell, a defect, or nothing. The rest is how it is shown."""
        if self.point is not None:
            return "cell", *(int(value // CELL_PX) for value in self.point)
        return () if self.defect is None else ("defect", self.defect)


def read_ask(query: Mapping[str, str]) -> AttentionAsk:
    """Query parameters, already known to be among PARAMETERS.

    Raises:
        FieldError: a wrong value, one of x and y alone, or a point and a defect together.
    """
    level = _choice(query, "level", LEVELS, "4")
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
        point = (_pixels(query, "x"), _pixels(query, "y"))
    defect = _number(query, "defect", "the id of a defect") if "defect" in query else None
    if point is not None and defect is not None:
        raise FieldError("defect: met together with x and y, wanted a defect or a point")
    return AttentionAsk(
        level, head, point, defect, _choice(query, "format", get_args(AttentionFormat), "png")
    )


def asked_cells(
    ask: AttentionAsk, report: StoredReport, result: InspectionResult
) -> NDArray[np.float32] | None:
    """Weights of cells (h, w) whose rows are asked; None for the whole board.

    Raises:
        FieldError: a point outside the picture, or a defect that the inspection does not have.
    """
    if ask.point is not None:
        x, y = ask.point
        try:
            return point_query(x, y, width=report.image.width, height=report.image.height)
        except ConfigError as error:
            raise FieldError(str(error)) from error
    if ask.defect is None:
        return None
    count = len(result.defects)
    if not 1 <= ask.defect <= count:
        wanted = f"wanted 1 to {count}" if count else "and this inspection lists no defects"
        raise FieldError(f"defect: {ask.defect}, {wanted}")
    return defect_query(result.defect_map, result.class_names, result.defects[ask.defect - 1])


def answer_attention(
    ask: AttentionAsk, image: Pixels, maps: AttentionMaps, query: NDArray[np.float32] | None
) -> bytes:
    """A PNG of the image's size (head=all: the heads side by side), or an .npz with the numbers drawn.

    Raises:
        FieldError: a head that the level does not have.
    """
    heads = maps[ask.level]
    if isinstance(ask.head, int) and ask.head >= len(heads):
        last = len(heads) - 1
        raise FieldError(f"head: {ask.head}, wanted 0 to {last} on the {ask.level} px level, or all")
    shown = to_cells(heads, cells_of(*image.shape[:2]), int(ask.level) // CELL_PX)
    if ask.head == "all":
        if ask.format == "npz":
            return _npz(shown, query)
        return encode_png(render_heads(image, shown, ask.level, query=query))
    chosen = shown.mean(0) if ask.head is None else shown[ask.head]
    if ask.format == "npz":
        return _npz(chosen, query)
    return encode_png(render_attention(image, chosen, ask.level, query=query))


def _npz(attention: NDArray[np.float32], query: NDArray[np.float32] | None) -> bytes:
    arrays: dict[str, NDArray[np.generic]] = {"attention": attention, "cell_px": np.array(CELL_PX)}
    if query is not None:
        arrays["query"] = query
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


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


def _pixels(query: Mapping[str, str], name: str) -> float:
    try:
        value = float(query[name])
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise FieldError(f"{name}: {query[name][:40]!r}, wanted a number of pixels")
    return value
