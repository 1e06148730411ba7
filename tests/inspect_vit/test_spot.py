"""The evidence at one spot, against what the layers give when they are asked one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspect_vit.inspector import LEVEL_NAMES, Inspector
from inspect_vit.spot import Spot, look_at
from inspect_vit.trace import trace
from tests.loud import NAMES, save_loud

BOX = (41.0, 20.0, 60.0, 33.0)


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    path = save_loud(tmp_path_factory.mktemp("loud") / "loud.safetensors")
    return Inspector(path, device="cpu")


@pytest.fixture(scope="module")
def pair() -> tuple[np.ndarray, np.ndarray]:
    """A board of 90 x 128 px, and the same with one block of another tone inside BOX."""
    blocks = np.random.default_rng(1).integers(0, 2, (12, 16), np.uint8) * 200 + 20
    reference = np.repeat(np.kron(blocks, np.ones((8, 8), np.uint8))[:90, :, None], 3, axis=2)
    board = reference.copy()
    board[24:32, 44:52] = 255 - board[24:32, 44:52]
    return np.ascontiguousarray(board), np.ascontiguousarray(reference)


def look(inspector: Inspector, board: np.ndarray, reference: np.ndarray | None, **thresholds: float) -> Spot:
    return look_at(
        inspector, board, reference=reference, box=BOX, thresholds={"a": 0.3, "b": 0.3, **thresholds}
    )


# Cells of 4 px: rows 5 to 8 and columns 10 to 14 are the box's, and one more on each side.
ROWS, COLUMNS = slice(4, 10), slice(9, 16)


@pytest.mark.parametrize("is_paired", [True, False])
def test_scores_are_the_centre_maps_in_the_box_and_a_cell_around_it(
    inspector: Inspector, pair: tuple[np.ndarray, np.ndarray], is_paired: bool
) -> None:
    board, reference = pair[0], pair[1] if is_paired else None
    found = look(inspector, board, reference)
    with torch.inference_mode():
        output = inspector.model(*inspector.tensors(board, reference))
    centres = output.head.centre_logits[0].float().sigmoid().numpy()
    for k, name in enumerate(NAMES):
        assert found.scores[name] == pytest.approx(centres[k, ROWS, COLUMNS].max(), abs=1e-5)
        peaks = [
            centres[k, y, x]
            for y in range(ROWS.start, ROWS.stop)
            for x in range(COLUMNS.start, COLUMNS.stop)
            if centres[k, y, x] == centres[k, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].max()
        ]
        assert found.peaks[name] == pytest.approx(max(peaks, default=0.0), abs=1e-5)
    shares = output.gate_shares[0, :, ROWS, COLUMNS].float().mean((1, 2)).tolist()
    assert list(found.gate_share.values()) == pytest.approx(shares, abs=1e-5)
    assert sum(found.gate_share.values()) == pytest.approx(1.0)


def test_a_call_that_was_made_is_a_peak_of_its_spot(
    inspector: Inspector, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    result = inspector.inspect(pair[0], min_score=0.05)
    call = result.defects[0]
    found = look_at(inspector, pair[0], reference=None, box=call.box_xyxy, thresholds={"a": 0.3, "b": 0.3})
    assert found.peaks[call.label] >= call.score - 1e-5


def test_the_class_is_the_one_nearest_to_its_threshold(
    inspector: Inspector, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    scores = look(inspector, *pair).scores
    for wanted, other in (("a", "b"), ("b", "a")):
        thresholds = {wanted: scores[wanted] / 0.9, other: scores[other] / 0.5}
        found = look(inspector, *pair, **thresholds)
        assert (found.label, found.score) == (wanted, pytest.approx(scores[wanted]))


def test_a_level_is_removed_where_the_levels_meet(
    inspector: Inspector, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    found = look(inspector, *pair)
    traced, empty = (trace(inspector, one, reference=pair[1]) for one in pair)
    k = NAMES.index(found.label)
    whole = traced.output.head.centre_logits[0, k].float().sigmoid()
    inside = whole[ROWS, COLUMNS]
    y, x = divmod(int(inside.argmax()), inside.shape[1])
    for n, level in enumerate(LEVEL_NAMES):
        tokens = list(traced.encoded.tokens)
        tokens[n] = empty.encoded.tokens[n]
        with torch.inference_mode():
            head = inspector.model.fuse(tuple(tokens)).head
        score = float(head.centre_logits[0, k, ROWS.start + y, COLUMNS.start + x].float().sigmoid())
        assert found.levels[level].removed == pytest.approx(score, abs=1e-4), level


def test_attention_is_against_the_mean_of_the_board(
    inspector: Inspector, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    attention = inspector.attention(pair[0], reference=pair[1])
    found = look(inspector, *pair)
    for level in LEVEL_NAMES:
        rows, columns = 23, 32
        whole = attention[level][:rows, :columns]
        assert found.levels[level].attention == pytest.approx(
            whole[ROWS, COLUMNS].mean() / whole.mean(), rel=1e-3
        )


def test_the_difference_is_a_count_of_pixels(
    inspector: Inspector, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    # The block of 8 x 8 px lies whole in the box of 19 x 13.
    assert look(inspector, *pair).difference == pytest.approx(64 / (19 * 13))
    assert look(inspector, pair[1], pair[1]).difference == 0.0
    assert look(inspector, pair[0], None).difference is None
