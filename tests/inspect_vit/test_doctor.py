"""The doctor passes a healthy model and catches each illness that is put into one.

More than 300 lines: every illness is a function, and the table of where it must be caught stays beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch

from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.doctor import ON_BOARDS, Examination, examine, quick_checks
from inspect_vit.doctor_attention import check_masks
from inspect_vit.doctor_boards import drawn_boards
from inspect_vit.doctor_findings import Finding, Health, Limits
from inspect_vit.doctor_report import ABOUT
from inspect_vit.doctor_stats import block_stats
from inspect_vit.doctor_trace import Board, levels_of, trace_board
from inspect_vit.doctor_weights import check_sizes
from inspect_vit.errors import ConfigError
from inspect_vit.layers import Block
from inspect_vit.model import HierarchicalViT

CPU = torch.device("cpu")
SIDE_PX = 160


def small(*, positions: tuple[str, str, str] = ("conv", "conv", "conv"), **changes: object) -> ModelConfig:
    shapes = ((4, 16, 8, 4), (16, 32, 16, 5), (32, 32, 16, 0))
    levels = tuple(
        PatchLevelConfig.model_validate(
            {"patch_size": patch, "embed_dim": dim, "depth": 1, "head_dim": head, "window": window}
            | {"position": position}
        )
        for (patch, dim, head, window), position in zip(shapes, positions, strict=True)
    )
    values: dict[str, object] = {
        "class_names": ("a", "b"),
        "levels": levels,
        "head_width": 16,
        "envelope_radii": (1,),
        "size_multiple": SIDE_PX,
        "init": "orthogonal",
    }
    return ModelConfig.model_validate(values | changes)


def build(config: ModelConfig | None = None, *, seed: int = 0) -> HierarchicalViT:
    torch.manual_seed(seed)
    return HierarchicalViT(config or small()).eval()


@pytest.fixture(scope="module")
def boards() -> list[Board]:
    return drawn_boards(small(), device=CPU, count=2, side_px=SIDE_PX)


def block(model: HierarchicalViT, level: int) -> Block:
    found = levels_of(model)[level].blocks[0]
    assert isinstance(found, Block)
    return found


def places(findings: list[Finding] | tuple[Finding, ...], check: str, *healths: Health) -> set[str]:
    return {str(f.place) for f in findings if f.check == check and f.health in healths}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_healthy_model_is_well(boards: list[Board], seed: int) -> None:
    found = examine(build(seed=seed), boards)
    faults = [
        (f.check, str(f.place), f.value) for f in found.findings if f.health in (Health.ILL, Health.WARN)
    ]
    assert faults == []
    assert found.health is Health.OK


@pytest.mark.parametrize("positions", [("sincos", "learned", "log-scan"), ("log-scan", "sincos", "learned")])
def test_no_fresh_model_is_ill(boards: list[Board], positions: tuple[str, str, str]) -> None:
    model = build(small(positions=positions, init="xavier", qk_norm=True))
    assert [f for f in examine(model, boards[:1]).findings if f.health is Health.ILL] == []


def test_every_check_says_what_it_is_and_none_is_left_out(boards: list[Board]) -> None:
    model = build(small(positions=("learned", "conv", "conv")))
    found = examine(model, boards[:1])
    assert set(found.by_check()) == set(ABOUT)
    assert set(ON_BOARDS) < set(ABOUT)
    for finding in found.findings:
        assert finding.detail
        assert finding.limit or finding.health is Health.SKIPPED
        assert bool(finding.remedy) == (finding.health in (Health.WARN, Health.ILL))


def zero_a_head(model: HierarchicalViT) -> None:
    block(model, 1).attn.w_o.weight[:, 16:] = 0


def copy_a_head(model: HierarchicalViT) -> None:
    attn = block(model, 2).attn
    for layer in (attn.w_q, attn.w_k, attn.w_v):
        layer.weight[16:] = layer.weight[:16]


def copy_where_a_head_looks(model: HierarchicalViT) -> None:
    attn = block(model, 2).attn
    for layer in (attn.w_q, attn.w_k):
        layer.weight[16:] = layer.weight[:16]


def flatten_w_o(model: HierarchicalViT) -> None:
    weight = block(model, 0).attn.w_o.weight
    weight.copy_(torch.outer(weight[:, 0], weight[0]))


def flatten_fusion(model: HierarchicalViT) -> None:
    weight = model.fuse16.w_o_low.weight
    weight.copy_(torch.outer(weight[:, 0, 0, 0], weight[0, :, 0, 0])[:, :, None, None])


def open_gate(model: HierarchicalViT) -> None:
    assert model.fuse4.w_g_high.bias is not None
    model.fuse4.w_g_high.bias += 50


def shut_gate(model: HierarchicalViT) -> None:
    assert model.fuse16.w_g_high.bias is not None
    model.fuse16.w_g_high.bias -= 50


def enlarge_q(model: HierarchicalViT) -> None:
    block(model, 2).attn.w_q.weight *= 50


def enlarge_q_and_k(model: HierarchicalViT) -> None:
    block(model, 1).attn.w_q.weight *= 1e5
    block(model, 1).attn.w_k.weight *= 1e5


def overflow_scores(model: HierarchicalViT) -> None:
    """Finite weights whose scores are not."""
    block(model, 1).attn.w_q.weight *= 1e35
    block(model, 1).attn.w_k.weight *= 1e10


def drop_q(model: HierarchicalViT) -> None:
    block(model, 0).attn.w_q.weight.zero_()


def align_rows(model: HierarchicalViT) -> None:
    weight = block(model, 1).attn.w_v.weight
    weight.copy_(weight[:1].expand_as(weight))


def enlarge_tokens(model: HierarchicalViT) -> None:
    block(model, 0).attn.w_o.weight *= 1e6


def freeze(model: HierarchicalViT) -> None:
    levels_of(model)[1].requires_grad_(False)


def shrink_patches(model: HierarchicalViT) -> None:
    for parameter in model.embeds[1].parameters():
        parameter *= 1e-6


def print_a_grid(model: HierarchicalViT) -> None:
    """On 40 x 40 cells the table of 20 x 20 is doubled: every fourth entry is every eighth cell, 32 px."""
    table = levels_of(model)[0].position.table
    table[:, ::2, ::4, ::4] = 30


def raise_one_token(model: HierarchicalViT) -> None:
    levels_of(model)[0].position.table[:, ::2, 7, 9] = 300


def same_code_everywhere(model: HierarchicalViT) -> None:
    levels_of(model)[0].position.table.fill_(1)


def drown_the_code(model: HierarchicalViT) -> None:
    levels_of(model)[0].position.table *= 1e-4


LEARNED, ALIBI = ("learned", "conv", "conv"), ("conv", "alibi", "conv")
ILLNESSES: list[tuple[Callable[[HierarchicalViT], None], tuple[str, str, str], list[tuple[str, str]]]] = [
    (
        zero_a_head,
        LEARNED,
        [("dead heads", "16 px, block 0, head 1"), ("removing a head", "16 px, block 0, head 1")],
    ),
    (copy_a_head, LEARNED, [("duplicate heads", "32 px, block 0, heads 0 and 1")]),
    (flatten_w_o, LEARNED, [("W_o rank", "4 px, block 0, W_o")]),
    (flatten_fusion, LEARNED, [("W_o rank", "16 px, fuse16 W_o_low")]),
    (
        open_gate,
        LEARNED,
        [("level share", "16 px"), ("level share", "32 px"), ("gate saturation", "4 px, gate of fuse4")],
    ),
    (shut_gate, LEARNED, [("level share", "16 px"), ("gate saturation", "16 px, gate of fuse16")]),
    (
        enlarge_q,
        LEARNED,
        [("score spread", "32 px, block 0, head 0"), ("projection spread", "32 px, block 0, W_q")],
    ),
    (
        enlarge_q_and_k,
        LEARNED,
        [
            ("attention entropy", "16 px, block 0, head 1"),
            ("top-1 weight", "16 px, block 0, head 1"),
            ("saturated rows", "16 px, block 0, head 1"),
            ("gradients", "16 px, W_q, W_k"),
        ],
    ),
    (
        overflow_scores,
        LEARNED,
        [
            ("backends", "16 px, block 0, eager and sdpa"),
            ("masks", "16 px, block 0"),
            ("finite answer", "model"),
            ("fp16 range", "model"),
            ("attention entropy", "16 px, block 0, head 0"),
        ],
    ),
    (drop_q, LEARNED, [("score spread", "4 px, block 0, head 0")]),
    (align_rows, LEARNED, [("projection rows", "16 px, block 0, head 0, W_v")]),
    (enlarge_tokens, LEARNED, [("fp16 range", "model"), ("half precision", "fp16 autocast")]),
    (freeze, LEARNED, [("gradients", "16 px, blocks"), ("gradients", "16 px, W_q, W_k")]),
    (shrink_patches, LEARNED, [("gradients", "16 px, patches")]),
    (print_a_grid, LEARNED, [("patch pattern", "32 px, centre logits")]),
    (raise_one_token, LEARNED, [("outlier tokens", "4 px")]),
    (same_code_everywhere, LEARNED, [("position code", "4 px"), ("position strength", "4 px")]),
    (drown_the_code, LEARNED, [("position strength", "4 px")]),
]


@pytest.mark.parametrize(("sicken", "positions", "wanted"), ILLNESSES, ids=[i[0].__name__ for i in ILLNESSES])
def test_an_illness_is_caught_where_it_is(
    boards: list[Board],
    sicken: Callable[[HierarchicalViT], None],
    positions: tuple[str, str, str],
    wanted: list[tuple[str, str]],
) -> None:
    model = build(small(positions=positions))
    with torch.no_grad():
        sicken(model)
    found = examine(model, boards[:1])
    assert found.health is Health.ILL
    for check, place in wanted:
        assert place in places(found.findings, check, Health.ILL), found.by_check()[check]
    assert all(f.remedy for f in found.findings if f.health is Health.ILL)


def test_heads_that_look_alike_and_answer_differently_are_a_warning(boards: list[Board]) -> None:
    model = build()
    with torch.no_grad():
        copy_where_a_head_looks(model)
    found = examine(model, boards[:1])
    assert places(found.findings, "duplicate heads", Health.WARN) == {"32 px, block 0, heads 0 and 1"}
    assert places(found.findings, "duplicate heads", Health.ILL) == set()


def test_a_nan_weight_is_ill_and_nothing_is_computed_with_it(boards: list[Board]) -> None:
    model = build()
    with torch.no_grad():
        block(model, 1).mlp[0].weight[0, 0] = float("nan")
    found = examine(model, boards[:1])
    (finding,) = (f for f in found.findings if f.check == "finite weights")
    assert finding.health is Health.ILL
    assert "levels.1.blocks.0.mlp.0.weight" in finding.detail
    assert {f.check for f in found.findings if f.health is Health.SKIPPED} == set(ON_BOARDS)


def test_rows_that_are_masked_in_full_are_caught(boards: list[Board]) -> None:
    model = build(small(positions=ALIBI))
    level = levels_of(model)[1]
    bias = torch.zeros(1, 2, 25, 25)
    bias[:, :, 3] = float("-inf")
    level._bias = lambda rows, columns, x: bias  # type: ignore[method-assign]
    found = examine(model, boards[:1])
    finding = next(f for f in found.findings if f.check == "masks" and f.health is Health.ILL)
    assert str(finding.place) == "16 px, block 0"
    assert "4.0% of rows" in finding.detail  # one of 25


def test_a_mask_given_as_a_bias_is_caught(boards: list[Board]) -> None:
    model = build(small(positions=ALIBI))
    bias = torch.ones(1, 2, 25, 25, dtype=torch.int64)
    levels_of(model)[1]._bias = lambda rows, columns, x: bias  # type: ignore[method-assign]
    trace = trace_board(model, boards[0])
    found = check_masks(model, [trace], block_stats(model, [trace]))
    assert places(found, "masks", Health.ILL) == {"16 px, block 0"}


def test_alibi_with_one_head_is_too_weak_to_be_seen(boards: list[Board]) -> None:
    shapes = [level.model_dump() for level in small(positions=ALIBI).levels]
    shapes[1]["head_dim"] = 32
    found = examine(build(small(levels=shapes)), boards[:1])
    # One head has slope 2^-8; the farthest of 5 x 5 tokens are sqrt(32) apart.
    (finding,) = (f for f in found.findings if f.check == "position code" and f.health is Health.ILL)
    assert finding.value == pytest.approx(2**-8 * 32**0.5, rel=1e-3)


def test_sizes_that_fast_kernels_refuse_are_a_warning() -> None:
    shapes = [level.model_dump() for level in small().levels]
    shapes[0] |= {"embed_dim": 24, "head_dim": 12}
    shapes[2] |= {"embed_dim": 512, "head_dim": 512}
    found = check_sizes(small(levels=shapes))
    assert places(found, "sizes", Health.WARN) == {"4 px, head_dim", "32 px, head_dim"}
    remedies = [f.remedy for f in found if f.remedy]
    assert "model.levels.0.head_dim to 8" in remedies[0] or "model.levels.0.head_dim to 16" in remedies[0]
    assert "model.levels.2.head_dim to 256" in remedies[1]


def test_an_examination_leaves_the_model_as_it_was(boards: list[Board]) -> None:
    model = build()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    examine(model, boards[:1])
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_a_doctor_without_a_board_says_so() -> None:
    with pytest.raises(ConfigError, match="--data"):
        examine(build(), [])


class TestQuickChecks:
    def run(self, model: HierarchicalViT, board: Board) -> list[Finding]:
        output = model(board.board, board.reference, board.has_reference)
        output.head.centre_logits.square().mean().backward()
        return quick_checks(model, output)

    def test_pass_a_healthy_model(self, boards: list[Board]) -> None:
        found = self.run(build(), boards[0])
        assert [f for f in found if f.health is not Health.OK] == []
        assert {"gradients", "level share", "W_o rank", "finite answer"} <= {f.check for f in found}

    @pytest.mark.parametrize(
        ("sicken", "check"),
        [
            (open_gate, "level share"),
            (flatten_w_o, "W_o rank"),
            (freeze, "gradients"),
            (overflow_scores, "finite answer"),
        ],
    )
    def test_catch_the_ill(
        self, boards: list[Board], sicken: Callable[[HierarchicalViT], None], check: str
    ) -> None:
        model = build()
        with torch.no_grad():
            sicken(model)
        assert places(self.run(model, boards[0]), check, Health.ILL)

    def test_say_nothing_of_gradients_before_there_are_any(self, boards: list[Board]) -> None:
        model, board = build(), boards[0]
        found = quick_checks(model, model(board.board, board.reference, board.has_reference))
        assert "gradients" not in {f.check for f in found}


def test_limits_judge_by_the_worse_side_and_nan_is_ill() -> None:
    limits = Limits(warn_below=1.0, warn_above=2.0, ill_below=0.5)
    values = (1.5, 1.0, 2.1, 0.9, 0.4, float("nan"), float("inf"))
    assert [str(limits.judge(value)) for value in values] == ["ok", "ok", "warn", "warn", "ill", "ill", "ill"]
    assert str(limits) == "warn below 1 or above 2, ill below 0.5"


def test_json_holds_finite_numbers_only(boards: list[Board]) -> None:
    model = build()
    with torch.no_grad():
        overflow_scores(model)
    found: Examination = examine(model, boards[:1])
    tree = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert tree["verdict"] == "ill"
    assert sum(tree["counts"].values()) == len(tree["findings"])
