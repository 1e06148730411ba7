"""Tiles and crops over HTTP: the posted pixels, at their place, at every level; and what is refused."""

from __future__ import annotations

import asyncio
import io
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from inspect_vit.alignment import lay_under
from inspect_vit.cells import cells_of
from inspect_vit.colours import attention_scale, look_up
from inspect_vit.drawing import upsample
from inspect_vit.map_tiles import ATTENTION_RGBA, DEFECT_RGBA, paint_difference
from serving.archive import pack_maps
from serving.backend import Backend
from serving.config import ServingConfig
from serving.crops import crop_window
from serving.schemas import ErrorReport, ImageSize
from serving.tiles_ask import LAYERS, LayerAsk
from serving.tiles_pyramid import Grid
from tests.serving.boards import Boards

WIDTH, HEIGHT = 1090, 701
BOX = (301, 202, 700, 701)
THRESHOLD = 0.3
"""Of every class of the tiny checkpoint."""


def draw(tracks: int) -> np.ndarray:
    """A board (HEIGHT, WIDTH, 3) RGB of tracks; boards of fewer tracks lack the last ones."""
    rng = np.random.default_rng(5)
    board = np.full((HEIGHT, WIDTH, 3), (70, 140, 90), np.uint8)
    for _ in range(tracks):
        start, end = ((int(rng.integers(WIDTH)), int(rng.integers(HEIGHT))) for _ in range(2))
        cv2.line(board, start, end, (210, 160, 60), int(rng.integers(4, 14)))
    return board


def png(picture: np.ndarray) -> bytes:
    return bytes(cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))[1])


def pixels(answer: httpx.Response) -> np.ndarray:
    """RGB or RGBA."""
    answer.raise_for_status()
    found = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_UNCHANGED)
    assert found is not None
    return cv2.cvtColor(found, cv2.COLOR_BGRA2RGBA if found.shape[2] == 4 else cv2.COLOR_BGR2RGB)


