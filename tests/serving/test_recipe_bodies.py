"""A PUT of a recipe that leaves something out loses no settings, and a wrong body is told what would do."""

from __future__ import annotations

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
