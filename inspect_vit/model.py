"""The hierarchical-patch Vision Transformer.

    board, reference --+--> 4 px patches --> fine level --+----------------------> fuse4 --> conv --> head
                       |                                  | merge                    ^
                       +--> 16 px patches ------ + -------+--> middle level --> fuse16
                       |                                                 | merge    ^
                       +--> 32 px patches ------ + ----------------------+--> coarse level

Shape letters: B batch, c picture channels, C channels, H, W pixels, h, w cells of 4 px, K defect classes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from inspect_vit.config import AttentionBackend, ModelConfig
from inspect_vit.errors import ConfigError
from inspect_vit.heads import DefectHead, HeadOutput
from inspect_vit.layers import ConvBlock, GatedOutputFusion, Level, PatchEmbed, enlarge


class ModelOutput(NamedTuple):
    """Everything is on the grid of the finest level, (h, w) = (H / 4, W / 4)."""

    head: HeadOutput
    gate_shares: Tensor
    """(B, 3, h, w): share of the fine, middle and coarse level in the fused output; sums to 1 over dim 1."""
    attention: tuple[Tensor, Tensor, Tensor] | None
    """Attention received at each level, (B, 1, h_l, w_l), uniform = 1; None unless asked for."""


class HierarchicalViT(nn.Module):
    """Three token grids over one picture, with or without an aligned golden reference, fused by gates."""

    def __init__(self, config: ModelConfig, *, attention_backend: AttentionBackend = "auto") -> None:
        super().__init__()
        self.config = config
        fine, middle, coarse = config.levels
        stacked = 2 * config.in_chans
        envelopes = 2 * config.in_chans * len(config.envelope_radii)
        channels = (stacked + envelopes, stacked, stacked)
        self.embeds = nn.ModuleList(
            PatchEmbed(in_chans, level.embed_dim, level.patch_size)
            for in_chans, level in zip(channels, config.levels, strict=True)
        )
        self.levels = nn.ModuleList(
            Level(level, qk_norm=config.qk_norm, drop_path=config.drop_path, backend=attention_backend)
            for level in config.levels
        )
        self.merge_fine = _merge(fine.embed_dim, middle.embed_dim, middle.patch_size // fine.patch_size)
        self.merge_middle = _merge(middle.embed_dim, coarse.embed_dim, coarse.patch_size // middle.patch_size)
        self.fuse16 = GatedOutputFusion(middle.embed_dim, coarse.embed_dim)
        self.fuse4 = GatedOutputFusion(fine.embed_dim, middle.embed_dim)
        self.refine = ConvBlock(fine.embed_dim)
        self.head = DefectHead(fine.embed_dim, config.head_width, len(config.class_names), fine.patch_size)
        self._initialise()

    def forward(
        self, board: Tensor, reference: Tensor, has_reference: Tensor, *, want_attention: bool = False
    ) -> ModelOutput:
        """Inspect a batch.

        Args:
            board: (B, c, H, W), normalised as `normalise` does; H and W multiples of config.size_multiple.
            reference: the same shape, aligned with the board; any values where there is none.
            has_reference: (B,) of 0 or 1, dtype of board.
            want_attention: also return where attention goes, at some extra time.
        """
        step = self.config.size_multiple
        if board.shape[-2] % step or board.shape[-1] % step:
            raise ConfigError(
                f"picture of {tuple(board.shape[-2:])} px; both sides must be multiples of {step}"
            )
        flag = has_reference.view(-1, 1, 1, 1)
        reference = reference * flag
        stacked = torch.cat([board, reference], 1).contiguous(memory_format=torch.channels_last)
        with_envelopes = stacked
        if self.config.envelope_radii:
            extra = torch.cat(envelopes(board, reference, self.config.envelope_radii), 1) * flag
            with_envelopes = torch.cat([stacked, extra], 1).contiguous(memory_format=torch.channels_last)
        embed4, embed16, embed32 = self.embeds
        level4, level16, level32 = self.levels

        fine, attn4 = level4(embed4(with_envelopes, flag), want_attention=want_attention)
        middle, attn16 = level16(
            embed16(stacked, flag) + self.merge_fine(fine), want_attention=want_attention
        )
        coarse, attn32 = level32(
            embed32(stacked, flag) + self.merge_middle(middle), want_attention=want_attention
        )

        fused16, gate16 = self.fuse16(middle, coarse)
        fused4, gate4 = self.fuse4(fine, fused16)
        head: HeadOutput = self.head(self.refine(fused4))
        attention = (attn4, attn16, attn32) if want_attention else None
        return ModelOutput(head, gate_shares(gate4, gate16), attention)

    def _initialise(self) -> None:
        init = nn.init.orthogonal_ if self.config.init == "orthogonal" else nn.init.xavier_uniform_
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                init(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.head.initialise()


def normalise(pixels: Tensor, config: ModelConfig) -> Tensor:
    """uint8 (B, c, H, W) to float: (pixels / 255 - mean) / std."""
    return (pixels.float() / 255.0 - config.image_mean) / config.image_std


def gate_shares(gate4: Tensor, gate16: Tensor) -> Tensor:
    """Channel means of the gates as shares (B, 3, h, w): g4, (1 - g4) g16, (1 - g4)(1 - g16)."""
    g4 = gate4.mean(1, keepdim=True)
    g16 = enlarge(gate16.mean(1, keepdim=True), gate4.shape[2], gate4.shape[3])
    return torch.cat([g4, (1 - g4) * g16, (1 - g4) * (1 - g16)], 1)


def envelopes(board: Tensor, reference: Tensor, radii: tuple[int, ...]) -> list[Tensor]:
    """What lies outside the reference's envelope: max(0, board - dilated), max(0, eroded - board), by radius.

    Both are zero wherever a shift of the reference by up to that many px can explain the board.
    """
    channels = []
    for dilated, eroded in zip(_dilations(reference, radii), _dilations(-reference, radii), strict=True):
        channels += [(board - dilated).clamp(min=0), (-eroded - board).clamp(min=0)]
    return channels


def _dilations(x: Tensor, radii: tuple[int, ...]) -> list[Tensor]:
    """Maxima over squares of side 2 * radius + 1, each built from the one before.

    Shifted maxima, since pooling one channel is several times slower on CPUs.
    """
    out, radius = [], 0
    for target in radii:
        reach, step = target - radius, 2 * radius + 1
        shifts = sorted(
            {max(-reach, min(reach, i * step)) for i in range(-reach // step - 1, reach // step + 2)}
        )
        for dim in (2, 3):
            pad = (0, 0, reach, reach) if dim == 2 else (reach, reach, 0, 0)
            padded, size = functional.pad(x, pad, mode="replicate"), x.shape[dim]
            x = padded.narrow(dim, reach + shifts[0], size)
            for shift in shifts[1:]:
                x = torch.maximum(x, padded.narrow(dim, reach + shift, size))
        out.append(x)
        radius = target
    return out


def _merge(fine_dim: int, coarse_dim: int, stride: int) -> nn.Conv2d:
    """Tokens of a finer grid to the next coarser one."""
    return nn.Conv2d(fine_dim, coarse_dim, stride, stride=stride)
