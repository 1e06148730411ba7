"""What the doctor measures is what it says: each figure worked out another way."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.doctor_attention import check_scores
from inspect_vit.doctor_boards import drawn_boards, load_boards
from inspect_vit.doctor_heads import check_removal
from inspect_vit.doctor_maps import _fading, periodic_share
from inspect_vit.doctor_numbers import check_gradients, surrogate_gradients
from inspect_vit.doctor_stats import block_stats
from inspect_vit.doctor_trace import Board, blocks_of, trace_board
from inspect_vit.doctor_weights import effective_rank, singular_values
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.model import HierarchicalViT
from inspect_vit.positions import sincos_2d

CPU = torch.device("cpu")


def small(*, position: str = "conv", qk_norm: bool = False) -> ModelConfig:
    shapes = ((4, 16, 8, 4), (16, 32, 16, 2), (32, 32, 16, 0))
    levels = tuple(
        PatchLevelConfig.model_validate(
            {"patch_size": p, "embed_dim": c, "depth": 2, "head_dim": d, "window": w, "position": position}
        )
        for p, c, d, w in shapes
    )
    return ModelConfig(
        class_names=("a", "b"),
        levels=levels,
        head_width=8,
        size_multiple=64,
        envelope_radii=(1,),
        qk_norm=qk_norm,
    )


def build(config: ModelConfig) -> HierarchicalViT:
    torch.manual_seed(0)
    model = HierarchicalViT(config).eval()
    torch.nn.init.normal_(model.head.out.weight, std=0.5)
    return model


def board(config: ModelConfig, side_px: int = 64) -> Board:
    return drawn_boards(config, device=CPU, count=1, side_px=side_px)[0]


@pytest.mark.parametrize("position", ["conv", "alibi", "learned"])
def test_the_trace_is_what_the_model_computes(position: str) -> None:
    config = small(position=position, qk_norm=True)
    model, shown = build(config), board(config, 128)
    with torch.no_grad():
        output = model(shown.board, shown.reference, shown.has_reference)
    trace = trace_board(model, shown)
    for got, wanted in zip(trace.output.head, output.head, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(trace.output.gate_shares, output.gate_shares)
    assert [(b.level, b.block) for b in trace.blocks] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_statistics_of_attention_equal_a_loop_in_float64() -> None:
    config = small(position="alibi")
    model, shown = build(config), board(config)
    with torch.no_grad():
        for _, _, block in blocks_of(model):
            block.attn.w_q.weight.mul_(12)
    traces = [trace_board(model, shown)]
    stat, b = block_stats(model, traces)[2], traces[0].blocks[2]  # the 16 px level's first block
    num_windows, num_heads, num_queries, head_dim = b.q.shape
    assert b.bias is not None
    assert (num_queries, stat.num_keys, stat.head_dim) == (4, 4, head_dim)
    for head in range(num_heads):
        spreads, entropies, tops = [], [], []
        for g in range(num_windows):
            for n in range(num_queries):
                q, k = b.q[g, head, n].double().numpy(), b.k[g, head].double().numpy()
                scores = k @ q / math.sqrt(head_dim) + b.bias[0, head, n].double().numpy()
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                spreads.append(scores.std())
                entropies.append(-(weights * np.log(weights)).sum() / math.log(4))
                tops.append(weights.max())
        assert float(stat.score_spread[head]) == pytest.approx(np.mean(spreads), rel=1e-4)
        assert float(stat.entropy[head]) == pytest.approx(np.mean(entropies), rel=1e-4)
        assert float(stat.top_weight[head]) == pytest.approx(np.mean(tops), rel=1e-4)
        assert float(stat.saturated[head]) == pytest.approx(np.mean(np.array(tops) > 0.999), abs=1e-9)
        finding = check_scores([stat])[head]
        unscaled = np.mean(spreads) * math.sqrt(head_dim)
        assert f"{unscaled:.3g} without" in finding.detail
    weight = model.levels[1].blocks[0].attn.w_o.weight.detach()
    added = (b.heads[:, 0] - b.heads[:, 0].mean((0, 1))) @ weight[:, :16].T
    assert float(stat.contribution[0]) == pytest.approx(
        float(added.square().mean().sqrt() / b.stream.square().mean().sqrt()), rel=1e-4
    )


def test_statistics_do_not_depend_on_how_windows_are_portioned(monkeypatch: pytest.MonkeyPatch) -> None:
    config = small()
    model, shown = build(config), board(config)
    traces = [trace_board(model, shown)]
    whole = block_stats(model, traces)
    monkeypatch.setattr("inspect_vit.doctor_stats.MAX_WEIGHTS", 1)
    for a, b in zip(whole, block_stats(model, traces), strict=True):
        torch.testing.assert_close(a.entropy, b.entropy)
        torch.testing.assert_close(a.pattern_cosine, b.pattern_cosine, atol=1e-5, rtol=1e-5)


def test_the_cost_of_a_head_is_the_change_without_its_columns() -> None:
    config = small()
    model, shown = build(config), board(config)
    whole = trace_board(model, shown)
    findings = check_removal(model, [shown], [whole])
    assert len(findings) == 12
    chosen = next(f for f in findings if str(f.place) == "32 px, block 1, head 1")
    with torch.no_grad():
        model.levels[2].blocks[1].attn.w_o.weight[:, 16:] = 0
        without = model(shown.board, shown.reference, shown.has_reference).head.centre_logits
    logits = whole.output.head.centre_logits
    change = (without - logits).square().mean().sqrt()
    spread = torch.stack([logits[0, k].var(unbiased=False) for k in range(2)]).mean().sqrt()
    assert chosen.value == pytest.approx(float(change / spread), rel=1e-4)


@pytest.mark.parametrize(("values", "rank"), [([1.0] * 6, 6.0), ([5.0, 0, 0], 1.0), ([2.0, 2.0, 0, 0], 2.0)])
def test_effective_rank_counts_equal_values(values: list[float], rank: float) -> None:
    turned = torch.linalg.qr(
        torch.randn(len(values), len(values), generator=torch.Generator().manual_seed(1))
    )[0]
    matrix = turned @ torch.diag(torch.tensor(values)) @ turned.T
    assert effective_rank(singular_values(matrix)) == pytest.approx(rank, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_periodic_share_is_the_pattern_in_the_noise(share: float) -> None:
    random = torch.Generator().manual_seed(0)
    tile = torch.randn(1, 1, 8, 8, generator=random)
    tile = (tile - tile.mean()) / tile.std(unbiased=False)
    maps = []
    for rows, columns in ((160, 160), (80, 160)):
        noise = torch.randn(1, 1, rows, columns, generator=random)
        maps.append(share**0.5 * tile.repeat(1, 1, rows // 8, columns // 8) + (1 - share) ** 0.5 * noise + 7)
    assert float(periodic_share(maps, 8)[0]) == pytest.approx(share, abs=0.02)


def test_a_board_that_is_darker_on_one_side_hides_no_pattern() -> None:
    tile = torch.zeros(8, 8)
    tile[0, 0] = 1.0
    side = torch.linspace(-5, 5, 160)[None, :].expand(160, -1).round()
    alone, tilted = tile.repeat(20, 20)[None, None], (tile.repeat(20, 20) + side)[None, None]
    assert float(periodic_share([alone], 8)[0]) == pytest.approx(1.0, abs=1e-6)
    assert float(periodic_share([tilted], 8)[0]) > 0.5 * float(alone.var() / tilted[..., :80].var())


def test_what_one_board_shows_once_is_no_pattern() -> None:
    board = torch.zeros(1, 1, 160, 160)
    board[..., 11, 11] = board[..., 140, 30] = 1.0
    assert float(periodic_share([board], 8)[0]) == pytest.approx(0.0, abs=0.01)


def test_a_flat_map_has_no_pattern() -> None:
    assert float(periodic_share([torch.full((1, 1, 16, 16), 3.0)], 8)[0]) == 0.0


def test_codes_that_fade_are_told_from_codes_that_do_not() -> None:
    rows, columns = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    assert _fading(torch.stack([rows, columns])) == pytest.approx(1.0)
    assert _fading(sincos_2d(64, 12, 12)[0]) > 0.5
    scattered = torch.randn(64, 12, 12, generator=torch.Generator().manual_seed(0))
    assert abs(_fading(scattered)) < 0.1
    assert math.isnan(_fading(torch.ones(8, 12, 12)))


def test_gradients_are_compared_with_the_median_part_and_none_stay_behind() -> None:
    config = small()
    model, shown = build(config), board(config)
    gradients = surrogate_gradients(model, shown)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert set(gradients) == {name for name, _ in model.named_parameters()}
    findings = check_gradients(model, gradients, source="a test")
    logits = model(shown.board, shown.reference, shown.has_reference).head.centre_logits.flatten()
    logits.topk(50).values.sum().backward()
    head = [*model.head.parameters(), *model.refine.parameters()]
    slope = math.sqrt(sum(float(p.grad.square().sum()) for p in head if p.grad is not None))
    pace = slope / math.sqrt(sum(float(p.detach().square().sum()) for p in head))
    (found,) = (f for f in findings if str(f.place) == "head")
    median = float(found.detail.split("(")[1].split(")")[0])
    assert found.value == pytest.approx(pace / median, rel=0.01)
    assert sorted(f.value or 0.0 for f in findings)[len(findings) // 2] == pytest.approx(1.0, rel=1e-6)


class TestBoards:
    def write(self, path: Path, *, seed: int = 0, spot: int = 0) -> None:
        coarse = np.random.default_rng(seed).integers(0, 2, (16, 16)).astype(np.uint8) * 255
        picture = np.kron(coarse, np.ones((8, 8), np.uint8))
        picture[40 : 40 + spot, 60 : 60 + spot] ^= 255
        assert cv2.imwrite(str(path), picture)

    def test_pairs_are_found_and_references_are_no_boards(self, tmp_path: Path) -> None:
        (tmp_path / "lot").mkdir()
        for name in ("lot/a_test.png", "lot/a_temp.png", "b_test.png", "c.png"):
            self.write(tmp_path / name, spot=8 * name.endswith("_temp.png"))
        boards, source = load_boards(tmp_path, small(), device=CPU)
        by_name = {b.name: b for b in boards}
        assert set(by_name) == {"a_test", "b_test", "c"}
        assert {name: float(b.has_reference) for name, b in by_name.items()} == {
            "a_test": 1,
            "b_test": 0,
            "c": 0,
        }
        assert not torch.equal(by_name["a_test"].board, by_name["a_test"].reference)
        assert source == f"3 boards of 3 in {tmp_path}, 1 with reference"

    def test_large_pictures_are_cropped_about_their_centre_and_small_ones_padded(
        self, tmp_path: Path
    ) -> None:
        picture = np.zeros((100, 900), np.uint8)
        picture[:, 130] = 255  # the first column that is kept: (900 - 640) / 2
        assert cv2.imwrite(str(tmp_path / "a.png"), picture)
        boards, _ = load_boards(tmp_path, small(), device=CPU)
        assert boards[0].board.shape == (1, 1, 128, 640)
        assert boards[0].board[0, 0, :, 0].min() == 255

    def test_default_boards_are_the_samples(self, project: Path) -> None:
        boards, source = load_boards(None, small(), device=CPU)
        assert len(boards) == 4
        assert f"of 10 in {project / 'data_samples'}, 4 with reference" in source

    def test_drawn_boards_repeat_and_differ_from_their_reference(self) -> None:
        first, again = (drawn_boards(small(), device=CPU, side_px=128) for _ in range(2))
        assert all(torch.equal(a.board, b.board) for a, b in zip(first, again, strict=True))
        changed = (first[0].board != first[0].reference).sum()
        assert 0 < int(changed) <= 6 * 64

    def test_mistakes_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="not a folder"):
            load_boards(tmp_path / "none", small(), device=CPU)
        with pytest.raises(ConfigError, match="holds no picture"):
            load_boards(tmp_path, small(), device=CPU)
        self.write(tmp_path / "a_test.png")
        self.write(tmp_path / "a_temp.png", seed=1)
        with pytest.raises(ImageError, match=r"a_test.png with .*a_temp.png: another product"):
            load_boards(tmp_path, small(), device=CPU)
