"""Position codes of one token grid. Shape letters: B batch, C channels, h, w grid rows and columns."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from inspect_vit.config import PositionKind

LEARNED_GRID = 20
"""Side of the learned table, tokens; other grids interpolate it."""


class PositionCode(nn.Module):
    """Adds position to tokens: depthwise convolution, 2-D sine-cosine, learned table or log-scan.

    `conv` is the conditional code of CPVT (Chu et al. 2021, section 3.3): a 3x3 depthwise convolution, which
    also carries information over window borders. `sincos` is Vaswani et al. 2017, section 3.5, half of the
    channels per axis. `log-scan` adds log(row + 1) times a learned vector: a line-scan camera's time.
    """

    def __init__(self, kind: PositionKind, embed_dim: int) -> None:
        super().__init__()
        self.kind = kind
        self.embed_dim = embed_dim
        if kind == "conv":
            self.conv = nn.Conv2d(embed_dim, embed_dim, 3, padding=1, groups=embed_dim)
        elif kind == "learned":
            self.table = nn.Parameter(torch.randn(1, embed_dim, LEARNED_GRID, LEARNED_GRID) * 0.02)
        elif kind == "log-scan":
            self.scan = nn.Parameter(torch.randn(1, embed_dim, 1, 1) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, C, h, w). Returns the same shape."""
        if self.kind == "conv":
            out: Tensor = x + self.conv(x)
            return out
        if self.kind == "sincos":
            return x + sincos_2d(self.embed_dim, x.shape[2], x.shape[3], device=x.device).to(x.dtype)
        if self.kind == "learned":
            return x + functional.interpolate(self.table, x.shape[2:], mode="bicubic", align_corners=False)
        if self.kind == "log-scan":
            rows = torch.arange(x.shape[2], device=x.device, dtype=torch.float32)
            return x + torch.log1p(rows).to(x.dtype).view(1, 1, -1, 1) * self.scan
        return x


def sincos_2d(embed_dim: int, rows: int, columns: int, *, device: torch.device | None = None) -> Tensor:
    """(1, C, h, w): the first half of the channels codes the row, the second half the column."""
    half = embed_dim // 2
    quarter = (half + 1) // 2
    rates = torch.exp(torch.arange(quarter, device=device) * (-math.log(10_000.0) / max(quarter, 1)))
    codes = []
    for length, width in ((rows, half), (columns, embed_dim - half)):
        angles = torch.arange(length, device=device)[None, :] * rates[:, None]
        code = torch.cat([angles.sin(), angles.cos()])
        codes.append(functional.pad(code, (0, 0, 0, max(width - code.shape[0], 0)))[:width])
    by_row = codes[0][:, :, None].expand(-1, -1, columns)
    by_column = codes[1][:, None, :].expand(-1, rows, -1)
    return torch.cat([by_row, by_column])[None]


def alibi_2d(num_heads: int, rows: int, columns: int, *, device: torch.device | None = None) -> Tensor:
    """(1, H, N, N) bias: minus slope times Euclidean distance in tokens, slopes 2^(-8 i / H).

    Press et al. 2022 (section 3) on a grid; N = rows * columns.
    """
    slopes = 2.0 ** (-8.0 * torch.arange(1, num_heads + 1, device=device) / num_heads)
    y, x = torch.meshgrid(
        torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij"
    )
    points = torch.stack([y.flatten(), x.flatten()], 1).float()
    return -slopes[None, :, None, None] * torch.cdist(points, points)[None, None]
