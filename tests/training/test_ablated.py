"""Each rival of a part of the hierarchy is what it says, and trains whole."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from benchmarks.ablations import VARIANTS, configuration
from inspect_vit.config import load_config
from inspect_vit.errors import ConfigError
from inspect_vit.layers import GatedOutputFusion, Level
from inspect_vit.model import HierarchicalViT
from training.ablated import ConcatFusion, ShiftedWindows, SumFusion, foreign_pairs
from training.config import TrainConfig
from training.fit import fit
from training.loop import build_model

OPTIONS = argparse.Namespace(epochs=1, crops=None, limit=None, data=Path("DeepPCB"))
LEVELS = ("levels.0.", "levels.1.", "levels.2.")
SIDE = 160
"""The least, px, that all windows fit into."""


def build(variant: str) -> HierarchicalViT:
    config = configuration(variant, 0, OPTIONS)
    small = config.model_copy(update={"model": config.model.model_copy(update={"size_multiple": SIDE})})
    torch.manual_seed(0)
    model = build_model(small)
    assert isinstance(model, HierarchicalViT)
    return model


def names(model: torch.nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters()}


def shown_parts(model: HierarchicalViT, board: Tensor, reference: Tensor, given: float) -> list[Tensor]:
    """Head and gate shares for one pair; the head is made to answer, which it does not before training."""
    torch.manual_seed(1)
    torch.nn.init.normal_(model.head.out.weight)
    with torch.inference_mode():
        output = model.eval()(board, reference, torch.tensor([given]))
    return [*output.head, output.gate_shares]


@pytest.fixture(scope="module")
def wanted_shapes() -> list[torch.Size]:
    board, reference = torch.randint(256, (2, 1, 1, SIDE, SIDE), dtype=torch.uint8)
    return [part.shape for part in shown_parts(build("default"), board, reference, 1.0)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_answers_as_the_default_does_and_reads_the_reference(
    variant: str, wanted_shapes: list[torch.Size]
) -> None:
    model = build(variant)
    board, reference = torch.randint(256, (2, 1, 1, SIDE, SIDE), dtype=torch.uint8)
    seen = shown_parts(model, board, reference, 1.0)
    assert [part.shape for part in seen] == wanted_shapes
    torch.testing.assert_close(seen[-1].sum(1), torch.ones(1, SIDE // 4, SIDE // 4))
    absent = shown_parts(model, board, reference, 0.0)
    torch.testing.assert_close(absent, shown_parts(model, board, board, 0.0))
    assert not torch.allclose(seen[0], absent[0])


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_parameter_of_a_variant_learns_and_is_kept(variant: str) -> None:
    model = build(variant).train()
    board, reference = torch.randint(256, (2, 2, 1, SIDE, SIDE), dtype=torch.uint8)
    torch.nn.init.normal_(model.head.out.weight)
    head = model(board, reference, torch.tensor([1.0, 0.0])).head
    sum(part.float().square().sum() for part in head).backward()  # type: ignore[union-attr]
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
    # The moving average is a deep copy, the state of a run a safetensors file.
    state = load(save({key: value.contiguous() for key, value in model.state_dict().items()}))
    average = copy.deepcopy(build(variant))
    average.load_state_dict(state)
    pair = (board[:1], reference[:1], torch.ones(1))
    with torch.inference_mode():
        torch.testing.assert_close(average.eval()(*pair).head, model.eval()(*pair).head)


@pytest.mark.parametrize(
    ("variant", "wanted"),
    [
        ("default", {}),
        ("no-envelopes", {"envelope_radii": ()}),
        ("head-dim-32", {"levels.1.head_dim": 32, "levels.2.head_dim": 32}),
        ("dropout-0.2", {"levels.0.attn_drop": 0.2, "levels.2.attn_drop": 0.2}),
        ("fine-dropout-0.1", {"levels.0.attn_drop": 0.1}),
        ("fine-depth-2", {"levels.0.depth": 2}),
        ("shifted-windows", {"levels.0.depth": 2}),
        ("no-fine-level", {"envelope_radii": ()}),
        ("sum", {}),
        ("position-none", {f"{level}position": "none" for level in LEVELS}),
        ("position-log-scan", {f"{level}position": "log-scan" for level in LEVELS}),
    ],
)
def test_a_variant_changes_that_in_the_shipped_configuration_and_no_more(
    variant: str, wanted: dict[str, object], project: Path
) -> None:
    shipped = load_config(project / "configs" / "deeppcb_nano.yaml", TrainConfig)
    config = configuration(variant, 0, OPTIONS)
    assert config.init_from is None
    assert (config.optim, config.loss, config.augment) == (shipped.optim, shipped.loss, shipped.augment)
    before, after = (flat(c.model.model_dump()) for c in (shipped, config))
    assert {key: value for key, value in after.items() if before[key] != value} == wanted


def flat(tree: dict[str, Any]) -> dict[str, object]:
    levels = {f"levels.{i}.{key}": v for i, level in enumerate(tree["levels"]) for key, v in level.items()}
    return {key: value for key, value in tree.items() if key != "levels"} | levels


def responds_jointly(fusion: torch.nn.Module) -> bool:
    """Whether what the high level adds depends on the low one: it does not in a sum."""
    torch.manual_seed(2)
    high, low = torch.randn(2, 1, 8, 4, 4), torch.randn(2, 1, 16, 1, 1)
    with torch.inference_mode():
        a, b, c, d = (fusion(one, other)[0] for one in high for other in low)
    return not torch.allclose(a - b, c - d, atol=1e-4)


def test_the_sum_adds_and_gate_and_concatenation_do_not() -> None:
    gated = GatedOutputFusion(8, 16)
    assert not responds_jointly(SumFusion(gated))
    assert responds_jointly(gated)
    assert responds_jointly(ConcatFusion(gated))


def test_the_sum_is_that_of_the_projections() -> None:
    gated = GatedOutputFusion(8, 16)
    high, low = torch.randn(1, 8, 4, 4), torch.randn(1, 16, 1, 1)
    fused, gate = SumFusion(gated)(high, low)
    wanted = torch.einsum("oi,bihw->bohw", gated.w_o_high.weight[..., 0, 0], high)
    wanted = wanted + torch.einsum("oi,bihw->bohw", gated.w_o_low.weight[..., 0, 0], low)
    for projection in (gated.w_o_high, gated.w_o_low):
        assert projection.bias is not None
        wanted = wanted + projection.bias[:, None, None]
    torch.testing.assert_close(fused, wanted)
    assert torch.equal(gate, torch.full_like(high, 0.5))


@pytest.mark.parametrize(("variant", "gone"), [("sum", "w_g"), ("concatenation", "w_")])
def test_without_gates_all_else_starts_alike(variant: str, gone: str) -> None:
    own, start = build(variant).state_dict(), build("default").state_dict()
    assert {key for key in start if key not in own} == {
        key for key in start if key.startswith((f"fuse4.{gone}", f"fuse16.{gone}"))
    }
    assert [key for key in own if key in start and not torch.equal(own[key], start[key])] == []


def test_the_concatenation_is_a_perceptron_on_both_levels_side_by_side() -> None:
    fusion = ConcatFusion(GatedOutputFusion(8, 16))
    assert fusion.v_high.bias is not None
    torch.nn.init.normal_(fusion.v_high.bias)
    high, low = torch.randn(1, 8, 4, 4), torch.randn(1, 16, 1, 1)
    beside = torch.cat([high, low.expand(1, 16, 4, 4)], 1)
    v = torch.cat([fusion.v_high.weight, fusion.v_low.weight], 1)[..., 0, 0]
    hidden = torch.einsum("oi,bihw->bohw", v, beside) + fusion.v_high.bias[:, None, None]
    torch.testing.assert_close(fusion(high, low)[0], fusion.mix(torch.nn.functional.gelu(hidden)))


def test_one_w_o_serves_every_input_of_both_fusions() -> None:
    model = build("one-w-o")
    assert {name for name in names(model) if "w_o" in name and "attn" not in name} == {
        "w_o.weight",
        "w_o.bias",
    }
    shared = model.w_o
    torch.nn.init.normal_(shared.bias)
    for fusion, high, low in ((model.fuse16, 128, 256), (model.fuse4, 32, 128)):
        for projection, width in ((fusion.w_o_high, high), (fusion.w_o_low, low)):
            tokens = torch.randn(1, width, 2, 3)
            wanted = torch.einsum("oi,bihw->bohw", shared.weight[:high, :width], tokens)
            torch.testing.assert_close(projection(tokens), wanted + shared.bias[:high, None, None])


def test_without_the_fine_level_nothing_finer_than_a_patch_of_16_px_is_seen() -> None:
    board = torch.randint(256, (1, 1, SIDE, SIDE), dtype=torch.uint8)
    patches = board.view(1, 1, SIDE // 16, 16, SIDE // 16, 16).flip((3, 5))  # each of 16 px turned by half
    turned = patches.reshape(board.shape)
    answers = {}
    for variant in ("no-fine-level", "no-envelopes"):
        model = build(variant)
        for embed in list(model.embeds)[1:]:  # which now look at means, and those do not change
            torch.nn.init.constant_(embed.proj.weight, 0.01)
        answers[variant] = [shown_parts(model, each, each, 1.0)[0] for each in (board, turned)]
    torch.testing.assert_close(*answers["no-fine-level"], atol=1e-3, rtol=1e-3)
    assert not torch.allclose(*answers["no-envelopes"], atol=1e-1)
    model = build("no-fine-level")
    assert not [name for name in names(model) if name.startswith(("embeds.0", "levels.0", "merge_fine"))]


def reach(level: torch.nn.Module, row: int, column: int) -> Tensor:
    """(16, 16) bool: the tokens of a grid that one token of the answer depends on."""
    torch.manual_seed(3)
    grid = torch.randn(1, 32, 16, 16, requires_grad=True)
    (level.eval()(grid)[0, :, row, column] * torch.randn(32)).sum().backward()
    assert grid.grad is not None
    return grid.grad[0].abs().sum(0) > 0


def test_shifted_windows_cross_the_border_of_a_window_and_not_that_of_the_picture() -> None:
    config = (
        configuration("shifted-windows", 0, OPTIONS).model.levels[0].model_copy(update={"position": "none"})
    )
    torch.manual_seed(0)
    level = Level(config, qk_norm=True, drop_path=0.0, backend="auto")
    own = torch.zeros(16, 16, dtype=torch.bool)
    own[:8, :8] = True
    assert torch.equal(reach(level, 7, 7), own)
    shifted = ShiftedWindows(level)
    assert reach(shifted, 7, 7).all()  # the second block's window holds a part of each of the four
    assert torch.equal(reach(shifted, 0, 0), own)  # its neighbours in the rolled grid are from the far side


def test_shifted_windows_take_the_place_of_the_convolution_where_there_are_windows() -> None:
    model = build("shifted-windows")
    assert {name for name in names(model) if "position" in name} == {
        *(f"levels.{i}.offsets.{b}.relative_position_bias_table" for i in (0, 1) for b in (0, 1)),
        "levels.2.position.conv.weight",
        "levels.2.position.conv.bias",
    }
    tokens = torch.randn(1, 32, 1, 1).expand(1, 32, 16, 16)
    torch.nn.init.normal_(model.levels[0].offsets[0].relative_position_bias_table)
    even = model.levels[0].eval()(tokens)
    torch.testing.assert_close(even, even[..., :1, :1].expand_as(even))


def test_only_tokens_that_rolling_put_together_are_foreign() -> None:
    rows, columns, window, shift = 4, 8, 4, 2
    found = foreign_pairs(rows, columns, window, shift, torch.device("cpu"))[:, 0] < 0  # (G, N, N)
    at = [[(r, c) for r in range(4) for c in range(first, first + 4)] for first in (0, 4)]
    for group, places in enumerate(at):
        for i, (r, c) in enumerate(places):
            for j, (s, d) in enumerate(places):
                was = [((y + shift) % rows, (x + shift) % columns) for y, x in ((r, c), (s, d))]
                together = (was[0][0] - was[1][0], was[0][1] - was[1][1]) == (r - s, c - d)
                assert bool(found[group, i, j]) is not together


def test_shifted_windows_need_two_blocks(project: Path) -> None:
    config = load_config(
        project / "configs" / "deeppcb_nano.yaml", TrainConfig, ["ablation=shifted-windows", "init_from=null"]
    )
    with pytest.raises(ConfigError, match=r"levels\.0\.depth is 1; shifted windows need 2 blocks"):
        build_model(config)


def test_an_ablated_network_makes_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"benchmarks/ablations\.py and makes no checkpoint"):
        fit(configuration("sum", 0, OPTIONS), out=tmp_path)


@pytest.mark.parametrize(
    ("override", "fault"), [("ablation=summ", "ablation: .*'sum'"), ("plain_vit={}", "exclude each other")]
)
def test_an_ablation_that_cannot_be_is_refused(override: str, fault: str, project: Path) -> None:
    with pytest.raises(ConfigError, match=fault):
        load_config(project / "configs" / "deeppcb_nano.yaml", TrainConfig, ["ablation=sum", override])
