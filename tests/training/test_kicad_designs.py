"""Real KiCad designs, read whole and checked against their own connectivity."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from training.kicad import KicadBoard, draw_layers, list_boards, read_board


@pytest.fixture(scope="module")
def designs() -> Path:
    project = Path(__file__).resolve().parents[2]
    root = Path(os.environ.get("INSPECT_VIT_DATA", project.parent / "shared" / "data")) / "kicad_boards"
    if not root.is_dir():
        pytest.skip(f"INSPECT_VIT_DATA: no designs in {root}")
    return root


def design(root: Path, name: str) -> KicadBoard:
    (found,) = [board for board in list_boards(root) if board.name.endswith(name)]
    return read_board(found.path, name=found.name)


def test_all_designs_are_read_in_time(designs: Path) -> None:
    files = list_boards(designs)
    assert len(files) == 54
    assert {board.licence for board in files} == {"mit", "apache-2.0", "bsd-3-clause"}
    began = time.process_time()
    for file in files:
        board = read_board(file.path, name=file.name, check_nets=False)
        stats = json.loads((file.path.parent / "metadata.json").read_text(encoding="utf-8"))["stats"]
        assert sum(name != "" for name in board.nets.values()) in (stats["netCount"], stats["netCount"] - 1)
        assert board.counts()["pad"] >= stats["partCount"]
    assert time.process_time() - began < 20


TOUCHING_BY_DESIGN = {"ESP32-PoE_Rev_B1": 1}


@pytest.mark.parametrize(
    "name",
    ["usb-sniffer-lite", "breadboardbasics__RevA", "Secalot__p1", "Secalot__p1_long", "ir-switcher",
     "fossasia__PSLab", "ESP32-PoE_Rev_B1", "DerKnopf_led-ring"],
)  # fmt: skip
def test_pieces_of_copper_belong_to_one_net(designs: Path, name: str) -> None:
    board = design(designs, name)
    spanning = 0
    for side in ("front", "back"):
        layers = draw_layers(board, side=side, px_per_mm=30)
        pieces, count = ndimage.label(layers.copper, np.ones((3, 3)))
        low = ndimage.minimum(layers.nets, pieces, np.arange(1, count + 1))
        high = ndimage.maximum(layers.nets, pieces, np.arange(1, count + 1))
        spanning += int((np.asarray(low) != np.asarray(high)).sum())
        assert layers.copper.mean() > 0.01
    assert spanning == TOUCHING_BY_DESIGN.get(name, 0)
    assert spanning == sum(note.kind in ("net-overlap", "net-tie") for note in board.notes)


@pytest.mark.parametrize(
    "name",
    ["usb-sniffer-lite", "breadboardbasics__RevA", "4N35-TTL-Serial-Optoisolator", "BB-PWR-8009",
     "DerKnopf_led-ring", "I2CTempsensor_sensors", "HaveSomePCB", "ch340-usb-serial-isolated",
     "Transponder_v2"],
)  # fmt: skip
def test_every_net_of_a_routed_design_is_one_piece_through_its_plated_holes(designs: Path, name: str) -> None:
    board = design(designs, name)
    scale = 30.0
    x, y, _, _ = board.bounds
    offset, labels, nets = 0, {}, {0: 0}
    for side in ("front", "back"):
        layers = draw_layers(board, side=side, px_per_mm=scale)
        pieces, count = ndimage.label(layers.copper, np.ones((3, 3)))
        pieces[pieces > 0] += offset
        nets.update(zip(pieces.ravel().tolist(), layers.nets.ravel().tolist(), strict=True))
        labels[side] = pieces if side == "front" else pieces[:, ::-1]
        offset += count
    leader = list(range(offset + 1))
    for drill in board.drills:
        if not drill.plated:
            continue
        middle, reach = drill.piece.points.mean(axis=0), drill.piece.width / 2 + 2 / scale
        reach += float(np.ptp(drill.piece.points, axis=0).max()) / 2
        column, row = ((middle - [x, y] - reach) * scale).astype(int).clip(0)
        to_column, to_row = ((middle - [x, y] + reach) * scale).astype(int) + 1
        met = np.unique(
            np.concatenate([labels[side][row:to_row, column:to_column].ravel() for side in labels])
        )
        for a in met[met > 0].tolist():
            for b in met[met > 0].tolist():
                if nets[a] == nets[b]:
                    old, new = leader[a], leader[b]
                    leader = [new if entry == old else entry for entry in leader]
    pieces_of: dict[int, set[int]] = {}
    for piece in range(1, offset + 1):
        pieces_of.setdefault(nets[piece], set()).add(leader[piece])
    named = {net: len(found) for net, found in pieces_of.items() if net in board.nets}
    assert len(named) >= 3
    assert set(named.values()) == {1}
