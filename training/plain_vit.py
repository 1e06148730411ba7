"""The baseline that every claim about the hierarchy is measured against: a plain ViT/16.

One grid of 16 px tokens with global attention (Dosovitskiy et al. 2021, timm's blocks), enlarged to stride 4
by a transposed convolution; input, reference handling and head are the hierarchy's own.

Shape letters: B batch, c picture channels, C channels, H, W pixels, h, w cells of 4 px.
"""

from __future__ import annotations

from timm.layers import build_sincos2d_pos_embed
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from inspect_vit.config import ModelConfig
from inspect_vit.heads import DefectHead
from inspect_vit.layers import PatchEmbed
from inspect_vit.model import ModelOutput, stack_pictures

PATCH_PX, STRIDE_PX = 16, 4
HEAD_DIM = 64


class PlainViT(nn.Module):
    """Takes what HierarchicalViT takes and answers the same; its gate share is all on 16 px."""

    def __init__(self, config: ModelConfig, *, embed_dim: int, depth: int, attn_drop: float = 0.1) -> None:
        """config: classes, channels, envelopes and head as the hierarchy's; its levels are not used.

        embed_dim: a multiple of 64, the width of a head.
        """
        super().__init__()
        self.config = config
        in_chans = 2 * config.in_chans * (1 + len(config.envelope_radii))
        self.embed = PatchEmbed(in_chans, embed_dim, PATCH_PX)
        self.blocks = nn.ModuleList(
            Block(embed_dim, embed_dim // HEAD_DIM, mlp_ratio=4.0, qkv_bias=True, attn_drop=attn_drop)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(embed_dim)
        fine_dim = config.levels[0].embed_dim
        self.enlarge = nn.ConvTranspose2d(
            embed_dim, fine_dim, PATCH_PX // STRIDE_PX, stride=PATCH_PX // STRIDE_PX
        )
        self.act = nn.GELU()
        self.head = DefectHead(fine_dim, config.head_width, len(config.class_names), STRIDE_PX)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.head.initialise()

    def forward(
        self, board: Tensor, reference: Tensor, has_reference: Tensor, *, want_attention: bool = False
    ) -> ModelOutput:
        """board, reference: (B, c, H, W) uint8, H and W multiples of 16; has_reference: (B,) of 0 or 1."""
        assert not want_attention, "the baseline shows no attention"
        flag = has_reference.view(-1, 1, 1, 1)
        _, pixels = stack_pictures(board, reference, flag, self.config)
        grid = self.embed(pixels, flag)  # (B, C, H / 16, W / 16)
        rows, columns = grid.shape[2:]
        place = build_sincos2d_pos_embed([rows, columns], grid.shape[1], device=grid.device)  # (N, C)
        tokens = grid.flatten(2).transpose(1, 2) + place.to(grid.dtype)
        for block in self.blocks:
            tokens = block(tokens)
        encoded = self.norm(tokens).transpose(1, 2).unflatten(2, (rows, columns))
        fine = self.act(self.enlarge(encoded))  # (B, C, h, w)
        shares = fine.new_zeros(len(fine), 3, *fine.shape[2:])
        shares[:, 1] = 1.0
        return ModelOutput(self.head(fine), shares, None)
