"""Recipes over HTTP: revisions are kept, the reference that fits is used, zones and millimetres follow it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.calibration import Calibration
from inspect_vit.checkpoint import read_metadata
from inspect_vit.image_io import read_image
from tests.serving.conftest import encode

SHIFT = (6.0, -4.0)


@pytest.fixture(scope="module")
def sides(project: Path) -> list[np.ndarray]:
    """Two good boards, 320 x 320."""
    return [
        read_image(project / "data_samples" / f"board_0{n}_temp.png")[0][160:480, 160:480] for n in (1, 2)
    ]


@pytest.fixture(scope="module")
def board(sides: list[np.ndarray]) -> np.ndarray:
    """The second one as the camera sees it: moved by SHIFT, with a spot that is not copper."""
    seen = cv2.warpAffine(
        sides[1],
        np.array([[1, 0, SHIFT[0]], [0, 1, SHIFT[1]]]),
        (320, 320),
        borderMode=cv2.BORDER_REPLICATE,
    )
    cv2.circle(seen, (200, 100), 6, (128, 128, 128), -1)
    return np.asarray(seen)


@pytest.fixture
def name(server: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """A recipe's name that no other test uses; the recipe is taken out of use afterwards."""
    unique = f"panel {abs(hash(request.node.nodeid)) % 10**8}"
    yield unique
    server.client.delete(f"/v1/recipes/{unique}")


def put(
    server: Any, name: str, recipe: dict[str, Any], *references: tuple[str, np.ndarray], **more: Any
) -> Any:
    files = [("reference", (f"{label}.png", encode(".png", picture))) for label, picture in references]
    files.append(("recipe", (None, json.dumps(recipe))))  # type: ignore[arg-type]
    return server.client.put(f"/v1/recipes/{name}", files=files, **more)


def inspect(server: Any, picture: np.ndarray, recipe: str, **more: Any) -> Any:
    files = {"image": encode(".png", picture), **more}
    return server.client.post("/v1/inspect", files=files, data={"recipe": recipe})


def everything(make_calibration: Callable[..., Calibration], checkpoint: Path, name: str) -> dict[str, Any]:
    """A calibration with thresholds so low that random weights call something nearly everywhere."""
    metadata = read_metadata(checkpoint)
    thresholds = dict.fromkeys(metadata.model.class_names, 0.0101)
    made = make_calibration(thresholds, metadata.version, reference_mode="with_reference", recipe=name)
    return made.model_copy(update={"camera": None}).model_dump(mode="json")


