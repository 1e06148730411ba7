"""Promises of the network: its formulas, its independence of batch order, its budgets."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from inspect_vit.attention import attention_weights
from inspect_vit.config import ModelConfig, PatchLevelConfig, load_config
from inspect_vit.errors import ConfigError
from inspect_vit.layers import GatedOutputFusion, LevelAttention, cut_windows, join_windows
from inspect_vit.model import HierarchicalViT, envelopes


def small(**changes: object) -> ModelConfig:
    levels = (
        PatchLevelConfig(
            patch_size=4, embed_dim=8, depth=1, head_dim=8, window=4, attn_drop=0.5, mlp_ratio=2
        ),
        PatchLevelConfig(patch_size=16, embed_dim=16, depth=1, head_dim=8, window=2, attn_drop=0.2),
        PatchLevelConfig(patch_size=32, embed_dim=16, depth=1, head_dim=16, window=0, attn_drop=0.1),
    )
    values: dict[str, object] = {
        "class_names": ("a", "b"),
        "levels": levels,
        "head_width": 8,
        "size_multiple": 32,
    }
    return ModelConfig.model_validate(values | changes)


def pictures(batch: int = 2, height: int = 64, width: int = 96) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    shape = batch, 1, height, width
    board, reference = (torch.randint(256, shape, dtype=torch.uint8, generator=generator) for _ in range(2))
    return board, reference


@pytest.fixture
def model() -> HierarchicalViT:
    torch.manual_seed(0)
    model = HierarchicalViT(small(envelope_radii=(1, 3)))
    torch.nn.init.normal_(model.head.out.weight, std=0.5)
    for embed in model.embeds:
        torch.nn.init.normal_(embed.absent)  # type: ignore[arg-type]
    return model.eval()


def test_fusion_is_the_gated_sum_of_output_projections() -> None:
    torch.manual_seed(0)
    fusion = GatedOutputFusion(6, 10)
    high, low = torch.randn(2, 6, 8, 8), torch.randn(2, 10, 2, 2)
    up = functional.interpolate(low, scale_factor=4, mode="bilinear", align_corners=False)
    gate = torch.sigmoid(fusion.w_g_high(high) + functional.conv2d(up, fusion.w_g_low.weight))
    wanted = gate * fusion.w_o_high(high) + (1 - gate) * fusion.w_o_low(up)
    out, got_gate = fusion(high, low)
    torch.testing.assert_close(got_gate, gate)
    torch.testing.assert_close(out, wanted)


def test_windows_hold_neighbours_and_join_back() -> None:
    grid = torch.arange(2 * 4 * 6).view(2, 4, 6, 1).float()
    windows = cut_windows(grid, 2)
    assert windows.shape == (12, 4, 1)
    assert windows[1, :, 0].tolist() == [2, 3, 8, 9]
    assert torch.equal(join_windows(windows, 2, 4, 6), grid)
    assert torch.equal(join_windows(cut_windows(grid, 0), 0, 4, 6), grid)


def test_attention_received_is_the_eager_column_mean() -> None:
    torch.manual_seed(0)
    level = PatchLevelConfig(patch_size=4, embed_dim=16, depth=1, head_dim=8, window=0)
    layer = LevelAttention(level, qk_norm=False, backend="eager")
    x = torch.randn(3, 25, 16)
    weights = attention_weights(*layer._project(x, layer.w_q, layer.w_k))
    wanted = weights.mean((1, 2)) * 25
    torch.testing.assert_close(layer.received(x, None, chunk=7)[..., 0], wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(wanted.mean(-1), torch.ones(3))


def test_envelopes_are_blind_to_shifts_within_the_radius_and_see_beyond() -> None:
    reference = torch.zeros(1, 1, 40, 40, dtype=torch.uint8)
    reference[..., 10:20, 10:30] = 200
    shifted = torch.roll(reference, (3, -3), (2, 3))
    narrow_out, narrow_in, wide_out, wide_in = envelopes(shifted, reference, (1, 3))
    assert narrow_out.max() == 200
    assert narrow_in.max() == 200
    assert wide_out.max() == 0
    assert wide_in.max() == 0
    for radius, (out, inner) in {1: (narrow_out, narrow_in), 3: (wide_out, wide_in)}.items():
        side, padded = 2 * radius + 1, functional.pad(reference.float(), (radius,) * 4, mode="replicate")
        above, below = functional.max_pool2d(padded, side, 1), -functional.max_pool2d(-padded, side, 1)
        torch.testing.assert_close(out.float(), (shifted - above).clamp(min=0))
        torch.testing.assert_close(inner.float(), (below - shifted).clamp(min=0))


def test_gate_shares_sum_to_one_and_each_level_takes_part(model: HierarchicalViT) -> None:
    shares = model(*pictures(), torch.ones(2)).gate_shares
    assert shares.shape == (2, 3, 16, 24)
    torch.testing.assert_close(shares.sum(1), torch.ones(2, 16, 24))
    assert shares.min() > 0


@pytest.mark.parametrize("position", ["conv", "sincos", "learned", "alibi", "log-scan"])
def test_gradients_reach_every_parameter(position: str) -> None:
    torch.manual_seed(0)
    levels = [level.model_dump() | {"position": position} for level in small().levels]
    model = HierarchicalViT(small(levels=levels, qk_norm=True, envelope_radii=(2,)))
    board, reference = pictures()
    output = model(board, reference, torch.tensor([1.0, 0.0]))
    head = output.head
    (head.centre_logits.square().mean() + head.distances.mean() + head.mask_logits.square().mean()).backward()
    unreached = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    # A constant added to every key moves all scores of a row alike: softmax cannot see the bias of W_k.
    assert [name for name in unreached if not name.endswith(("w_k.bias", "k_norm.bias"))] == []


def test_order_of_the_batch_does_not_matter(model: HierarchicalViT) -> None:
    board, reference = pictures(3)
    flags = torch.tensor([1.0, 0.0, 1.0])
    order = [2, 0, 1]
    straight, turned = model(board, reference, flags), model(board[order], reference[order], flags[order])
    torch.testing.assert_close(
        straight.head.centre_logits[order], turned.head.centre_logits, atol=1e-5, rtol=1e-4
    )
    torch.testing.assert_close(straight.head.distances[order], turned.head.distances, atol=1e-4, rtol=1e-4)


def test_pixels_of_an_absent_reference_do_not_matter(model: HierarchicalViT) -> None:
    board, reference = pictures()
    absent = torch.zeros(2)
    a, b = model(board, reference, absent), model(board, 255 - reference, absent)
    assert torch.equal(a.head.centre_logits, b.head.centre_logits)
    present = model(board, reference, torch.ones(2))
    assert (present.head.centre_logits - a.head.centre_logits).abs().max() > 1e-3


def test_attention_maps_are_given_when_asked_and_change_nothing(model: HierarchicalViT) -> None:
    board, reference = pictures()
    plain = model(board, reference, torch.ones(2))
    asked = model(board, reference, torch.ones(2), want_attention=True)
    assert plain.attention is None
    assert asked.attention is not None
    assert torch.equal(plain.head.centre_logits, asked.head.centre_logits)
    assert [tuple(m.shape) for m in asked.attention] == [(2, 1, 16, 24), (2, 1, 4, 6), (2, 1, 2, 3)]
    for level in asked.attention:
        torch.testing.assert_close(level.mean((1, 2, 3)), torch.ones(2), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_never_yields_nan(model: HierarchicalViT, dtype: torch.dtype) -> None:
    board, reference = pictures()
    with torch.autocast("cpu", dtype):
        output = model(board, reference, torch.ones(2))
    assert all(torch.isfinite(t).all() for t in (*output.head, output.gate_shares))


def test_refuses_sizes_it_cannot_cut() -> None:
    with pytest.raises(ConfigError, match="multiples of 32"):
        HierarchicalViT(small())(torch.zeros(1, 1, 64, 80), torch.zeros(1, 1, 64, 80), torch.ones(1))


@pytest.mark.parametrize(("name", "budget"), [("nano", 6.5), ("tiny", 21.5), ("small", 65.0)])
def test_shipped_shapes_keep_their_budget(project: Path, name: str, budget: float) -> None:
    model = HierarchicalViT(load_config(project / "configs" / f"{name}.yaml", ModelConfig))
    picture = torch.zeros(1, 1, 640, 640)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model.eval()(picture, picture, torch.ones(1))
    assert 0.5 * budget < counter.get_total_flops() / 1e9 <= budget
    assert [level.head_dim for level in model.config.levels] == [32, 64, 128]
    assert [level.attn_drop for level in model.config.levels] == [0.5, 0.2, 0.1]
