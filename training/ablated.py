"""Rivals of the hierarchy's parts, put in their place for benchmarks/ablations.py; the product has none.

The network is built whole and one part is replaced, so that all other weights of a seed start alike.
A network so changed shows no attention.

Shape letters: B batch, C channels, h, w token rows and columns, G windows, N tokens of a window, H heads.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from timm.layers import RelPosBias
from torch import Tensor, nn
from torch.nn import functional

from inspect_vit.errors import ConfigError
from inspect_vit.layers import GatedOutputFusion, Level, cut_windows, enlarge, join_windows
from inspect_vit.model import HierarchicalViT
from training.config import Ablation

FOREIGN = -1e4
"""Added to the score of a token from the far side of the picture: as good as minus infinity, in bf16 too."""


def ablate(model: HierarchicalViT, ablation: Ablation) -> None:
    """Replace one part of a network that has not been trained yet.

    Raises:
        ConfigError: shifted windows and a windowed level of fewer than two blocks.
    """
    if ablation in ("sum", "concatenation"):
        rival = SumFusion if ablation == "sum" else ConcatFusion
        model.add_module("fuse16", rival(model.fuse16))
        model.add_module("fuse4", rival(model.fuse4))
    elif ablation == "one-w-o":
        _share_output_projection(model)
    elif ablation == "no-fine-level":
        _leave_out_fine_level(model)
    else:
        _shift_windows(model)


class SumFusion(nn.Module):
    """out = W_o_high(high) + up(W_o_low(low)): the gated fusion without its gate."""

    def __init__(self, gated: GatedOutputFusion) -> None:
        super().__init__()
        self.w_o_high, self.w_o_low = gated.w_o_high, gated.w_o_low

    def forward(self, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
        """As GatedOutputFusion; both levels have a fixed share of one half."""
        return self.w_o_high(high) + enlarge(self.w_o_low(low), *high.shape[2:]), _share(high, 0.5)


class ConcatFusion(nn.Module):
    """out = W(gelu(V[high, up(low)])): the levels side by side, and a perceptron over both.

    A linear layer alone, or with the GELU before it, would be a sum of what each level says by itself.
    """

    def __init__(self, gated: GatedOutputFusion) -> None:
        super().__init__()
        high_dim, low_dim = gated.w_o_high.out_channels, gated.w_o_low.in_channels
        # V in two parts: what it makes of the low level is the same before enlarging, and cheaper there.
        self.v_high = nn.Conv2d(high_dim, 2 * high_dim, 1)
        self.v_low = nn.Conv2d(low_dim, 2 * high_dim, 1, bias=False)
        self.act = nn.GELU()
        self.mix = nn.Conv2d(2 * high_dim, high_dim, 1)
        for layer in (self.v_high, self.v_low, self.mix):
            _start(layer)

    def forward(self, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
        """As GatedOutputFusion; both levels have a fixed share of one half."""
        hidden = self.v_high(high) + enlarge(self.v_low(low), *high.shape[2:])
        return self.mix(self.act(hidden)), _share(high, 0.5)


class LeadingProjection(nn.Module):
    """The part of a shared linear layer that a level of fewer channels uses: its first rows and columns.

    As layers of several widths share one matrix in Yu et al. 2019, Slimmable Neural Networks.
    """

    def __init__(self, shared: nn.Linear, rows: int) -> None:
        super().__init__()
        # In a tuple, hence no child: a parameter with two names could not be saved. The model owns it.
        self._shared = (shared,)
        self.rows = rows

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, C, h, w). Returns (B, rows, h, w)."""
        (shared,) = self._shared
        weight = shared.weight[: self.rows, : x.shape[1], None, None]
        return functional.conv2d(x, weight, shared.bias[: self.rows])


