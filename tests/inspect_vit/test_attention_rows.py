"""Attention of asked queries against the whole matrix in float64; roll-out against its product."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from inspect_vit.config import PatchLevelConfig
from inspect_vit.errors import ConfigError
from inspect_vit.layers import Level, cut_windows, join_windows
from inspect_vit.positions import alibi_2d

ROWS, COLUMNS = 8, 12


def level(window: int = 4, position: str = "conv", *, qk_norm: bool = False) -> Level:
    torch.manual_seed(0)
    config = PatchLevelConfig.model_validate(
        {"patch_size": 4, "embed_dim": 16, "depth": 2, "head_dim": 8, "window": window, "position": position}
    )
    made = Level(config, qk_norm=qk_norm, drop_path=0.0, backend="auto").eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return made


def grid_and_weights() -> tuple[Tensor, Tensor]:
    """Tokens, and weights of five queries that lie in three windows."""
    generator = torch.Generator().manual_seed(1)
    asked = torch.zeros(1, ROWS, COLUMNS)
    for row, column, weight in ((0, 0, 0.5), (3, 3, 1.0), (2, 1, 0.25), (5, 2, 2.0), (7, 11, 0.1)):
        asked[0, row, column] = weight
    return torch.randn(1, 16, ROWS, COLUMNS, generator=generator), asked


def whole_matrices(made: Level, grid: Tensor) -> list[Tensor]:
    """Each block's attention between all tokens of the grid, (H, h * w, h * w), 0 across windows; float64."""
    made, grid = made.double(), grid.double()
    window = made.config.window
    x = cut_windows(made.position(grid).permute(0, 2, 3, 1), window)
    place = cut_windows(torch.arange(ROWS * COLUMNS).view(1, ROWS, COLUMNS, 1), window)[..., 0]
    side = (window, window) if window else (ROWS, COLUMNS)
    bias = alibi_2d(2, *side)[0].double() if made.config.position == "alibi" else None
    matrices = []
    for block in made.blocks:
        attn, tokens = block.attn, block.norm1(x)
        matrix = torch.zeros(2, ROWS * COLUMNS, ROWS * COLUMNS, dtype=torch.float64)
        for index, inside in enumerate(tokens):
            for head in range(2):
                part = slice(8 * head, 8 * head + 8)
                q = attn.q_norm(attn.w_q(inside)[:, part])
                k = attn.k_norm(attn.w_k(inside)[:, part])
                scores = q @ k.T / math.sqrt(8) + (0 if bias is None else bias[head])
                exponents = torch.exp(scores - scores.max())
                weights = exponents / exponents.sum(1, keepdim=True)
                matrix[head][place[index][:, None], place[index][None]] = weights
        matrices.append(matrix)
        x = block(x, None if bias is None else bias[None])
    return matrices


@pytest.mark.parametrize(("window", "position", "qk_norm"), [(4, "conv", False), (0, "alibi", True)])
@pytest.mark.parametrize("block", [0, -1])
def test_asked_rows_are_those_of_the_whole_matrix(
    window: int, position: str, qk_norm: bool, block: int
) -> None:
    grid, asked = grid_and_weights()
    with torch.no_grad():
        got = level(window, position, qk_norm=qk_norm).attention(grid, asked, block=block)
        matrix = whole_matrices(level(window, position, qk_norm=qk_norm), grid)[block]
    share = (asked / asked.sum()).double().flatten()
    wanted = torch.einsum("n,hnm->hm", share, matrix).view(1, 2, ROWS, COLUMNS)
    tokens = window**2 or ROWS * COLUMNS
    torch.testing.assert_close(got.double() / tokens, wanted, atol=1e-5, rtol=0)


def test_without_a_query_every_token_is_asked() -> None:
    grid, _ = grid_and_weights()
    with torch.no_grad():
        got = level().attention(grid)
        received = whole_matrices(level(), grid)[-1].sum(1).view(1, 2, ROWS, COLUMNS)
    torch.testing.assert_close(got.double(), received, atol=1e-4, rtol=0)


def test_no_matrix_of_all_tokens_is_ever_made() -> None:
    """2304 tokens, 3 rows asked: no tensor comes near 2304 x 2304."""

    class Largest(TorchDispatchMode):
        numel = 0

        def __torch_dispatch__(self, function, types, arguments=(), options=None):  # type: ignore[no-untyped-def]
            out = function(*arguments, **(options or {}))
            for tensor in out if isinstance(out, tuple | list) else [out]:
                if isinstance(tensor, Tensor):
                    self.numel = max(self.numel, tensor.numel())
            return out

    made, grid = level(0), torch.randn(1, 16, 48, 48)
    asked = torch.zeros(1, 48, 48)
    asked[0, 20, 20:23] = 1
    with torch.no_grad(), Largest() as largest:
        made.attention(grid, asked, block=0)
    assert 48 * 48 * 16 <= largest.numel < 48**4 / 16


@pytest.mark.parametrize("window", [4, 0])
def test_rollout_is_the_product_of_its_matrices(window: int) -> None:
    grid, asked = grid_and_weights()
    with torch.no_grad():
        got = level(window).rollout(grid, asked)
        first, second = (matrix.mean(0) for matrix in whole_matrices(level(window), grid))
    same = torch.eye(ROWS * COLUMNS, dtype=torch.float64)
    row = (asked / asked.sum()).double().flatten() @ ((second + same) / 2) @ ((first + same) / 2)
    torch.testing.assert_close(got.double(), row.view(1, ROWS, COLUMNS), atol=1e-5, rtol=0)


def test_refuses_blocks_and_queries_that_are_not_there() -> None:
    grid, asked = grid_and_weights()
    with pytest.raises(ConfigError, match="block 2: this level has 2 blocks"):
        level().attention(grid, asked, block=2)
    with pytest.raises(ConfigError, match="asked for no token"):
        level().attention(grid, torch.zeros_like(asked))


def test_windows_not_asked_stay_zero() -> None:
    grid, _ = grid_and_weights()
    asked = torch.zeros(1, ROWS, COLUMNS)
    asked[0, 1, 6] = 1
    with torch.no_grad():
        got = level().attention(grid, asked)
    inside = join_windows(torch.eye(6)[1].view(6, 1, 1).expand(6, 16, 1), 4, ROWS, COLUMNS)[0, :, :, 0]
    assert torch.equal(got[0, 0] > 0, inside > 0)
    torch.testing.assert_close(got.sum((2, 3)), torch.full((1, 2), 16.0))
