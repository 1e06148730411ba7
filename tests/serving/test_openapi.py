"""/docs.json tells the truth: every route, every schema, what the server answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from serving import (
    accounts,
    alarm_routes,
    challenge_routes,
    dataset_routes,
    escape_routes,
    event_routes,
    job_routes,
    line_routes,
    model_routes,
    picture_routes,
    queue_routes,
    recipe_routes,
    review_routes,
    routes,
)
from serving.openapi import openapi_document
from serving.schemas import RENDERED_NAMES
from tests.serving.job_bench import failing_job

WITHOUT_END = {"/v1/events"}
"""Read in its own test."""
ANSWERED_BY_THE_FRAMEWORK = {("/livez", "get"), ("/readyz", "get")}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_route_is_described_and_nothing_else() -> None:
    described = {
        (path, method) for path, methods in openapi_document()["paths"].items() for method in methods
    }
    there = {
        (route.path, method.lower())
        for module in (
            *(routes, accounts, recipe_routes, alarm_routes, challenge_routes, line_routes, model_routes),
            *(review_routes, queue_routes, event_routes, picture_routes, dataset_routes, job_routes),
            *(escape_routes,),
        )
        for route in module.ROUTES
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert described == there | ANSWERED_BY_THE_FRAMEWORK


def test_every_schema_that_is_named_is_there() -> None:
    document = openapi_document()
    named = set(references(document))
    assert named
    for reference in named:
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


def test_the_options_and_pictures_are_spelt_out() -> None:
    schemas = openapi_document()["components"]["schemas"]
    assert schemas["InspectOptions"]["additionalProperties"] is False
    assert schemas["InspectOptions"]["properties"]["include"]["items"]["enum"] == list(RENDERED_NAMES)
    assert {"id", "verdict", "reasons", "defects", "links"} <= set(schemas["InspectionReport"]["required"])


def test_the_server_serves_it_and_every_described_page_answers(
    server: Any, board_png: bytes, reference_png: bytes
) -> None:
    document = server.client.get("/docs.json").json()
    assert document == openapi_document()
    report = server.client.post(
        "/v1/inspect",
        files={"image": board_png, "reference": ("r.png", reference_png)},
        data={"options": '{"min_score": 0}'},
    ).json()
    files = {"reference": ("r.png", board_png)}
    assert server.client.put("/v1/recipes/described", files=files).status_code == 200
    job = failing_job(server.home)
    for path, methods in document["paths"].items():
        if "get" in methods and path not in WITHOUT_END:
            place = {"layer": "image", "level": "0", "column": "0", "row": "0"}
            place |= {"id": report["id"], "name": "described", "version": report["model"]["version"]}
            if path.startswith("/v1/jobs/"):
                place["id"] = job
            query = {"with": place["version"]} if path.endswith("/compare") else None
            query = {"box": "10,10,40,30"} if path.endswith("/spot") else query
            answer = server.client.get(path.format(number="1", **place), params=query)
            assert answer.status_code == 200, path
            described = methods["get"]["responses"]["200"]["content"]
            found = answer.headers["content-type"].partition(";")[0]
            assert found in described or next(iter(described)).endswith("/*"), path
