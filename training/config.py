"""Everything a training run depends on, as one YAML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from inspect_vit.config import Frozen, ModelConfig
from inspect_vit.errors import ConfigError

DATA_VARIABLE = "INSPECT_VIT_DATA"
Ablation = Literal["sum", "concatenation", "no-fine-level", "one-w-o", "shifted-windows"]
"""Parts of the hierarchy that training/ablated.py can replace."""


class DataConfig(Frozen):
    """Where samples come from and how crops are taken."""

    format: Literal["deeppcb", "coco", "yolo", "voc", "labelme", "cvat", "mvtec", "good", "auto"] = Field(
        "deeppcb", description="label format; good: pictures of good boards, into which defects are drawn"
    )
    root: Path | None = Field(
        None, description="folder of the set; default for DeepPCB $INSPECT_VIT_DATA/deeppcb"
    )
    also: tuple[Path, ...] = Field(
        (),
        description="more labelled sets, of any format, that are learnt from whole: nothing of them is "
        "validated on or quarantined",
    )
    references: str | None = Field(
        None, description="how boards find their reference, as `inspect-vit data check --references`"
    )
    groups: str | None = Field(None, description="which pictures are one board, as `--groups` there")
    drawn_pairs: int = Field(1000, gt=0, description="pairs drawn from good boards, for format good")
    drawn_size: int = Field(640, ge=64, description="side of those pairs, px")
    quarantine: Path | None = Field(
        None, description="quarantine.json of `inspect-vit data check`; the pictures in it are left out"
    )
    val_groups: tuple[str, ...] = Field((), description="board groups held back for thresholds")
    val_share: float | None = Field(
        None,
        gt=0.0,
        lt=1.0,
        description="instead: share of the pictures, whole groups; neither: as the set says",
    )
    limit: int | None = Field(None, gt=0, description="use only the first samples of each side, for trials")
    crop_size: int = Field(320, gt=0, description="side of a training crop, px")
    crops_per_image: float = Field(4.0, gt=0.0, description="crops per image and epoch")
    defect_share: float = Field(
        0.7, ge=0.0, le=1.0, description="share of crops and tiles placed on a defect"
    )
    good_share: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="share of crops and tiles whose board is the golden reference",
    )
    retake_share: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="share of those good boards that are taken again: moved, edges redrawn, JPEG",
    )
    mosaic_share: float = Field(0.6, ge=0.0, le=1.0, description="share of crops tiled from 2x2 boards")
    mosaic_until: float = Field(0.75, ge=0.0, le=1.0, description="part of the run after which mosaics stop")
    zoom_share: float = Field(0.0, ge=0.0, le=1.0, description="share of crops and tiles that are resized")
    zoom: tuple[float, float] = Field((0.8, 1.6), description="smallest and largest enlargement of those")
    cache_mb: int = Field(2000, ge=0, description="decoded pictures kept in memory, per loader process")
    workers: int = Field(1, ge=0, description="loader processes per training process")


class AugmentConfig(Frozen):
    """Changes that a good board may show; both pictures turn and flip together."""

    reference_drop: float = Field(0.4, ge=0.0, le=1.0, description="share of crops without reference")
    misalign_share: float = Field(0.5, ge=0.0, le=1.0)
    misalign_px: float = Field(3.0, ge=0.0, description="largest shift of the reference, px")
    misalign_degrees: float = Field(0.4, ge=0.0)
    edge_share: float = Field(
        0.0, ge=0.0, le=1.0, description="share of references whose edges wander by about half a pixel"
    )
    etch_share: float = Field(
        0.0, ge=0.0, le=1.0, description="share of references with all copper a pixel wider or narrower"
    )
    photometric_share: float = Field(
        0.3, ge=0.0, le=1.0, description="share of pictures changed in intensity"
    )


class OptimConfig(Frozen):
    lr: float = Field(2e-3, gt=0.0)
    min_lr: float = Field(1e-5, ge=0.0)
    weight_decay: float = Field(0.05, ge=0.0)
    warmup_steps: int = Field(200, ge=0)
    clip_grad: float = Field(5.0, gt=0.0, description="largest gradient norm")
    ema_decay: float = Field(0.999, ge=0.0, lt=1.0)


class LossConfig(Frozen):
    """Weights of the loss terms."""

    centre: float = Field(1.0, ge=0.0)
    box: float = Field(1.0, ge=0.0)
    mask: float = Field(0.5, ge=0.0)


class PlainVitConfig(Frozen):
    """Shape of the baseline, training/plain_vit.py."""

    embed_dim: int = Field(192, gt=0, multiple_of=64)
    depth: int = Field(4, gt=0)


class TrainConfig(Frozen):
    name: str = Field(min_length=1, description="name of the checkpoint")
    model: ModelConfig
    init_from: Path | None = Field(
        None,
        description="checkpoint whose weights training starts from: the same network, classes by name; "
        "default: from chance",
    )
    plain_vit: PlainVitConfig | None = Field(
        None, description="train the baseline in place of the hierarchy, for benchmarks/hierarchy.py"
    )
    ablation: Ablation | None = Field(
        None, description="train the hierarchy with one part replaced, for benchmarks/ablations.py"
    )
    data: DataConfig
    augment: AugmentConfig = AugmentConfig()
    optim: OptimConfig = OptimConfig()
    loss: LossConfig = LossConfig()
    needs_reference: bool = Field(
        False, description="the checkpoint answers ERROR to boards without a golden reference"
    )
    epochs: int = Field(gt=0)
    batch_size: int = Field(8, gt=0, description="crops per step, over all processes")
    devices: int = Field(2, gt=0, description="training processes: one per GPU, or per CPU core")
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = Field(
        "auto", description="auto: bf16-mixed where the processor computes it natively, else 32-true"
    )
    checkpoint_activations: bool = Field(False, description="recompute activations: less memory, more time")
    save_every_steps: int = Field(200, gt=0)
    seed: int = 0

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.plain_vit is not None and self.ablation is not None:
            raise ValueError("plain_vit and ablation exclude each other")
        if self.data.val_groups and self.data.val_share is not None:
            raise ValueError("data.val_groups and data.val_share exclude each other")
        if (
            self.data.format in ("deeppcb", "good")
            and not self.data.val_groups
            and self.data.val_share is None
        ):
            raise ValueError(
                f"format {self.data.format} states no validation part; set data.val_groups or data.val_share"
            )
        if not 0 < self.data.zoom[0] <= self.data.zoom[1]:
            raise ValueError(f"data.zoom {list(self.data.zoom)} must be two rising numbers above 0")
        if self.batch_size % self.devices:
            raise ValueError(f"batch_size {self.batch_size} must be a multiple of devices {self.devices}")
        if self.data.crop_size % self.model.size_multiple:
            raise ValueError(
                f"data.crop_size {self.data.crop_size} must be a multiple of model.size_multiple "
                f"{self.model.size_multiple}"
            )
        return self


def data_root(config: DataConfig) -> Path:
    """The folder of the data set.

    Raises:
        ConfigError: it is not named, or does not exist.
    """
    if config.root is None and config.format != "deeppcb":
        raise ConfigError(f"data.root is not set; name the folder of the {config.format} set")
    root = config.root or Path(os.environ.get(DATA_VARIABLE, "../shared/data")) / config.format
    if not root.exists():
        if config.root is None and DATA_VARIABLE not in os.environ:
            raise ConfigError(f"no data set is named; give --data FOLDER, data.root or {DATA_VARIABLE}")
        raise ConfigError(f"no data set at {root}; set --data, data.root or {DATA_VARIABLE}")
    return root
