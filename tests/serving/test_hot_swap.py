"""Promotion and rollback under load lose no board, and every report names the version that made it: with two
servers on one store, a version that is not loaded yet, a damaged one, and a candidate that runs beside."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy.orm import Session

from inspect_vit.checkpoint import read_metadata
from inspect_vit.errors import ConfigError
from inspect_vit.inspector import Inspector
from inspect_vit.recipe import Recipe
from serving.config import ServingConfig
from serving.model_stages import PROMOTED, put_stage
from serving.promotion import promote
from serving.recipes import put_recipe
from serving.run import prepare
from serving.shadows import side_of
from serving.store import Store
from tests.serving.conftest import Server, draw_board, encode
from tests.serving.load import WAIT_S, Line
from tests.serving.model_versions import ENGINEER, Versions, gate

NUM_LINES = 2
"""Clients of each server that post one board after the other."""


@dataclass
class Pair:
    """Two servers on one home; the second keeps one version loaded beside nothing."""

    first: Server
    second: Server
    store: Store
    names: tuple[str, str, str]


@pytest.fixture(scope="module")
def pair(start_server: Any, versions: Versions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    home = shutil.copytree(versions.home, tmp_path_factory.mktemp("pair") / "home")
    with ThreadPoolExecutor(2) as starting:
        started = [starting.submit(start_server, home, None, LOADED_MODELS=kept) for kept in ("3", "1")]
    first, second = (each.result() for each in started)
    with closing(Store(ServingConfig(home=home))) as store:
        names = tuple(read_metadata(path).version for path in versions.checkpoints)
        yield Pair(first, second, store, names)  # type: ignore[arg-type]
    first.stop()
    second.stop()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about in {WAIT_S:g} s"
        time.sleep(0.05)


def is_default(server: Server, version: str) -> bool:
    """Whether a board without a recipe is inspected by a version."""
    answer = server.client.post("/v1/inspect", files={"image": encode(".png", draw_board(seed=3))})
    return bool(answer.json()["model"]["version"] == version)


def test_swaps_under_load_fail_no_board_and_each_names_its_version(pair: Pair, board_png: bytes) -> None:
    a, b, _ = pair.names
    lines = [Line(pair.first), Line(pair.second)]
    deeds: list[tuple[float, float, str, str]] = []
    with ExitStack() as posting:
        for line in lines:
            posting.enter_context(line.posting(board_png, clients=NUM_LINES))
        for old, new in ((a, b), (b, a), (a, b), (b, a)):
            for line in lines:
                line.wait_for(old, since=time.monotonic() - 1.0)
            begun = time.monotonic()
            if new == b:
                promote(pair.store.engine, pair.first.home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
            else:
                body = {"reason": "test"}
                answer = pair.first.client.post(f"/v1/models/{b}/rollback", json=body)
                assert (answer.status_code, answer.json()["version"]) == (200, a)
            ended = time.monotonic()
            for line in lines:
                line.wait_for(new, since=begun)
            deeds.append((begun, ended, old, new))
    assert {status for line in lines for _, _, status, _ in line.answers} == {200}
    for line in lines:
        for number, (begun, ended, old, new) in enumerate(deeds):
            after = deeds[number + 1][0] if number + 1 < len(deeds) else float("inf")
            of_phase = [each for each in line.answers if each[0] >= begun and each[1] < after]
            assert {version for *_, version in of_phase} <= {old, new}
            swapped = min(end for _, end, _, version in of_phase if version == new)
            assert {version for start, _, _, version in of_phase if start > swapped} <= {new}
            if line.server is pair.first and new == a:
                assert {v for start, _, _, v in of_phase if start > ended} <= {a}, (
                    "the answer says it is done"
                )


def test_a_recipe_is_swapped_alone_and_an_old_inspection_is_explained_by_its_own_version(
    pair: Pair, board_png: bytes
) -> None:
    a, b, _ = pair.names
    put_recipe(pair.store.engine, "swapped", Recipe(), (), ENGINEER)
    put_recipe(pair.store.engine, "other", Recipe(), (), ENGINEER)
    for server in (pair.first, pair.second):
        wait_until(lambda server=server: is_default(server, a))

    def version(server: Server, recipe: str) -> str:
        data = {"recipe": recipe} if recipe else {}
        answer = server.client.post("/v1/inspect", files={"image": board_png}, data=data)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["model"]["version"])

    promote(
        pair.store.engine,
        pair.first.home,
        b,
        recipe="swapped",
        actor=ENGINEER,
        gate=gate(a, b, recipe="swapped"),
    )
    for server in (pair.second, pair.first):
        assert version(server, "swapped") == b, "from the moment it is promoted, loaded when it is asked for"
        assert (version(server, "other"), version(server, "")) == (a, a)
        listed = server.client.get("/v1/models").json()["models"]
        found = {each["version"]: (each["stage"], each["recipes"], each["is_default"]) for each in listed}
        assert found[b] == ("production", ["swapped"], False)
        assert found[a] == ("production", ["other"], True)
    made = pair.second.client.post("/v1/inspect", files={"image": board_png}, data={"recipe": "swapped"})
    for server in (pair.second, pair.first):
        assert server.client.get(made.json()["links"]["attention"]).status_code == 200
        assert version(server, "") == a
    body = {"recipe": "swapped", "reason": "test"}
    done = pair.second.client.post(f"/v1/models/{b}/rollback", json=body)
    assert done.json() == {
        **{"recipe": "swapped", "version": a, "replaced": b, "revision": 3, "changed": True},
    }
    assert version(pair.first, "swapped") == a
    again = pair.second.client.post(f"/v1/models/{b}/rollback", json=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "model_refused")


def test_a_damaged_version_never_goes_into_production(pair: Pair, board_png: bytes) -> None:
    a, _, c = pair.names
    folder = pair.first.home / "models" / c
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    put_recipe(pair.store.engine, "lacking", Recipe(model_version="0123456789ab"), (), ENGINEER)
    lacking = pair.first.client.post("/v1/inspect", files={"image": board_png}, data={"recipe": "lacking"})
    assert (lacking.status_code, lacking.json()["error"]["code"]) == (409, "model_not_loaded")
    put_recipe(pair.store.engine, "pinned", Recipe(model_version=c), (), ENGINEER)
    refused = pair.first.client.post("/v1/inspect", files={"image": board_png}, data={"recipe": "pinned"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "model_refused")
    assert f"{c} is corrupt" in refused.json()["error"]["message"]
    # As if it had been damaged after it was promoted.
    with Session(pair.store.engine) as session:
        put_stage(session, c, ENGINEER, deed=PROMOTED, replaced=a)
        session.commit()
    for server in (pair.first, pair.second):
        wait_until(
            lambda server=server: "inspect_vit_model_failures_total 1.0" in server.client.get("/metrics").text
        )
        assert is_default(server, a)
        assert f"model {c} cannot go into production, {a} stays" in server.log.read_text()
    with pytest.raises(ConfigError, match=f"inspect-vit models rollback {c} goes back"):
        prepare(port=3610, environ={"INSPECT_VIT_HOME": str(pair.first.home)})
    back = pair.first.client.post(f"/v1/models/{c}/rollback", json={})
    assert (back.status_code, back.json()["version"]) == (200, a)
    (folder / "model.safetensors").write_bytes(data)


def test_a_candidate_runs_beside_and_what_it_says_otherwise_is_listed(pair: Pair, versions: Versions) -> None:
    a, _, c = pair.names
    body = {"share": 1.0}
    put = pair.first.client.post(f"/v1/models/{c}/shadow", json=body)
    assert (put.status_code, put.json()["share"], put.json()["recipes"]) == (200, 1.0, [None])
    pictures = [draw_board(seed=seed) for seed in (11, 12, 13)]
    time.sleep(1.5)  # Servers look twice a second.
    answers = []
    for number, picture in enumerate(pictures):
        answer = pair.first.client.post(
            "/v1/inspect", files={"image": encode(".png", picture)}, data={"serial": f"shadow {number}"}
        )
        answers.append(answer.json())
    assert {answer["model"]["version"] for answer in answers} == {a}

    def report() -> dict[str, Any]:
        found: dict[str, Any] = pair.first.client.get(f"/v1/models/{c}/shadow").json()
        return found

    wait_until(lambda: report()["boards"] + report()["skipped"] == 3)
    assert report()["boards"] > 0
    sides = {
        name: [side_of(Inspector(path, device="cpu").inspect(picture)) for picture in pictures]
        for name, path in (("production", versions.checkpoints[0]), ("candidate", versions.checkpoints[2]))
    }
    wanted = {
        answer["id"]: {name: sides[name][number].model_dump(mode="json") for name in sides}
        for number, answer in enumerate(answers)
        if sides["production"][number] != sides["candidate"][number]
    }
    assert wanted, "the two versions disagree on these boards"
    found = report()["disagreements"]
    assert {each["inspection"] for each in found} <= set(wanted)
    assert len(found) >= len(wanted) - report()["skipped"]
    serials = {answer["id"]: f"shadow {number}" for number, answer in enumerate(answers)}
    for each in found:
        assert {name: each[name] for name in sides} == wanted[each["inspection"]]
        assert each["serial"] == serials[each["inspection"]]
    ended = pair.first.client.post(f"/v1/models/{c}/shadow", json={"share": 0})
    assert (ended.json()["share"], ended.json()["recipes"]) == (0.0, [])
    refused = pair.first.client.post(f"/v1/models/{a}/shadow", json={"share": 0.5})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "model_refused")
