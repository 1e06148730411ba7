"""The gate looks at a recipe's boards as the service does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import cv2
import numpy as np
import pytest

from inspect_vit.image_io import read_image
from inspect_vit.recipe import Recipe, Zone
from serving.config import ServingConfig
from serving.framing import frame
from serving.gate_command import gate_command
from serving.goldens import Goldens
from serving.metrics import Metrics
from serving.model_start import start_with
from serving.pictures import PictureFiles
from serving.recipes import ReferenceFile, get_recipe, put_recipe
from serving.registry import add_version
from serving.roles import ANYONE
from serving.store import Store
from tests.serving.verified import HEIGHT, WIDTH, draw_pair
from training.gate_product import does_not_count, place, read_product

SHIFT = (8, 4)
"""(x, y) px by which the board lies in the picture."""
RECIPE = Recipe(
    px_per_mm=10.0,
    ignore=(Zone(name="fiducial", polygon=((100, 100), (180, 100), (180, 180), (100, 180))),),
    min_defect_mm={"short": 1.0},
)


def test_zones_and_smallest_sizes_lie_on_a_moved_board_where_the_service_has_them(
    tmp_path: Path, tiny_checkpoint: Path, other_checkpoint: Path
) -> None:
    home, (_, golden) = tmp_path / "home", draw_pair(4)
    config = ServingConfig(home=home)
    metrics = Metrics()
    goldens = Goldens(
        PictureFiles(home / "recipes", min_free_bytes=0), metrics, max_bytes=10**8, max_pixels=10**7
    )
    with closing(Store(config)) as store:
        sha256, width, height = goldens.add(golden, name="top")
        put_recipe(store.engine, "r", RECIPE, (ReferenceFile("top", sha256, width, height),), ANYONE)
        stored = get_recipe(store.engine, "r")
        start_with(store.engine, home, tiny_checkpoint)
        new = add_version(store.engine, home, other_checkpoint, actor=ANYONE).version
        command = gate_command(store.engine, config, new, recipe="r", acceptance=[Path("x")], out=tmp_path)
        plain = gate_command(store.engine, config, new, recipe=None, acceptance=[Path("x")], out=tmp_path)
    assert "--recipe-settings" not in plain
    told = dict(zip(command[4::2], command[5::2], strict=True))
    product = read_product(Path(told["--recipe-settings"]), [Path(told["--golden"])])
    picture, _ = read_image(golden)
    board = np.roll(picture, SHIFT, (1, 0))
    board[: SHIFT[1]], board[:, : SHIFT[0]] = 210, 210
    cv2.circle(board, (60, 60), 3, (0, 0, 0), -1)
    cv2.circle(board, (240, 60), 8, (0, 0, 0), -1)
    placed, wanted = place(product, board, None), frame(board, None, stored, goldens)
    assert placed.ignore is not None
    assert wanted.ignore is not None
    assert np.array_equal(placed.ignore, wanted.ignore)
    assert placed.min_size_px == wanted.min_size_px == {"short": pytest.approx(10.0, rel=0.01)}
    boxes = np.array(
        [
            [112, 108, 180, 176],  # In the zone, where the board has it.
            [96, 96, 112, 108],  # Outside, though on the reference more of it would lie inside.
            [55, 55, 66, 66],  # A spot of 7 px, and
            [230, 50, 250, 70],  # one of 17 px.
            [55, 55, 66, 66],  # As small, of a class without a smallest size.
        ],
        np.float32,
    )
    labels = ("open", "open", "short", "short", "open")
    assert does_not_count(placed, board, boxes, labels).tolist() == [True, False, True, False, False]
    assert not does_not_count(placed, board, boxes[:0], ()).any()


def test_a_board_that_fits_no_reference_counts_whole(tmp_path: Path) -> None:
    _, golden = draw_pair(4)
    (tmp_path / "golden.png").write_bytes(golden)
    (tmp_path / "recipe.json").write_text(RECIPE.model_dump_json())
    product = read_product(tmp_path / "recipe.json", [tmp_path / "golden.png"])
    board, own = (read_image(data)[0] for data in draw_pair(9))
    other = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    found = [place(product, board, own), place(product, other, None)]
    assert [one.ignore for one in found] == [None, None]
    assert found[0].laid is not None
    assert found[0].laid.picture is not None
    assert found[1].laid is not None
    assert found[1].laid.picture is None
