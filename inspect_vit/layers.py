"""Building blocks of the hierarchy.

Shape letters: B batch, C channels, h, w token rows and columns, G windows, N tokens of a window, H heads,
D head_dim. Grids are (B, C, h, w) tensors in channels-last memory: tokens (B, h, w, C) are a view.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from inspect_vit.attention import attend, attention_weights
from inspect_vit.config import AttentionBackend, PatchLevelConfig
from inspect_vit.errors import ConfigError
from inspect_vit.positions import PositionCode, alibi_2d


class PatchEmbed(nn.Module):
    """Patches of the stacked board and reference to tokens; a learned code where no reference came."""

    def __init__(self, in_chans: int, embed_dim: int, patch_size: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_chans, embed_dim, patch_size, stride=patch_size)
        self.absent = nn.Parameter(torch.zeros(embed_dim))

    def forward(self, pixels: Tensor, has_reference: Tensor) -> Tensor:
        """pixels: (B, in_chans, H, W). has_reference: (B, 1, 1, 1) of 0 or 1. Returns (B, C, h, w)."""
        out: Tensor = self.proj(pixels) + self.absent.view(-1, 1, 1) * (1 - has_reference)
        return out


def cut_windows(tokens: Tensor, window: int) -> Tensor:
    """(B, h, w, C) to (G, N, C), N = window^2; window 0 keeps the grid whole, N = h * w."""
    batch, rows, columns, channels = tokens.shape
    if not window:
        return tokens.reshape(batch, rows * columns, channels)
    if rows % window or columns % window:
        raise ConfigError(f"a grid of {rows}x{columns} tokens cannot be cut into {window}x{window} windows")
    grid = tokens.reshape(batch, rows // window, window, columns // window, window, channels)
    return grid.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, channels)


def join_windows(windows: Tensor, window: int, rows: int, columns: int) -> Tensor:
    """(G, N, C) back to (B, h, w, C): the inverse of `cut_windows`."""
    channels = windows.shape[-1]
    if not window:
        return windows.reshape(-1, rows, columns, channels)
    grid = windows.reshape(-1, rows // window, columns // window, window, window, channels)
    return grid.permute(0, 1, 3, 2, 4, 5).reshape(-1, rows, columns, channels)


class LevelAttention(nn.Module):
    """Multi-head attention within windows, with four separate projections W_q, W_k, W_v, W_o."""

    def __init__(self, config: PatchLevelConfig, *, qk_norm: bool, backend: AttentionBackend) -> None:
        super().__init__()
        dim = config.embed_dim
        self.num_heads, self.head_dim = config.num_heads, config.head_dim
        self.attn_drop = config.attn_drop
        self.backend: AttentionBackend = backend
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(dim, dim) for _ in range(4))
        self.q_norm = nn.LayerNorm(self.head_dim) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(self.head_dim) if qk_norm else nn.Identity()

    def _heads(self, x: Tensor) -> Tensor:
        """(G, N, C) to (G, H, N, D)."""
        heads: Tensor = x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
        return heads

    def _project(self, x: Tensor, *layers: nn.Linear) -> list[Tensor]:
        """Separate linear layers of the same input as one product: memory traffic, not FLOPs, is the cost."""
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers])
        projected = functional.linear(x, weight, bias).chunk(len(layers), -1)
        return [self._heads(part) for part in projected]

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x: (G, N, C). bias: (1, H, N, N) or None. Returns (G, N, C)."""
        q, k, v = self._project(x, self.w_q, self.w_k, self.w_v)
        drop = self.attn_drop if self.training else 0.0
        out = attend(self.q_norm(q), self.k_norm(k), v, bias=bias, dropout=drop, backend=self.backend)
        projected: Tensor = self.w_o(out.transpose(1, 2).flatten(2))
        return projected

    def attended(
        self, x: Tensor, bias: Tensor | None, asked: Tensor | None = None, *, chunk: int = 1024
    ) -> Tensor:
        """What the asked queries attend to, by head: the sum over queries of their weight times their row.

        Only rows of weight above 0 are computed, `chunk` at a time: memory is linear in N, cost in the rows.

        Args:
            x: (G, N, C).
            asked: (G, N) weights >= 0 of the queries; None asks all with weight 1, and the answer is the
                attention that each token receives.

        Returns:
            (G, N, H), at least float32; where all weights of a window are 1, uniform attention is 1.
        """
        windows, tokens = x.shape[:2]
        dtype = torch.promote_types(x.dtype, torch.float32)
        total = torch.zeros(windows, self.num_heads, tokens, device=x.device, dtype=dtype)
        if asked is None:
            q, k = self._project(x, self.w_q, self.w_k)
            q, k = self.q_norm(q), self.k_norm(k)
            for start in range(0, tokens, chunk):
                rows = None if bias is None else bias[:, :, start : start + chunk]
                total += attention_weights(q[:, :, start : start + chunk], k, bias=rows).sum(2)
            return total.transpose(1, 2)
        for window in asked.any(1).nonzero()[:, 0].tolist():
            inside, weight = x[window : window + 1], asked[window].to(dtype)
            k = self.k_norm(self._heads(self.w_k(inside)))
            for queries in weight.nonzero()[:, 0].split(chunk):
                q = self.q_norm(self._heads(self.w_q(inside[:, queries])))
                rows = None if bias is None else bias[:, :, queries]
                weights = attention_weights(q, k, bias=rows)[0].to(dtype)  # (H, n, N)
                total[window] += torch.einsum("hnm,n->hm", weights, weight[queries])
        return total.transpose(1, 2)

    def received(self, x: Tensor, bias: Tensor | None, *, chunk: int = 1024) -> Tensor:
        """Attention each token receives, mean over queries and heads, times N: uniform attention is 1.

        Memory is linear in N. x: (G, N, C). Returns (G, N, 1).
        """
        return self.attended(x, bias, chunk=chunk).mean(-1, keepdim=True)


