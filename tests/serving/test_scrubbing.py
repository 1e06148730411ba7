"""No answer tells where something lies on the server."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from serving.config import ServingConfig
from serving.scrubbing import scrubbed
from tests.serving.conftest import Server

CONFIG = ServingConfig(home=Path("/data/inspect vit"), checkpoint=Path("/models x/new.safetensors"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("no folder /data/inspect vit/models/abc", "no folder $INSPECT_VIT_HOME/models/abc"),
        ("cannot read /srv/secret/place/a.png: gone", "cannot read .../a.png: gone"),
        ("cannot read /models x/new.safetensors", "cannot read new.safetensors"),
        ("GET /v1/models or /station/models shows them", "GET /v1/models or /station/models shows them"),
        ("false calls/board, 2 of 3; image/png", "false calls/board, 2 of 3; image/png"),
    ],
)
def test_folders_go_and_routes_stay(text: str, wanted: str) -> None:
    assert scrubbed(text, CONFIG) == wanted


def test_a_version_whose_folder_is_gone_is_told_without_the_folder(
    start_server: Any, other_checkpoint: Path, tmp_path: Path, board_png: bytes
) -> None:
    """Each route that needs the files of a version, and the list of versions."""
    server: Server = start_server(tmp_path / "home")
    try:
        answers = _answers(server, other_checkpoint, board_png)
    finally:
        server.stop()
    assert {status for status, _ in answers} == {200, 409, 410}
    for _, text in answers:
        assert str(tmp_path) not in text


def _answers(server: Server, checkpoint: Path, board: bytes) -> list[tuple[int, str]]:
    from contextlib import closing

    from inspect_vit.recipe import Recipe
    from serving.recipes import put_recipe
    from serving.registry import add_version
    from serving.store import Store
    from tests.serving.model_versions import ENGINEER

    with closing(Store(ServingConfig(home=server.home))) as store:
        version = add_version(store.engine, server.home, checkpoint, actor=ENGINEER).version
        put_recipe(store.engine, "pinned", Recipe(model_version=version), (), ENGINEER)
    client = server.client
    made = client.post("/v1/inspect", files={"image": board}, data={"recipe": "pinned"})
    assert made.status_code == 200, made.text
    (server.home / "models" / version / "manifest.json").write_text("{")
    other = client.get("/v1/models").json()["models"][-1]["version"]
    found = [client.get(f"/v1/models/{version}/compare", params={"with": other})]
    shutil.rmtree(server.home / "models" / version)
    found += [
        client.get(f"/v1/models/{version}/compare", params={"with": other}),
        client.post(f"/v1/models/{version}/shadow", json={"share": 0.5}),
        client.get("/v1/models"),
    ]
    return [(answer.status_code, json.dumps(answer.json())) for answer in found]


def test_answers_are_made_in_the_places_that_scrub() -> None:
    """Errors become answers in one function; no other file makes an ErrorReport."""
    makers = []
    for path in Path("serving").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        makers += [path.name for func in calls if isinstance(func, ast.Name) and func.id == "ErrorReport"]
    assert makers == ["service.py"]
