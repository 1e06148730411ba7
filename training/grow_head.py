"""A model with other classes: rows of the head are added, renamed or dropped; nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from inspect_vit.errors import ConfigError
from inspect_vit.heads import DefectHead
from inspect_vit.model import HierarchicalViT


def new_names(
    old: Sequence[str],
    *,
    add: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    retire: Sequence[str] = (),
) -> dict[str, str | None]:
    """Class of the new model -> class of the old one it was, None for one that is new; old ones first.

    Raises:
        ConfigError: a class to rename or retire that is not there, a name twice, or no class left.
    """
    rename = rename or {}
    for deed, names in (("rename", rename), ("retire", retire)):
        if missing := [name for name in names if name not in old]:
            raise ConfigError(f"cannot {deed} {missing[0]!r}: the model knows {', '.join(old)}")
    if both := [name for name in retire if name in rename]:
        raise ConfigError(f"{both[0]!r} is to be renamed and retired; give one of the two")
    after: dict[str, str | None] = {}
    for name in [name for name in old if name not in retire]:
        _put(after, rename.get(name, name), name)
    for name in add:
        _put(after, name, None)
    if not after:
        raise ConfigError("no class would be left; retire fewer")
    return after


def _put(after: dict[str, str | None], name: str, origin: str | None) -> None:
    if not name.strip():
        raise ConfigError("a class needs a name that is not blank")
    if name in after:
        known = "is known to the model already" if origin is None and after[name] else "would be there twice"
        raise ConfigError(f"class {name!r} {known}; give another name, or rename or retire the old one")
    after[name] = origin


def grow(model: HierarchicalViT, names: Mapping[str, str | None], *, widen: int = 0) -> HierarchicalViT:
    """A copy of the model with the classes of `new_names`; its answers about old classes do not change.

    Rows of new classes start as a head does before training; `prototypes` gives them a better start.

    Args:
        widen: channels added to the head's trunk, which old rows do not read yet.
    """
    old, width = model.config.class_names, model.config.head_width
    config = {"class_names": tuple(names), "head_width": width + widen}
    grown = HierarchicalViT(model.config.model_copy(update=config))
    weights, fresh = model.state_dict(), grown.state_dict()
    origin = head_rows(names, old)
    for key in ("head.out.weight", "head.out.bias"):
        value = fresh[key].clone()
        for row, source in enumerate(origin):
            if source is not None and value.ndim > 1:
                value[row, :width], value[row, width:] = weights[key][source], 0
            elif source is not None:
                value[row] = weights[key][source]
        weights[key] = value
    for key in ("head.trunk.0.weight", "head.trunk.0.bias"):
        weights[key] = torch.cat([weights[key], fresh[key][width:]])
    grown.load_state_dict(weights)
    return grown.eval()


def head_rows(names: Mapping[str, str | None], old: Sequence[str]) -> list[int | None]:
    """For each row of the new head the row of the old one, None where it is new: centres, box, defect map."""
    classes = [None if origin is None else old.index(origin) for origin in names.values()]
    box = [len(old) + i for i in range(4)]
    return [*classes, *box, *(None if row is None else len(old) + 4 + row for row in classes)]


def old_columns(names: Mapping[str, str | None], old: Sequence[str]) -> tuple[list[int], list[int]]:
    """Index of every class that both have: in the new model, and in the old one."""
    pairs = [(i, old.index(origin)) for i, origin in enumerate(names.values()) if origin is not None]
    return [new for new, _ in pairs], [before for _, before in pairs]


def new_columns(names: Mapping[str, str | None]) -> list[int]:
    """Index of every class that is new."""
    return [i for i, origin in enumerate(names.values()) if origin is None]


def out_row(head: DefectHead, label: int, *, mask: bool) -> int:
    """Row of the head's last layer that gives the centre logit, or the defect-map logit, of a class."""
    return label + (head.num_classes + 4 if mask else 0)