class Block(nn.Module):
    """Pre-norm transformer block (Dosovitskiy et al. 2021, section 3.1) in window layout."""

    def __init__(
        self, config: PatchLevelConfig, *, qk_norm: bool, drop_path: float, backend: AttentionBackend
    ) -> None:
        super().__init__()
        dim, hidden = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = LevelAttention(config, qk_norm=qk_norm, backend=backend)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.drop_path: nn.Module = nn.Identity()
        if drop_path:
            from timm.layers import DropPath  # inference never needs it, and importing timm takes seconds

            self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x: (G, N, C). Returns the same shape."""
        x = x + self.drop_path(self.attn(self.norm1(x), bias))
        out: Tensor = x + self.drop_path(self.mlp(self.norm2(x)))
        return out


class Level(nn.Module):
    """One token grid: position once, windows cut once, blocks in window layout, windows joined once."""

    def __init__(
        self, config: PatchLevelConfig, *, qk_norm: bool, drop_path: float, backend: AttentionBackend
    ) -> None:
        super().__init__()
        self.config = config
        self.position = PositionCode(config.position, config.embed_dim)
        self.blocks = nn.ModuleList(
            Block(config, qk_norm=qk_norm, drop_path=drop_path, backend=backend) for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.embed_dim)

    def forward(self, grid: Tensor) -> Tensor:
        """Encode a grid (B, C, h, w); same shape."""
        rows, columns = grid.shape[2:]
        x, bias = self._cut(grid)
        for block in self.blocks:
            x = block(x, bias)
        return join_windows(self.norm(x), self.config.window, rows, columns).permute(0, 3, 1, 2)

    def attention(self, grid: Tensor, asked: Tensor | None = None, *, block: int = -1) -> Tensor:
        """Exact attention of one block by head, beside the fast path, for the asked queries only.

        A row says which tokens of its window this block mixed into the asked token, and how much of each.
        It does not say what was read there: the position convolution had already spread every token over
        its 3x3 neighbours, and blocks before this one over the whole window. The last block is what the
        level hands on.

        Args:
            grid: (B, C, h, w), as given to `forward`. asked: (B, h, w) weights >= 0 of the query tokens,
            scaled here to a mean row; None asks all tokens. block: index of the block, from the end when
            negative.

        Returns:
            (B, H, h, w) in multiples of uniform attention over one window, 0 outside the asked windows.

        Raises:
            ConfigError: no such block.
        """
        if not -len(self.blocks) <= block < len(self.blocks):
            raise ConfigError(f"block {block}: this level has {len(self.blocks)} blocks")
        rows, columns = grid.shape[2:]
        window, index = self.config.window, range(len(self.blocks))[block]
        x, bias = self._cut(grid)
        windows, tokens = x.shape[:2]
        used: Tensor | None = None
        if asked is not None:
            asked = _mean_row(asked, tokens)
            asked = cut_windows(asked[..., None], window)[..., 0]
            used = asked.any(1)
            x, asked = x[used], asked[used]
        for earlier in self.blocks[:index]:
            x = earlier(x, bias)
        chosen = self.blocks[index]
        weights = chosen.attn.attended(chosen.norm1(x), bias, asked)  # type: ignore[union-attr, operator]
        if used is not None:
            scattered = weights.new_zeros(windows, tokens, weights.shape[-1])
            scattered[used] = weights
            weights = scattered
        return join_windows(weights, window, rows, columns).permute(0, 3, 1, 2)

    def rollout(self, grid: Tensor, asked: Tensor) -> Tensor:
        """Attention roll-out (Abnar and Zuidema 2020) from the asked queries through all blocks of the level.

        Their recursion, half attention (mean over heads) and half residual, applied to one row from the last
        block to the first: the same row as of their product of matrices, without the matrices.
        grid: (B, C, h, w). asked: (B, h, w) weights >= 0. Returns (B, h, w), sums to 1.
        """
        rows, columns = grid.shape[2:]
        window = self.config.window
        x, bias = self._cut(grid)
        rolled = cut_windows(_mean_row(asked, 1)[..., None], window)[..., 0]
        used = rolled.any(1)
        inputs, x, row = [], x[used], rolled[used]
        for block in self.blocks:
            inputs.append(x)
            x = block(x, bias)
        for block, before in zip(reversed(self.blocks), reversed(inputs), strict=True):
            attended = block.attn.attended(block.norm1(before), bias, row)  # type: ignore[union-attr, operator]
            row = 0.5 * row + 0.5 * attended.mean(-1)
        rolled[used] = row.to(rolled.dtype)
        return join_windows(rolled[..., None], window, rows, columns)[..., 0]

    def _cut(self, grid: Tensor) -> tuple[Tensor, Tensor | None]:
        """Position code and windows: (B, C, h, w) to (G, N, C), and the bias of ALiBi."""
        x = cut_windows(self.position(grid).permute(0, 2, 3, 1), self.config.window)
        if self.config.position != "alibi":
            return x, None
        return x, self._bias(grid.shape[2], grid.shape[3], x)

    def _bias(self, rows: int, columns: int, x: Tensor) -> Tensor:
        side = (self.config.window, self.config.window) if self.config.window else (rows, columns)
        return alibi_2d(self.config.num_heads, *side, device=x.device).to(x.dtype)


def _mean_row(asked: Tensor, total: float) -> Tensor:
    """Weights of queries (B, h, w) scaled to sum to `total` in each picture."""
    sums = asked.sum((1, 2), keepdim=True)
    if not bool((sums > 0).all()) or bool((asked < 0).any()):
        raise ConfigError(
            "attention was asked for no token: the weights of the queries must be >= 0, some above"
        )
    return asked * (total / sums)


class GatedOutputFusion(nn.Module):
    """out = g * W_o_high(high) + (1 - g) * up(W_o_low(low)), g = sigmoid(W_g [high, low]) by token, channel.

    Everything linear in `low` is computed on its own grid and then enlarged, which is the same and cheaper.
    """

    def __init__(self, high_dim: int, low_dim: int) -> None:
        super().__init__()
        self.w_o_high = nn.Conv2d(high_dim, high_dim, 1)
        self.w_o_low = nn.Conv2d(low_dim, high_dim, 1)
        self.w_g_high = nn.Conv2d(high_dim, high_dim, 1)
        self.w_g_low = nn.Conv2d(low_dim, high_dim, 1, bias=False)

    def forward(self, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
        """high: (B, C, h, w), low: (B, C', h / s, w / s). Returns fusion and gate g, both (B, C, h, w)."""
        values, logits = (enlarge(f(low), *high.shape[2:]) for f in (self.w_o_low, self.w_g_low))
        gate = (self.w_g_high(high) + logits).sigmoid()
        return torch.lerp(values, self.w_o_high(high), gate), gate


def enlarge(grid: Tensor, rows: int, columns: int) -> Tensor:
    """Bilinear up-sampling of (B, C, h, w) to (B, C, rows, columns), cell centres aligned."""
    return functional.interpolate(grid, (rows, columns), mode="bilinear", align_corners=False)


class ConvBlock(nn.Module):
    """Residual 3x3 convolution on a grid: mixes neighbours across window borders after the fusion."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, C, h, w). Returns the same shape."""
        out: Tensor = x + self.act(self.conv(x))
        return out
