"""Crops and targets: what is drawn is what is labelled, and crop i is crop i everywhere."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.findings import find
from inspect_vit.heads import HeadOutput
from inspect_vit.model import ModelOutput
from inspect_vit.results import Sample
from inspect_vit.tiling import plan_tiles
from training.augment import Augmenter, Crop
from training.config import AugmentConfig, TrainConfig
from training.data import DefectDataset, fingerprint
from training.targets import draw_targets


def config(**data: object) -> TrainConfig:
    levels = [
        {"patch_size": 4, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 4},
        {"patch_size": 16, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 2},
        {"patch_size": 32, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 0},
    ]
    return TrainConfig.model_validate(
        {
            "name": "t",
            "model": {"class_names": ["speck", "hole"], "levels": levels, "size_multiple": 32},
            "data": {"val_groups": ["v"], "crop_size": 128, "workers": 0, "mosaic_share": 0.5} | data,
            "augment": {"photometric_share": 0.0, "misalign_share": 0.0},
            "epochs": 1,
        }
    )


def empty_labels() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros((0, 4), np.float32)


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    """Grey boards with bright 10 px specks (class 0) and dark 10 px holes (class 1) in 24 px boxes."""
    rng = np.random.default_rng(0)
    out = []
    for i in range(6):
        reference = np.full((256, 256), 128, np.uint8)
        reference[:, ::16] = 100
        board = reference.copy()
        corners = rng.permutation(36)[:4]
        boxes, labels = [], []
        for j, corner in enumerate(corners):
            y, x = (int(c) * 40 + 8 for c in divmod(int(corner), 6))
            board[y + 7 : y + 17, x + 7 : x + 17] = 255 if j % 2 == 0 else 0
            boxes.append([x, y, x + 24, y + 24])
            labels.append("speck" if j % 2 == 0 else "hole")
        paths = [tmp_path / f"{i}_{kind}.png" for kind in ("test", "temp")]
        for path, picture in zip(paths, (board, reference), strict=True):
            cv2.imwrite(str(path), picture)
        out.append(
            Sample(paths[0], np.array(boxes, np.float32), tuple(labels), reference=paths[1], group=f"g{i}")
        )
    return out


def test_targets_point_at_what_was_drawn(samples: list[Sample]) -> None:
    dataset = DefectDataset(samples, config(), total_crops=200)
    found = 0
    for index in range(40):
        item = dataset[index]
        board, centres = item["board"][0], item["centres"]
        for label, wanted in enumerate((255, 0)):
            for row, column in (centres[label] == 1).nonzero().tolist():
                found += 1
                y, x = 4 * row + 2, 4 * column + 2
                patch = board[max(y - 3, 0) : y + 3, max(x - 3, 0) : x + 3]
                near_edge = min(abs(v - edge) for v in (y, x) for edge in (0, 64, 128)) < 14
                assert near_edge or (patch == wanted).float().mean() > 0.5
                left, top, right, bottom = item["distances"][:, row, column].tolist()
                assert near_edge or (right + left, bottom + top) == (24, 24)
        # the mask is what differs from the reference, in whole cells' shares
        differs = (item["board"].int() - item["reference"].int()).abs()[0] > 64
        share = torch.nn.functional.avg_pool2d(differs.float()[None, None], 4)[0, 0]
        torch.testing.assert_close(item["masks"].sum(0), share, atol=1e-6, rtol=0)
    assert found > 80


def test_a_perfect_head_decodes_to_the_labels() -> None:
    boxes = np.array([[10, 20, 40, 44], [60, 64, 84, 100], [97, 7, 121, 31]], np.float32)
    labels = np.array([0, 1, 0], np.int64)
    blank = np.zeros((128, 128, 1), np.uint8)
    crop = Crop(blank, blank, blank[..., 0], boxes, labels, np.zeros((0, 4), np.float32))
    targets = {key: torch.from_numpy(value)[None] for key, value in draw_targets(crop, 2).items()}
    head = HeadOutput(
        targets["centres"].clamp(1e-4, 1 - 1e-4).logit(), targets["distances"], targets["masks"]
    )
    output = ModelOutput(head, torch.full((1, 3, 32, 32), 1 / 3), None)
    plan = plan_tiles(128, 128, step=128, tile_px=128)
    found = find(lambda tile: output, plan, height=128, width=128, min_score=0.9, sure_score=0.9)
    order = np.argsort(found.boxes[:, 0])
    np.testing.assert_allclose(found.boxes[order], boxes, atol=1e-3)
    assert found.labels[order].tolist() == labels.tolist()


def test_cut_defects_are_neither_defect_nor_background() -> None:
    blank = np.zeros((64, 64, 1), np.uint8)
    ignored = np.array([[0, 32, 8, 56]], np.float32)
    crop = Crop(blank, blank, blank[..., 0], np.zeros((0, 4), np.float32), np.zeros(0, np.int64), ignored)
    counted = draw_targets(crop, 2)["counted"][0]
    assert counted[8:15, 0:3].max() == 0
    assert counted.sum() == 16 * 16 - 7 * 3


def test_a_crop_depends_on_seed_and_number_alone(samples: list[Sample]) -> None:
    one, other = (DefectDataset(samples, config(), total_crops=100) for _ in range(2))
    _ = [other[i] for i in range(5)]
    for index in (7, 3, 7):
        for key, value in one[index].items():
            assert torch.equal(value, other[index][key]), key
    reseeded = DefectDataset(samples, config().model_copy(update={"seed": 1}), total_crops=100)
    assert not torch.equal(one[7]["board"], reseeded[7]["board"])


def test_every_sample_comes_once_in_each_pass(samples: list[Sample]) -> None:
    dataset = DefectDataset(samples, config(), total_crops=100)
    for turn in range(3):
        assert sorted(dataset._sample_of(6 * turn + i) for i in range(6)) == list(range(6))


def test_references_are_dropped_in_the_asked_share(samples: list[Sample]) -> None:
    shared = config().model_copy(
        update={"augment": config().augment.model_copy(update={"reference_drop": 0.4})}
    )
    flags = [float(DefectDataset(samples, shared, total_crops=300)[i]["has_reference"]) for i in range(300)]
    assert np.mean(flags) == pytest.approx(0.6, abs=0.09)


def test_pictures_smaller_than_a_crop_are_continued_at_their_edge(
    samples: list[Sample], tmp_path: Path
) -> None:
    picture = np.full((50, 300, 3), 77, np.uint8)
    cv2.imwrite(str(tmp_path / "small.png"), picture)
    small = Sample(tmp_path / "small.png", np.zeros((0, 4), np.float32), (), group="s")
    item = DefectDataset([small], config(mosaic_share=0.0), total_crops=10)[0]
    assert item["board"].shape == (1, 128, 128)
    assert item["board"].unique().tolist() == [77]
    assert float(item["has_reference"]) == 0


def test_boxes_that_only_touch_a_zoomed_crop_are_left_out(samples: list[Sample]) -> None:
    """At edges on every px, some box ends where a crop begins, and rounding leaves a sliver of it inside."""
    edges = np.arange(220, dtype=np.float32)
    boxes = np.stack([edges, edges, edges + 24, edges + 24], 1)
    crowded = [Sample(samples[0].image, boxes, ("speck",) * len(boxes), reference=samples[0].reference)]
    dataset = DefectDataset(
        crowded, config(zoom_share=1.0, zoom=(0.8, 1.5), mosaic_share=0.0), total_crops=100
    )
    for number in range(50):
        crop = dataset._crop(0, np.random.default_rng(number), 128)
        for kept in (crop.boxes, crop.ignored):
            assert (kept[:, 2:] - kept[:, :2]).min(initial=128) >= 1


def test_edges_wander_on_the_reference_alone_and_by_about_half_a_pixel() -> None:
    grey = np.full((64, 64, 1), 200, np.uint8)
    grey[:, 24:40] = 30
    crop = Crop(grey, grey, np.zeros((64, 64), np.uint8), *empty_labels())
    still = {"misalign_share": 0.0, "photometric_share": 0.0}
    moved = Augmenter(AugmentConfig(**still, edge_share=1.0))(crop, 3)
    assert sorted(np.unique(moved.board)) == [30, 200]
    changed = np.abs(moved.reference.astype(int) - moved.board) > 64
    assert 10 < changed.sum() < 260, "of the 256 px along the edges"
    etched = Augmenter(AugmentConfig(**still, etch_share=1.0))(crop, 3)
    assert (etched.reference != etched.board).sum() == 64, (
        "one px along one of the edges: the stripe is a pixel wider or narrower"
    )


def test_a_good_board_is_the_reference_where_a_defect_was_and_has_nothing_to_call(
    samples: list[Sample],
) -> None:
    dataset = DefectDataset(
        samples, config(good_share=1.0, mosaic_share=0.5, defect_share=1.0), total_crops=20
    )
    for index in range(20):
        crop = dataset[index]
        assert torch.equal(crop["board"], crop["reference"])
        assert crop["centres"].max() == crop["masks"].max() == crop["box_weights"].max() == 0
        assert crop["counted"].min() == 1


def test_good_boards_taken_again_have_other_edges_and_nothing_to_call(tmp_path: Path) -> None:
    scan = np.full((200, 200), 255, np.uint8)
    for at in range(20, 200, 40):
        cv2.line(scan, (at, 0), (at, 200), 0, 12)
    for name in ("board", "reference"):
        cv2.imwrite(str(tmp_path / f"{name}.png"), scan)
    box = np.array([[90, 90, 110, 110]], np.float32)
    samples = [Sample(tmp_path / "board.png", box, ("speck",), reference=tmp_path / "reference.png")]
    taken = config(good_share=1.0, retake_share=1.0, mosaic_share=0.0, defect_share=1.0)
    dataset = DefectDataset(samples, taken, total_crops=20)
    shares = []
    for index in range(20):
        crop = dataset[index]
        assert crop["centres"].max() == crop["masks"].max() == crop["box_weights"].max() == 0
        board, reference = (crop[name][0].numpy() > 127 for name in ("board", "reference"))
        near_edges = cv2.morphologyEx(reference.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((13, 13))) > 0
        differs = board != reference
        assert not differs[~near_edges].any(), "away from edges, what was copper is copper"
        shares.append(differs.mean())
    assert np.median(shares) > 0.001


def test_zoomed_crops_carry_their_boxes_along(samples: list[Sample]) -> None:
    dataset = DefectDataset(
        samples, config(zoom_share=1.0, zoom=(2.0, 2.0), mosaic_share=0.0, defect_share=1.0), total_crops=100
    )
    found = 0
    for index in range(20):
        item = dataset[index]
        for label, row, column in (item["centres"] == 1).nonzero().tolist():
            y, x = 4 * row + 2, 4 * column + 2
            if min(y, x, 127 - y, 127 - x) < 30:
                continue
            found += 1
            left, top, right, bottom = item["distances"][:, row, column].tolist()
            assert (right + left, bottom + top) == (48, 48)
            patch = item["board"][0, y - 8 : y + 8, x - 8 : x + 8]
            assert (patch == (255, 0)[label]).float().mean() > 0.8
    assert found > 5


def test_fingerprint_follows_labels(samples: list[Sample]) -> None:
    assert fingerprint(samples) == fingerprint(samples)
    assert fingerprint(samples) != fingerprint(samples[1:])
