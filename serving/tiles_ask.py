"""What tiles and crops are asked of: a layer of an inspection, and which map where there are several."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from serving.attention import AttentionAsk, read_ask
from serving.errors import FieldError, NotFoundError

PictureLayer = Literal["image", "reference", "difference"]
MapLayer = Literal["defect_map", "gate", "attention_4", "attention_16", "attention_32"]
Layer = Literal[PictureLayer, MapLayer]
LAYERS: tuple[Layer, ...] = get_args(Layer)
MAP_LAYERS: tuple[MapLayer, ...] = get_args(MapLayer)
PARAMETERS = {"label", "defect", "x", "y", "head"}
ATTENTION = "attention_"


@dataclass(frozen=True)
class LayerAsk:
    """One layer; without more, all classes, and the attention that tokens receive from all of the board."""

    layer: Layer
    label: str | None = None
    """defect_map: of this class alone."""
    attention: AttentionAsk | None = None
    """attention_*: its level, head, and whose rows."""

    @property
    def name(self) -> tuple[object, ...]:
        """What tells the map from the others of an inspection."""
        if self.attention is None:
            return self.layer, self.label
        return self.layer, *self.attention.name, *self.attention.rows


def read_layer(layer: str, query: Mapping[str, str]) -> LayerAsk:
    """A layer's name from the path, and the query parameters among PARAMETERS that it takes.

    Raises:
        NotFoundError: there is no such layer.
        FieldError: a parameter that the layer does not take, or with a wrong value.
    """
    known = _layer(layer)
    wanted = {name: value for name, value in query.items() if name in PARAMETERS}
    takes = {"label"} if known == "defect_map" else PARAMETERS - {"label"} if _is_attention(known) else set()
    for name in wanted:
        if name not in takes:
            whose = "defect_map" if name == "label" else "the attention layers"
            raise FieldError(f"{name}: met with the layer {known}, wanted with {whose} alone")
    if not _is_attention(known):
        return LayerAsk(known, label=wanted.get("label"))
    ask = read_ask({**wanted, "level": known.removeprefix(ATTENTION)})
    if ask.head == "all":
        raise FieldError("head: 'all', wanted the number of one head, or none for their mean")
    return LayerAsk(known, attention=ask)


def check_known_label(label: str | None, class_names: Collection[str]) -> None:
    """Raises FieldError for a class that the model does not tell."""
    if label is not None and label not in class_names:
        known = ", ".join(class_names)
        raise FieldError(f"label: {label[:80]!r}, wanted a class of this model: {known}")


def _layer(name: str) -> Layer:
    for layer in LAYERS:
        if name == layer:
            return layer
    raise NotFoundError(f"there is no layer {name[:40]!r}", hint=f"the layers are {', '.join(LAYERS)}")


def _is_attention(layer: Layer) -> bool:
    return layer.startswith(ATTENTION)
