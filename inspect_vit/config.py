"""Validated, frozen configuration: the object that is checked is the object the code receives."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from inspect_vit.errors import ConfigError

PositionKind = Literal["conv", "sincos", "learned", "alibi", "log-scan", "none"]
AttentionBackend = Literal["auto", "eager", "sdpa", "flash"]


class Frozen(BaseModel):
    """Base of every configuration: unknown keys are errors, values never change after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PatchLevelConfig(Frozen):
    """One token grid of the hierarchy."""

    patch_size: int = Field(gt=0, description="side of a patch in pixels; also the stride of the grid")
    embed_dim: int = Field(gt=0, description="channels of a token")
    depth: int = Field(ge=0, description="transformer blocks at this level")
    head_dim: int = Field(gt=0, description="channels of one attention head")
    window: int = Field(ge=0, description="side of an attention window in tokens; 0 = global attention")
    attn_drop: float = Field(0.0, ge=0.0, lt=1.0, description="dropout on attention weights, training only")
    mlp_ratio: float = Field(4.0, gt=0.0, description="hidden width of the MLP over embed_dim")
    position: PositionKind = Field("conv", description="position code of this level")

    @property
    def num_heads(self) -> int:
        return self.embed_dim // self.head_dim

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.embed_dim % self.head_dim:
            lower = max(self.embed_dim // self.head_dim, 1) * self.head_dim
            upper = (self.embed_dim // self.head_dim + 1) * self.head_dim
            divisors = [d for d in range(1, self.embed_dim + 1) if self.embed_dim % d == 0]
            nearest = min(divisors, key=lambda d: (abs(d - self.head_dim), -d))
            raise ValueError(
                f"embed_dim {self.embed_dim} is not a multiple of head_dim {self.head_dim}; "
                f"use embed_dim {lower} or {upper}, or head_dim {nearest}"
            )
        return self


class ModelConfig(Frozen):
    """Shape of a HierarchicalViT. Levels are listed fine to coarse."""

    class_names: tuple[str, ...] = Field(min_length=1)
    in_chans: Literal[1, 3] = Field(1, description="1: pictures are turned to grey first; 3: RGB")
    image_mean: float = Field(0.5, description="subtracted from pixels scaled to 0..1")
    image_std: float = Field(0.5, gt=0.0)
    levels: tuple[PatchLevelConfig, ...] = Field(min_length=3, max_length=3)
    head_width: int = Field(64, gt=0, description="channels of the defect head's trunk at stride 4")
    drop_path: float = Field(0.0, ge=0.0, lt=1.0)
    qk_norm: bool = False
    init: Literal["xavier", "orthogonal"] = "xavier"
    envelope_radii: tuple[int, ...] = Field(
        (), description="tolerance envelopes of the reference as extra input channels, rising radii in px"
    )
    size_multiple: int = Field(320, gt=0, description="pictures are edge-padded to multiples of this, in px")

    @model_validator(mode="after")
    def _levels_nest(self) -> Self:
        sizes = [level.patch_size for level in self.levels]
        for i, (fine, coarse) in enumerate(pairwise(sizes)):
            if coarse % fine or coarse == fine:
                raise ValueError(f"levels.{i + 1}.patch_size {coarse} must be a larger multiple of {fine}")
        if list(self.envelope_radii) != sorted({r for r in self.envelope_radii if r > 0}):
            raise ValueError(f"envelope_radii {list(self.envelope_radii)} must rise and start above 0")
        if len(set(self.class_names)) != len(self.class_names):
            raise ValueError(f"class_names {list(self.class_names)} holds a name twice")
        for i, level in enumerate(self.levels):
            if self.size_multiple % (level.patch_size * max(level.window, 1)):
                raise ValueError(
                    f"size_multiple {self.size_multiple} must be a multiple of "
                    f"levels.{i} patch_size x window, {level.patch_size * max(level.window, 1)} px"
                )
        return self


ConfigT = TypeVar("ConfigT", bound=BaseModel)


def load_config(path: str | Path, schema: type[ConfigT], overrides: list[str] | None = None) -> ConfigT:
    """Read a YAML file, apply `key.path=value` overrides (values are YAML), validate.

    Raises:
        ConfigError: unreadable file, or every fault with its path, as `levels.0.head_dmi: Extra inputs ...`.
    """
    path = Path(path)
    try:
        tree: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} holds {type(tree).__name__}, wanted a mapping of keys to values")
    for override in overrides or []:
        _apply_override(tree, override)
    return validate(tree, schema, source=str(path))


def changed(config: ConfigT, overrides: list[str]) -> ConfigT:
    """A configuration with `key.path=value` overrides, validated; errors as `load_config`."""
    tree = config.model_dump(mode="json")
    for override in overrides:
        _apply_override(tree, override)
    return validate(tree, type(config), source="--set")


def validate(tree: object, schema: type[ConfigT], *, source: str) -> ConfigT:
    """Check a plain tree against a schema; faults are named with their paths."""
    try:
        return schema.model_validate(tree)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or '(top)'}: {fault['msg']}"
            for fault in error.errors()
        )
        raise ConfigError(f"{source}: {faults}") from error


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {override!r}: wanted key.path=value, as optim.lr=3e-4")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override!r}: the value is not valid YAML") from error
    if isinstance(value, str):
        # YAML 1.1 reads 3e-4 as text; numbers typed on a command line are meant as numbers.
        try:
            value = float(value)
        except ValueError:
            value = str(value)
    node: Any = tree
    *parents, leaf = key.split(".")
    for part in parents:
        node = node[_index(node, part, override)] if isinstance(node, list) else node.setdefault(part, {})
        if not isinstance(node, dict | list):
            raise ConfigError(f"--set {override!r}: {part} is a value, not a section")
    if isinstance(node, list):
        node[_index(node, leaf, override)] = value
    else:
        node[leaf] = value


def _index(node: list[Any], part: str, override: str) -> int:
    if not part.isdigit() or int(part) >= len(node):
        raise ConfigError(f"--set {override!r}: {part!r} is not an index of a list of {len(node)}")
    return int(part)