class OnlyLow(nn.Module):
    """The coarser grid alone, enlarged by a transposed convolution as the plain ViT's is."""

    def __init__(self, high_dim: int, low_dim: int, ratio: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(low_dim, high_dim, ratio, stride=ratio)
        _start(self.up)

    def forward(self, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
        """As GatedOutputFusion; high gives its size alone and has a share of 0."""
        return self.up(low), _share(high, 0.0)


class NoTokens(nn.Module):
    """Stands for the patch embedding of a level that is left out: zeros, which take no memory."""

    def __init__(self, embed_dim: int, patch_size: int) -> None:
        super().__init__()
        self.embed_dim, self.patch_size = embed_dim, patch_size

    def forward(self, pixels: Tensor, has_reference: Tensor) -> Tensor:
        """As PatchEmbed."""
        batch, _, height, width = pixels.shape
        rows, columns = height // self.patch_size, width // self.patch_size
        return pixels.new_zeros(()).expand(batch, self.embed_dim, rows, columns)


class NothingToMerge(nn.Module):
    """Stands for the merge of a level that is left out: adds 0 to the next coarser one."""

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (B, C, h, w). Returns 0, without dimensions."""
        return tokens.new_zeros(())


class ShiftedWindows(nn.Module):
    """A level in which every other block's windows lie half a window further, and no convolution.

    Liu et al. 2021, Swin Transformer, section 3.2: the picture is rolled, tokens from its far side do not
    attend to each other, and each block has a learned bias by the offset of two tokens, which is their
    position code.
    """

    def __init__(self, level: Level) -> None:
        super().__init__()
        self.config, self.blocks, self.norm = level.config, level.blocks, level.norm
        side = (self.config.window, self.config.window)
        self.offsets = nn.ModuleList(RelPosBias(side, self.config.num_heads) for _ in level.blocks)

    def forward(self, grid: Tensor) -> Tensor:
        """Encode a grid (B, C, h, w); same shape."""
        rows, columns = grid.shape[2:]
        window = self.config.window
        tokens = grid.permute(0, 2, 3, 1)
        for index, (block, offsets) in enumerate(zip(self.blocks, self.offsets, strict=True)):
            bias = offsets.get_bias()  # type: ignore[operator]  # (1, H, N, N)
            shift = index % 2 * (window // 2)
            if shift:
                foreign = foreign_pairs(rows, columns, window, shift, grid.device)
                bias = bias + foreign.repeat(len(grid), 1, 1, 1)
                tokens = tokens.roll((-shift, -shift), (1, 2))
            tokens = join_windows(block(cut_windows(tokens, window), bias), window, rows, columns)
            if shift:
                tokens = tokens.roll((shift, shift), (1, 2))
        out: Tensor = self.norm(tokens).permute(0, 3, 1, 2)
        return out


@lru_cache(maxsize=16)
def foreign_pairs(rows: int, columns: int, window: int, shift: int, device: torch.device) -> Tensor:
    """(G, 1, N, N) of one picture: FOREIGN where only rolling the grid by `shift` put two tokens together."""
    with torch.inference_mode(False):  # it is kept, and a later training step may not use inference tensors
        wrapped = [torch.arange(side, device=device) >= side - shift for side in (rows, columns)]
        region = wrapped[0][:, None] * 2 + wrapped[1]  # (h, w), 0 to 3
        regions = cut_windows(region[None, ..., None], window)  # (G, N, 1)
        return torch.where(regions == regions.transpose(1, 2), 0.0, FOREIGN)[:, None]


def _share_output_projection(model: HierarchicalViT) -> None:
    """One W_o for all that enters a fusion, as wide as the widest: each level uses its first channels."""
    _, middle, coarse = model.config.levels
    shared = nn.Linear(coarse.embed_dim, middle.embed_dim)
    _start(shared)
    model.add_module("w_o", shared)
    for fusion in (model.fuse16, model.fuse4):
        leading = LeadingProjection(shared, fusion.w_o_high.out_channels)
        fusion.add_module("w_o_high", leading)
        fusion.add_module("w_o_low", leading)


def _leave_out_fine_level(model: HierarchicalViT) -> None:
    fine, middle, _ = model.config.levels
    model.embeds[0] = NoTokens(fine.embed_dim, fine.patch_size)
    model.levels[0] = nn.Identity()
    model.add_module("merge_fine", NothingToMerge())
    model.add_module("fuse4", OnlyLow(fine.embed_dim, middle.embed_dim, middle.patch_size // fine.patch_size))


def _shift_windows(model: HierarchicalViT) -> None:
    for index, level in enumerate(model.levels):
        assert isinstance(level, Level)
        if not level.config.window:
            continue
        if level.config.depth < 2:
            raise ConfigError(
                f"levels.{index}.depth is {level.config.depth}; shifted windows need 2 blocks or more"
            )
        model.levels[index] = ShiftedWindows(level)


def _share(high: Tensor, value: float) -> Tensor:
    """A gate of one value, in the shape of `high`."""
    return high.new_full((), value).expand_as(high)


def _start(layer: nn.Conv2d | nn.ConvTranspose2d | nn.Linear) -> None:
    """Weights as the model's own begin by default."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
