"""A PUT of a recipe that leaves something out loses no settings, and a wrong body is told what would do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

ZONE = {"name": "logo", "polygon": [[0, 0], [80, 0], [80, 40]]}


@pytest.fixture
def path(server: Any) -> Iterator[str]:
    yield "/v1/recipes/bodies"
    server.client.delete("/v1/recipes/bodies")


def test_pictures_sent_alone_do_not_wipe_the_settings(server: Any, path: str, reference_png: bytes) -> None:
    picture = ("reference", ("golden.png", reference_png))
    assert server.client.put(path, files=[picture]).json()["recipe"]["ignore"] == [], "a recipe needs none"
    assert server.client.put(path, files=[picture]).status_code == 200, "nothing is lost"
    server.client.put(path, json={"px_per_mm": 48.0, "ignore": [ZONE]})
    refused = server.client.put(path, files=[picture])
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "bad_field")
    assert refused.json()["error"]["message"] == "recipe: missing, and revision 3 of 'bodies' has settings"
    there = server.client.get(path).json()
    assert (there["revision"], there["recipe"]["ignore"]) == (3, [ZONE])
    emptied = server.client.put(path, files=[picture, ("recipe", (None, "{}"))]).json()
    assert (emptied["revision"], emptied["recipe"]["ignore"]) == (4, []), "said outright, it is done"


def test_a_body_of_another_kind_is_told_what_a_recipe_takes(server: Any, path: str) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    refused = server.client.put(path, content='{"px_per_mm": 48}', headers=kind)
    assert (refused.status_code, refused.json()["error"]["code"]) == (415, "not_multipart")
    assert "/v1/recipes/NAME" in refused.json()["error"]["hint"]
    assert "content-type: application/json" in refused.json()["error"]["hint"]


def test_a_zone_off_the_reference_is_refused_and_nothing_is_stored(
    server: Any, path: str, reference_png: bytes
) -> None:
    """The reference is 320 x 256 px."""
    on, off = ([[x, 0], [x + 9, 0], [x + 9, 9]] for x in (319, 320))
    files = {
        "reference": ("top.png", reference_png),
        "recipe": (None, json.dumps({"ignore": [{"polygon": on}]})),
    }
    server.client.put(path, files=files).raise_for_status()
    # Both with the references that are there and with one that comes along.
    settings = {"regions": [{"polygon": on}, {"name": "logo", "polygon": off}]}
    sent = {"reference": ("top.png", reference_png), "recipe": (None, json.dumps(settings))}
    for answer in (server.client.put(path, json=settings), server.client.put(path, files=sent)):
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field"), answer.text
        told = answer.json()["error"]["message"]
        assert told.startswith("recipe: regions.1 ('logo') lies outside the reference, which is 320 x 256 px")
        assert "it spans x 320 to 329 and y 0 to 9" in told
    assert server.client.get(path).json()["recipe"]["regions"] == [], "the first revision stands"