def test_every_put_is_a_revision_and_none_is_lost(server: Any, name: str, sides: list[np.ndarray]) -> None:
    first = put(server, name, {"note": "first"}, ("top", sides[0]), headers={"if-none-match": "*"})
    assert (first.status_code, first.json()["revision"], first.headers["etag"]) == (200, 1, '"1"')
    again = put(server, name, {"note": "other"}, ("top", sides[0]), headers={"if-none-match": "*"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "revision_conflict")
    second = server.client.put(f"/v1/recipes/{name}", json={"note": "second"}, headers={"if-match": '"1"'})
    assert second.json()["revision"] == 2
    late = server.client.put(f"/v1/recipes/{name}", json={"note": "late"}, headers={"if-match": '"1"'})
    assert late.status_code == 409
    assert "is for revision 1, and there is revision 2" in late.json()["error"]["message"]
    # settings alone keep the references
    assert [one["name"] for one in second.json()["references"]] == ["top"]
    picture = server.client.get(second.json()["references"][0]["picture"])
    assert picture.content == encode(".png", sides[0])
    assert server.client.get(f"/v1/recipes/{name}").json() == second.json()
    assert server.client.get(f"/v1/recipes/{name}?revision=1").json() == first.json()
    notes = [
        one["recipe"]["note"] for one in server.client.get(f"/v1/recipes/{name}/revisions").json()["recipes"]
    ]
    assert notes == ["second", "first"]
    assert name in [one["name"] for one in server.client.get("/v1/recipes").json()["recipes"]]
    assert server.client.delete(f"/v1/recipes/{name}").status_code == 204
    assert server.client.get(f"/v1/recipes/{name}").status_code == 404
    assert server.client.get(f"/v1/recipes/{name}?revision=1").json() == first.json()
    # a name that is used anew goes on counting, so that a revision means one thing for ever
    assert put(server, name, {}, headers={"if-none-match": "*"}).json()["revision"] == 4


def test_the_reference_that_fits_is_used_named_and_kept_with_the_inspection(
    server: Any, name: str, sides: list[np.ndarray], board: np.ndarray
) -> None:
    put(server, name, {"px_per_mm": 48.0}, ("top", sides[0]), ("bottom", sides[1]))
    report = inspect(server, board, name).json()
    assert (report["recipe"], report["recipe_revision"]) == (name, 1)
    assert report["reference"]["name"] == "bottom"
    assert report["reference"]["shift_px"] == pytest.approx(np.hypot(*SHIFT), abs=0.2)
    assert report["reference"]["residual_mm"] == pytest.approx(
        report["reference"]["residual_px"] / 48.0, abs=1e-4
    )
    assert server.client.get(report["links"]["reference"]).content == encode(".png", sides[1])
    assert server.client.get(f"/v1/inspections/{report['id']}").json() == report


def test_zones_and_millimetres_follow_the_board(
    server: Any,
    name: str,
    sides: list[np.ndarray],
    board: np.ndarray,
    make_calibration: Callable[..., Calibration],
    tiny_checkpoint: Path,
) -> None:
    left_half = {"name": "left", "polygon": [[0, 0], [160, 0], [160, 320], [0, 320]]}
    calibration = everything(make_calibration, tiny_checkpoint, name)
    settings = {"px_per_mm": 40.0, "calibration": calibration}
    put(server, name, settings, ("bottom", sides[1]))
    everywhere = inspect(server, board, name).json()
    assert everywhere["calibration"]["valid"], everywhere["calibration"]
    server.client.put(f"/v1/recipes/{name}", json={**settings, "ignore": [left_half]})
    right = inspect(server, board, name).json()
    assert right["recipe_revision"] == 2
    edge = 160 + SHIFT[0]
    middles = [
        [(one["box_xyxy"][0] + one["box_xyxy"][2]) / 2 for one in report["defects"]]
        for report in (everywhere, right)
    ]
    assert min(middles[0]) < edge - 20
    assert middles[1]
    assert min(middles[1]) > edge - 6
    for defect in right["defects"]:
        x1, y1, x2, y2 = defect["box_xyxy"]
        assert defect["size_mm"] == pytest.approx([(x2 - x1) / 40, (y2 - y1) / 40], rel=0.01, abs=1e-3)
        place = [((x1 + x2) / 2 - SHIFT[0]) / 40, ((y1 + y2) / 2 - SHIFT[1]) / 40]
        assert defect["place_mm"] == pytest.approx(place, abs=0.02)
    all_of_it = {"polygon": [[-9, -9], [400, -9], [400, 400], [-9, 400]]}
    server.client.put(f"/v1/recipes/{name}", json={**settings, "ignore": [all_of_it]})
    nothing = inspect(server, board, name).json()
    assert (nothing["verdict"], nothing["defects"]) == ("ERROR", [])
    assert "all of the board lies in ignore zones" in nothing["reasons"][0]


def test_defects_under_the_least_size_of_their_class_do_not_count(
    server: Any,
    name: str,
    sides: list[np.ndarray],
    board: np.ndarray,
    make_calibration: Callable[..., Calibration],
    tiny_checkpoint: Path,
) -> None:
    calibration = everything(make_calibration, tiny_checkpoint, name)
    settings = {"px_per_mm": 40.0, "calibration": calibration}
    put(server, name, settings, ("bottom", sides[1]))
    found = {one["label"] for one in inspect(server, board, name).json()["defects"]}
    assert found
    least = dict.fromkeys(found, 9.0)
    assert (
        server.client.put(f"/v1/recipes/{name}", json={**settings, "min_defect_mm": least}).status_code == 200
    )
    report = inspect(server, board, name).json()
    assert not found & {one["label"] for one in report["defects"]}


def test_a_reference_is_built_from_good_boards(server: Any, name: str, sides: list[np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    takes = [(sides[1] + rng.normal(0, 10, sides[1].shape)).clip(0, 255).astype(np.uint8) for _ in range(3)]
    files = [("good", (f"{n}.png", encode(".png", take))) for n, take in enumerate(takes)]
    made = server.client.put(f"/v1/recipes/{name}", files=files).json()
    (reference,) = made["references"]
    assert (reference["name"], len(reference["boards"])) == ("median", 3)
    assert all(fit["residual_px"] < 0.3 for fit in reference["boards"])
    other = [*files[:2], ("good", ("other.png", encode(".png", sides[0])))]
    refused = server.client.put(f"/v1/recipes/{name}", files=other)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "image_undecodable")
    assert "good board 3 does not lie on the first" in refused.json()["error"]["message"]
    assert server.client.get(f"/v1/recipes/{name}").json()["revision"] == 1


def test_a_board_that_cannot_be_aligned_is_stored_as_error_by_cause(
    server: Any, name: str, sides: list[np.ndarray]
) -> None:
    put(server, name, {}, ("bottom", sides[1]))
    report = inspect(server, np.ascontiguousarray(sides[1][::-1, ::-1]), name).json()
    assert report["verdict"] == "ERROR"
    assert report["reasons"][0].startswith("upside down")
    assert report["defects"] == []
    assert server.client.get(f"/v1/inspections/{report['id']}").json()["verdict"] == "ERROR"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"px_per_mm": -1}, 422, "px_per_mm"),
        ({"ignore": [{"polygon": [[0, 0], [1, 1]]}]}, 422, "ignore.0.polygon"),
        ({"ignroe": []}, 422, "ignroe"),
        ({"min_defect_mm": {"spur": 0.1}}, 422, "needs px_per_mm"),
        ({"px_per_mm": 1, "min_defect_mm": {"scratch": 0.1}}, 422, "class scratch is not known"),
        ({"px_per_mm": float("nan")}, 422, "px_per_mm"),
        ({"px_per_mm": 48, "min_defect_mm": {"open": float("inf")}}, 422, "min_defect_mm.open"),
        ({"board_mm": [1e999, 3]}, 422, "board_mm.0"),
        ({"ignore": [{"polygon": [[0, 0], [9, 0], [5, 0]]}]}, 422, "encloses 0 px"),
        ({"ignore": [{"polygon": [[0, 0], [9, 9], [9, 0], [0, 9]]}]}, 422, "polygon"),
        ({"regions": [{"polygon": [[0, 0], [10, 10], [10, 0], [0, 4]]}]}, 422, "crosses itself"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    server: Any, name: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = server.client.put(
        f"/v1/recipes/{name}", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]
    assert server.client.get(f"/v1/recipes/{name}").status_code == 404


def test_requests_that_do_not_fit_a_recipe(server: Any, name: str, sides: list[np.ndarray]) -> None:
    unknown = inspect(server, sides[0], "no such recipe")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (422, "bad_field")
    assert "there is no recipe 'no such recipe'" in unknown.json()["error"]["message"]
    put(server, name, {}, ("top", sides[0]))
    both = inspect(server, sides[0], name, reference=encode(".png", sides[0]))
    assert "has 1 of its own" in both.json()["error"]["message"]
    blank = put(server, name, {}, ("blank", np.full((320, 320, 3), 128, np.uint8)))
    assert blank.status_code == 400
    assert "reference 'blank'" in blank.json()["error"]["message"]
    pinned = server.client.put(f"/v1/recipes/{name}", json={"model_version": "0123456789ab"})
    assert (pinned.status_code, pinned.json()["error"]["code"]) == (409, "gate_refused")


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ({"open": 5.0}, "less than or equal to 1"),
        ({"open": -5.0}, "greater than or equal to 0"),
        ({"scratch": 0.5}, "the calibration has thresholds for"),
        (None, "the calibration has thresholds for"),
    ],
)
def test_a_calibration_that_cannot_be_meant_is_refused(
    server: Any,
    name: str,
    make_calibration: Callable[..., Calibration],
    tiny_checkpoint: Path,
    thresholds: dict[str, float] | None,
    words: str,
) -> None:
    calibration = everything(make_calibration, tiny_checkpoint, name)
    if thresholds is None:
        del calibration["thresholds"]["open"]
    else:
        calibration["thresholds"].update(thresholds)
    answer = server.client.put(f"/v1/recipes/{name}", json={"calibration": calibration})
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]["message"]
    assert server.client.get("/v1/recipes").status_code == 200