def edge_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Mean error at upright edges, in contrasts of theirs: a shift by one pixel gives about 1."""
    contrast = np.abs(np.diff(wanted.astype(float), axis=1))
    error = np.abs(found.astype(float) - wanted)[:, 1:]
    is_edge = contrast > 30
    return float(error[is_edge].mean() / contrast[is_edge].mean())


@pytest.fixture(scope="module")
def board() -> np.ndarray:
    return draw(60)


@pytest.fixture(scope="module")
def golden() -> np.ndarray:
    """The board without its last track, taken 3 px further left."""
    return np.roll(draw(59), -3, axis=1)


@pytest.fixture(scope="module")
def one(server: Any, board: np.ndarray, golden: np.ndarray) -> str:
    """Path of an inspection with a reference."""
    files = {"image": ("b.png", png(board)), "reference": ("g.png", png(golden))}
    report = server.client.post("/v1/inspect", files=files).raise_for_status().json()
    return f"/v1/inspections/{report['id']}"


def stitched(server: Any, one: str, layer: str, level: int, **query: str) -> np.ndarray:
    """A level put together from its tiles, as a viewer does."""
    report = server.client.get(f"{one}/tiles/{layer}", params=query).raise_for_status().json()
    side = 1 << (report["max_level"] - level)
    width, height = -(-report["width"] // side), -(-report["height"] // side)
    step = report["tile_px"]
    columns, rows = -(-width // step), -(-height // step)
    lines = []
    for row in range(rows):
        tiles = [
            pixels(server.client.get(f"{one}/tiles/{layer}/{level}/{column}_{row}", params=query))
            for column in range(columns)
        ]
        lines.append(np.concatenate(tiles, axis=1))
    whole = np.concatenate(lines)
    assert whole.shape[:2] == (height, width)
    return whole


def test_levels_go_from_one_tile_to_the_whole_board(server: Any, one: str) -> None:
    report = server.client.get(f"{one}/tiles/image").json()
    assert report == {"width": WIDTH, "height": HEIGHT, "tile_px": 512, "max_level": 2}


def test_tiles_of_the_image_are_the_board_at_every_level(server: Any, one: str, board: np.ndarray) -> None:
    for level, side in ((2, 1), (1, 2), (0, 4)):
        found = stitched(server, one, "image", level).astype(float)
        rows, columns = HEIGHT // side, WIDTH // side
        blocks = board[: rows * side, : columns * side].reshape(rows, side, columns, side, 3)
        assert edge_error(found[:rows, :columns], blocks.mean((1, 3))) < 0.2, level  # what JPEG does


def test_a_crop_shows_the_very_pixels(server: Any, one: str, board: np.ndarray) -> None:
    answer = server.client.get(f"{one}/crops/image", params={"box": "101,203,151,228", "size": "210"})
    assert answer.headers["content-type"] == "image/png"
    wanted = board[203:228, 101:151].repeat(4, axis=0).repeat(4, axis=1)
    np.testing.assert_array_equal(pixels(answer), wanted)


def test_reference_and_difference_lie_under_the_board(
    server: Any, one: str, board: np.ndarray, golden: np.ndarray
) -> None:
    laid = lay_under(board, golden).picture
    assert laid is not None
    box = {"box": "300,200,812,600", "size": "512"}
    reference = pixels(server.client.get(f"{one}/crops/reference", params=box))
    np.testing.assert_array_equal(reference, laid[200:600, 300:812])
    difference = pixels(server.client.get(f"{one}/crops/difference", params=box))
    np.testing.assert_array_equal(difference, paint_difference(board, laid)[200:600, 300:812])
    for layer in LAYERS:
        drawn = pixels(server.client.get(f"{one}/crops/{layer}", params={**box, "size": "1030"}))
        assert drawn.shape[:2] == (800, 1024), "one can be laid over the other"


def test_attention_lies_on_the_board(server: Any, one: str) -> None:
    query = {"x": "400", "y": "300", "head": "1"}
    answer = server.client.get(f"{one}/attention", params={**query, "level": "16", "format": "npz"})
    with np.load(io.BytesIO(answer.raise_for_status().content)) as arrays:
        scale = upsample(attention_scale(arrays["attention"]), HEIGHT, WIDTH)
    found = stitched(server, one, "attention_16", 2, **query)
    wanted = look_up(ATTENTION_RGBA, scale)
    assert np.abs(found.astype(int) - wanted).max() <= 3


def test_gate_shares_are_drawn(server: Any, one: str) -> None:
    found = stitched(server, one, "gate", 1)
    assert found.shape[2] == 4
    assert 0 < found[..., 3].mean() < 160


def test_the_legend_says_what_the_tiles_are_painted_with(server: Any, one: str) -> None:
    for layer in LAYERS:
        legend = server.client.get(f"{one}/legend/{layer}").raise_for_status().json()
        assert legend["words"]
        assert bool(legend["stops"]) == (layer not in ("image", "reference"))
    legend = server.client.get(f"{one}/legend/defect_map", params={"label": "open"}).json()
    assert (legend["threshold"], legend["unit"]) == (THRESHOLD, "probability")
    below = [stop["rgba"][3] for stop in legend["stops"] if stop["value"] < THRESHOLD]
    above = [stop["rgba"][3] for stop in legend["stops"] if stop["value"] >= THRESHOLD]
    assert max(below) < 40 < 150 < min(above)


def test_a_thumbnail_is_small_and_shows_the_board(server: Any, one: str, board: np.ndarray) -> None:
    answer = server.client.get(f"{one}/thumbnail")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"] == "private, max-age=3600"
    found = pixels(answer)
    assert found.shape == (154, 240, 3)
    wanted = cv2.resize(board, (240, 154), interpolation=cv2.INTER_AREA)
    assert edge_error(found, wanted) < 0.5


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("tiles/photo", 404, "there is no layer 'photo'"),
        ("tiles/image/3/0_0", 404, "levels of this board are 0 to 2"),
        ("tiles/image/2/3_0", 404, "3 columns and 2 rows"),
        ("tiles/image/2/-1_0", 404, "whole number"),
        ("tiles/image/2/9999999999_0", 404, "whole number"),
        ("tiles/image?label=open", 422, "label: met with the layer image"),
        ("tiles/gate?defect=1", 422, "defect: met with the layer gate"),
        ("tiles/defect_map?label=hole", 422, "label: 'hole', wanted a class of this model: open"),
        ("tiles/attention_4?head=all", 422, "head: 'all'"),
        ("tiles/attention_4?head=9", 422, "head: 9"),
        ("tiles/attention_4?x=5000&y=1", 422, "x: 5000"),
        ("crops/image?box=0,0,1091,9", 422, "does not lie on the board of 1090 x 701 px"),
        ("crops/image?box=9,9,9,20", 422, "left < right"),
        ("crops/image?size=4096", 422, "size: '4096'"),
        ("defects/999/similar", 404, "has no defect 999"),
        ("thumbnail?size=3", 422, "'size' is not a query parameter"),
    ],
)
def test_what_is_not_there_is_refused_in_words(
    server: Any, one: str, path: str, status: int, words: str
) -> None:
    answer = server.client.get(f"{one}/{path}")
    assert (answer.status_code, words in ErrorReport.model_validate_json(answer.text).error.message) == (
        status,
        True,
    ), answer.text


def test_without_a_reference_that_lies_there_is_none(server: Any, board: np.ndarray) -> None:
    def posted(**files: bytes) -> str:
        answer = server.client.post("/v1/inspect", files={n: (n, data) for n, data in files.items()})
        return f"/v1/inspections/{answer.raise_for_status().json()['id']}"

    alone = posted(image=png(board[:320, :320]))
    noise = np.random.default_rng(0).integers(0, 255, (320, 320, 3), np.uint8)
    apart = posted(image=png(board[:320, :320]), reference=png(noise))
    for path in ("tiles/reference", "tiles/difference", "tiles/reference/0/0_0", "crops/difference"):
        assert "without a reference" in server.client.get(f"{alone}/{path}").json()["error"]["message"]
        answer = server.client.get(f"{apart}/{path}")
        assert answer.status_code == 404
        assert "cannot be laid under the board" in answer.json()["error"]["message"]


def test_a_line_sees_none_of_it(guarded: Any, board_png: bytes) -> None:
    files = {"image": ("b.png", board_png)}
    report = guarded.call("POST", "/v1/inspect", "line", files=files).raise_for_status().json()
    path = f"/v1/inspections/{report['id']}"
    for end in ("thumbnail", "tiles/image", "tiles/image/0/0_0", "crops/gate", "legend/gate"):
        assert guarded.call("GET", f"{path}/{end}", "line").status_code == 403
        assert guarded.call("GET", f"{path}/{end}", "operator").status_code == 200


def test_stored_maps_lie_on_the_board_and_one_pyramid_serves_all_who_wait(
    tiny_checkpoint: Path, tmp_path: Path, board: np.ndarray, golden: np.ndarray, boards: Boards
) -> None:
    rng = np.random.default_rng(3)
    defect_map = rng.integers(0, 256, (2, *cells_of(HEIGHT, WIDTH)), np.uint8).astype(np.float32) / 255
    boards.result = replace(boards.result, width=WIDTH, height=HEIGHT, defect_map=defect_map)
    report = boards.report().model_copy(update={"image": ImageSize(width=WIDTH, height=HEIGHT)})
    limits = boards.result.thresholds
    scales = [np.interp(p, [0, limits[n], 1], [0, 0.5, 1]) for n, p in zip(limits, defect_map, strict=True)]
    wanted = {None: np.maximum(*scales), "open": scales[0], "short": scales[1]}

    async def here() -> bool:
        return False

    async def run() -> None:
        settings = ServingConfig(home=tmp_path, checkpoint=tiny_checkpoint, device="cpu", min_free_mb=0)
        with closing(Backend(settings)) as backend:
            pictures = {"image": png(board), "reference": png(golden)}
            boards.add(backend.store, report, maps=pack_maps(boards.result), **pictures)
            inspection, tiles = backend.store.get(report.id), backend.tiles
            for label, scale in wanted.items():
                ask, window = LayerAsk("defect_map", label), crop_window(Grid(WIDTH, HEIGHT), BOX, 512)
                data, _ = await tiles.cut(inspection, ask, window, here)
                found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
                left, top, right, bottom = BOX
                drawn = upsample(scale.astype(np.float32), HEIGHT, WIDTH)[top:bottom, left:right]
                # To a step of the colour table.
                low, high = (look_up(DEFECT_RGBA, drawn + step)[..., 3] for step in (-0.004, 0.004))
                assert ((found[..., 3] >= low) & (found[..., 3] <= high)).all(), label
            laid = await asyncio.gather(*(tiles._reference(inspection) for _ in range(5)))
            asked = await asyncio.gather(*(tiles._board(inspection) for _ in range(5)))
            assert len({id(pyramid) for pyramid in laid}) == len({id(pyramid) for pyramid in asked}) == 1
            await asyncio.gather(*tiles._behind)

    asyncio.run(run())
