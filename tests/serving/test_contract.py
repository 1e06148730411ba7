"""What /docs.json says holds for requests that nobody thought of: schemathesis makes them from it, some as
described and some not, and no answer is a 500, undescribed, or of another shape than described."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks as openapi_checks
from schemathesis.transport.serialization import Binary

from serving.openapi import openapi_document
from tests.serving.conftest import GuardedServer
from tests.serving.job_bench import failing_job

NUM_EXAMPLES = 9
"""Requests to each operation: a third as described, with parameters that lead somewhere and a real picture, a
third as described, a third not."""
CHECKS = [
    not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.unsupported_method,
]
OF_MADE_UP_REQUESTS = [openapi_checks.negative_data_rejection]
"""Where we put a picture in, the request is no longer what schemathesis knows it for."""
WITHOUT_SUCCESS = {
    "POST /v1/session",
    "POST /v1/alarms/{id}/acknowledge",
    "POST /v1/inspections/{id}/verifications",
    "POST /v1/inspections/{id}/disposition",
    "PUT /v1/recipes/{name}/challenge",
    "POST /v1/test-results",
    "POST /v1/recipes/{name}/thresholds",
    "GET /v1/inspections/{id}/spot",
    "POST /v1/models/{version}/rollback",
    "POST /v1/models/{version}/retire",
    "POST /v1/models/{version}/shadow",
    "POST /v1/retrain",
    "POST /v1/models/{version}/promote",
    "DELETE /v1/jobs/{id}",
}
"""Their 200 takes what cannot be made up: a key, a drifting line, the newest revision, the model's classes,
a table, a box on the board, a second model version, verified boards, a job that has not ended."""
WITHOUT_END = {"GET /v1/events"}
HEADERS = {"x-forwarded-for": "203.0.113.9"}
"""Failed logins count by address; these must not shut the other tests' address out."""


def described() -> Any:
    schema = schemathesis.openapi.from_dict(openapi_document())
    # Printable labels are the rule, and no made-up key may stand beside the one that works.
    schema.config.generation.update(codec="ascii", with_security_parameters=False)
    return schema


OPERATIONS = [
    operation
    for found in described().get_all_operations()
    if (operation := found.ok()).label not in WITHOUT_END
]


@pytest.fixture(scope="module")
def there(guarded: GuardedServer, board_png: bytes, reference_png: bytes) -> dict[str, str]:
    """Path parameters that lead somewhere."""
    files = {"reference": ("top.png", reference_png)}
    guarded.call("PUT", "/v1/recipes/contract", "admin", files=files).raise_for_status()
    files = {"image": ("board.png", board_png), "reference": ("top.png", reference_png)}
    every_call = {"options": '{"min_score": 0}'}
    answer = guarded.call("POST", "/v1/inspect", "admin", files=files, data=every_call)
    place = {"layer": "image", "level": "0", "column": "0", "row": "0"}
    report = answer.raise_for_status().json()
    place |= {"id": report["id"], "version": report["model"]["version"]}
    return {"name": "contract", "number": "1", "job": failing_job(guarded.server.home), **place}


def with_picture(case: Any, picture: Binary) -> Any:
    """The request with a real board in place of the made-up bytes, of the revision and version there are."""
    if "revision" in (case.query or {}):
        case.query = {"revision": 1}
    if "with" in (case.query or {}):
        case.query = {"with": case.path_parameters["version"]}
    if isinstance(case.body, dict) and "image" in case.body:
        case.body = {name: value for name, value in case.body.items() if name not in ("reference", "recipe")}
        case.body["image"] = picture
    return case


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_as_described(
    guarded: GuardedServer, there: dict[str, str], board_png: bytes, operation: Any
) -> None:
    if "{name}" in operation.path:
        # An operation before this one may have deleted it.
        files = {"recipe": (None, "{}"), "reference": ("top.png", board_png)}
        guarded.call("PUT", "/v1/recipes/contract", "admin", files=files).raise_for_status()
    names = [parameter.name for parameter in operation.path_parameters]
    fitting = operation.as_strategy(
        GenerationMode.POSITIVE,
        path_parameters={
            name: there["job" if operation.path.startswith("/v1/jobs/") and name == "id" else name]
            for name in names
        },
    )
    picture = Binary(board_png)
    wrong = operation.as_strategy(GenerationMode.NEGATIVE)
    headers = {**HEADERS, "x-api-key": guarded.keys["admin"]}
    statuses = []

    @settings(
        max_examples=NUM_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(fitting.map(lambda case: with_picture(case, picture)), fitting, wrong))
    def ask(case: Any) -> None:
        is_ours = isinstance(case.body, dict) and case.body.get("image") is picture
        checks = CHECKS if is_ours else CHECKS + OF_MADE_UP_REQUESTS
        answer = case.call_and_validate(
            str(guarded.server.client.base_url), session=session, headers=headers, checks=checks
        )
        statuses.append(answer.status_code)

    with requests.Session() as session:
        ask()
    # Else nothing was learnt about what it answers when all is well.
    assert operation.label in WITHOUT_SUCCESS or any(status < 300 for status in statuses), statuses


@pytest.mark.parametrize("path", ["/v1/recipes/a%0Ab", "/v1/inspections/%0A", "/a%0A/b"])
def test_a_path_with_a_line_break_is_answered_like_any_other(guarded: GuardedServer, path: str) -> None:
    answer = guarded.call("GET", path, "admin")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_the_frameworks_pages_are_read_only(guarded: GuardedServer, path: str) -> None:
    answer = guarded.call("PUT", path, "admin")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("digits", ["0" * 12 + "1", "1" * 20, "1" * 5000, "\u0663"])
def test_numbers_of_any_length_are_refused_in_words(
    guarded: GuardedServer, there: dict[str, str], digits: str
) -> None:
    path = f"/v1/recipes/{there['name']}"
    answer = guarded.call("GET", path, "admin", params={"revision": digits})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field")
    answer = guarded.call("GET", f"{path}/references/{digits}", "admin")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
