"""The hierarchical-patch Vision Transformer.

    board, reference --+--> 4 px patches --> fine level --+----------------------> fuse4 --> conv --> head
                       |                                  | merge                    ^
                       +--> 16 px patches ------ + -------+--> middle level --> fuse16
                       |                                                 | merge    ^
                       +--> 32 px patches ------ + ----------------------+--> coarse level

Shape letters: B batch, c picture channels, C channels, H, W pixels, h, w cells of 4 px, K defect classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

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


class Encoded(NamedTuple):
    """What goes into the levels and what comes out, fine to coarse; (B, C_l, h_l, w_l) each."""

    grids: tuple[Tensor, Tensor, Tensor]
    tokens: tuple[Tensor, Tensor, Tensor]


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
            board: (B, c, H, W) uint8; H and W multiples of config.size_multiple.
            reference: the same, aligned with the board; any values where there is none.
            has_reference: (B,) float of 0 or 1.
            want_attention: also return where attention goes, at some extra time.
        """
        encoded = self.encode(self.embed(board, reference, has_reference))
        output = self.fuse(encoded.tokens)
        if not want_attention:
            return output
        attn4, attn16, attn32 = (
            level.attention(grid).mean(1, keepdim=True)  # type: ignore[operator]
            for level, grid in zip(self.levels, encoded.grids, strict=True)
        )
        return output._replace(attention=(attn4, attn16, attn32))

    def embed(self, board: Tensor, reference: Tensor, has_reference: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pictures as `forward` takes them to patch embeddings of the three levels, (B, C_l, h_l, w_l)."""
        step = self.config.size_multiple
        if board.shape[-2] % step or board.shape[-1] % step:
            raise ConfigError(
                f"picture of {tuple(board.shape[-2:])} px; both sides must be multiples of {step}"
            )
        flag = has_reference.view(-1, 1, 1, 1)
        stacked, with_envelopes = stack_pictures(board, reference, flag, self.config)
        embed4, embed16, embed32 = self.embeds
        return embed4(with_envelopes, flag), embed16(stacked, flag), embed32(stacked, flag)

    def encode(self, embedded: tuple[Tensor, Tensor, Tensor]) -> Encoded:
        """Patch embeddings to tokens; each level hands its tokens up to the next coarser one."""
        embedded4, embedded16, embedded32 = embedded
        level4, level16, level32 = self.levels
        fine = level4(embedded4)
        grid16 = embedded16 + self.merge_fine(fine)
        middle = level16(grid16)
        grid32 = embedded32 + self.merge_middle(middle)
        return Encoded((embedded4, grid16, grid32), (fine, middle, level32(grid32)))

    def fuse(self, tokens: tuple[Tensor, Tensor, Tensor]) -> ModelOutput:
        """Tokens of the levels, fine to coarse, through the gates to the head."""
        fine, middle, coarse = tokens
        fused16, gate16 = self.fuse16(middle, coarse)
        fused4, gate4 = self.fuse4(fine, fused16)
        head: HeadOutput = self.head(self.refine(fused4))
        return ModelOutput(head, gate_shares(gate4, gate16), None)

    def _initialise(self) -> None:
        init = nn.init.orthogonal_ if self.config.init == "orthogonal" else nn.init.xavier_uniform_
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                init(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.head.initialise()


def stack_pictures(
    board: Tensor, reference: Tensor, flag: Tensor, config: ModelConfig
) -> tuple[Tensor, Tensor]:
    """Pictures as floats (x / 255 - mean) / std, no reference as zeros: the pair, and with envelopes."""
    c = config.in_chans
    scale, offset = 1 / (255.0 * config.image_std), -config.image_mean / config.image_std
    # Plane by plane: a factor that differs between interleaved channels keeps a CPU from vectorising.
    planes = [plane.to(flag.dtype).mul_(scale).add_(offset) for plane in (board, reference)]
    planes += [
        plane.to(flag.dtype).mul_(scale) for plane in envelopes(board, reference, config.envelope_radii)
    ]
    shown = [planes[0], *(plane.mul_(flag) for plane in planes[1:])]
    pixels = torch.cat(shown, 1).contiguous(memory_format=torch.channels_last)
    return pixels[:, : 2 * c].contiguous(memory_format=torch.channels_last), pixels


def gate_shares(gate4: Tensor, gate16: Tensor) -> Tensor:
    """Channel means of the gates as shares (B, 3, h, w): g4, (1 - g4) g16, (1 - g4)(1 - g16)."""
    g4 = gate4.mean(1, keepdim=True)
    g16 = enlarge(gate16.mean(1, keepdim=True), gate4.shape[2], gate4.shape[3])
    return torch.cat([g4, (1 - g4) * g16, (1 - g4) * (1 - g16)], 1)


def envelopes(board: Tensor, reference: Tensor, radii: tuple[int, ...]) -> list[Tensor]:
    """What lies outside the reference's envelope: max(0, board - dilated), max(0, eroded - board), by radius.

    Both are zero wherever a shift of the reference by up to that many px can explain the board. All are
    uint8, a quarter of the memory traffic of floats.
    """
    channels = []
    dilations = _extremes(reference, radii, torch.maximum), _extremes(reference, radii, torch.minimum)
    for dilated, eroded in zip(*dilations, strict=True):
        channels += [torch.maximum(board, dilated) - dilated, torch.maximum(eroded, board) - board]
    return channels


def _extremes(x: Tensor, radii: tuple[int, ...], extreme: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    """Maxima or minima over squares of side 2 * radius + 1, each built from the one before.

    Shifted pictures, since pooling one channel is several times slower on CPUs.
    """
    out, radius = [], 0
    for target in radii:
        reach, step = target - radius, 2 * radius + 1
        shifts = sorted(
            {max(-reach, min(reach, i * step)) for i in range(-reach // step - 1, reach // step + 2)}
        )
        for dim in (2, 3):
            size = x.shape[dim]
            first, last = x.narrow(dim, 0, 1), x.narrow(dim, size - 1, 1)
            padded = torch.cat([first] * reach + [x] + [last] * reach, dim)
            x = padded.narrow(dim, reach + shifts[0], size)
            for shift in shifts[1:]:
                x = extreme(x, padded.narrow(dim, reach + shift, size))
        out.append(x)
        radius = target
    return out


def _merge(fine_dim: int, coarse_dim: int, stride: int) -> nn.Conv2d:
    """Tokens of a finer grid to the next coarser one."""
    return nn.Conv2d(fine_dim, coarse_dim, stride, stride=stride)