@pytest.mark.parametrize("bad", ["..", "a%3Fb%23", "%ff", "a%5Cb"])
def test_names_that_make_no_path_are_refused(server: Any, bad: str) -> None:
    answer = server.client.put(f"/v1/recipes/{bad}", json={})
    assert answer.status_code in (404, 405, 422), answer.text


def test_a_reference_that_shows_a_part_gives_way_to_one_that_shows_all(
    server: Any, name: str, sides: list[np.ndarray], board: np.ndarray
) -> None:
    part = np.ascontiguousarray(sides[1][60:-60, 60:-60])
    put(server, name, {}, ("part", part), ("whole", sides[1]))
    assert inspect(server, board, name).json()["reference"]["name"] == "whole"
    put(server, name, {}, ("part", part))
    alone = inspect(server, board, name).json()
    assert alone["verdict"] == "ERROR"
    assert "has nothing to be compared with" in alone["reasons"][0]


def test_only_engineers_change_recipes(guarded: Any) -> None:
    path = "/v1/recipes/guarded panel"
    assert guarded.call("PUT", path, "operator", json={}).status_code == 403
    made = guarded.call("PUT", path, "engineer", json={"note": "mine"})
    assert (made.status_code, made.json()["actor"]) == (200, "engineer")
    assert guarded.call("GET", path, "line").json()["recipe"]["note"] == "mine"
    assert guarded.call("DELETE", path, "line").status_code == 403
    assert guarded.call("DELETE", path, "engineer").status_code == 204
    deeds = [
        (one["action"], one["object"], one["actor"])
        for one in guarded.call("GET", "/v1/audit", "admin").json()["entries"]
    ]
    assert ("recipe_added", "guarded panel", "engineer") in deeds
    assert ("recipe_deleted", "guarded panel", "engineer") in deeds
