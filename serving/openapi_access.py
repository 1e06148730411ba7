"""What the OpenAPI document says of keys, roles, sessions and the audit trail."""

from __future__ import annotations

from typing import Any

from serving.access import LEAST_ROLE, OPEN
from serving.openapi_parts import LABEL

SECURITY_SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "inspect_vit_session"},
}
_ANY_SCHEME: list[dict[str, list[str]]] = [{name: []} for name in SECURITY_SCHEMES]


def account_paths() -> dict[str, Any]:
    """The routes of `accounts.py`."""
    return {
        "/v1/session": {
            "post": {
                "summary": "Log in with a key: sets the cookie of the QA station",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/LoginRequest"}}
                    },
                },
                "responses": {
                    "200": _json("SessionReport", "logged in"),
                    "401": _error("the key is unknown or was revoked"),
                    "403": _error("asked for by a page of another site"),
                    "422": _error("the body is not as wanted"),
                    "429": _error("too many logins from this address failed; Retry-After says how long"),
                },
            },
            "get": {
                "summary": "Whose key this is, and its role",
                "responses": {
                    "200": _json("SessionReport", "OK"),
                    "422": _error("it takes no query parameters"),
                },
            },
            "delete": {
                "summary": "Log out",
                "responses": {
                    "204": {"description": "logged out, or was not logged in"},
                    "403": _error("asked for by a page of another site"),
                    "422": _error("it takes no query parameters"),
                },
            },
        },
        "/v1/audit": {
            "get": {
                "summary": "The audit trail, newest first: who did what, when, with which model",
                "parameters": [
                    _query("actor", LABEL, "only what this one did"),
                    _query("action", LABEL, "only this kind of deed"),
                    _query(
                        "before",
                        {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
                        "only entries before this number",
                    ),
                    _query(
                        "limit",
                        {"type": "integer", "minimum": 1, "maximum": 200, "default": 100},
                        "page size",
                    ),
                ],
                "responses": {
                    "200": _json("AuditPage", "OK"),
                    "422": _error("a query parameter with a wrong value; the message names it"),
                },
            }
        },
    }


def add_security(paths: dict[str, Any]) -> None:
    """Say at each operation which role it takes, and how it refuses others."""
    for (method, path), role in LEAST_ROLE.items():
        operation = paths.get(path, {}).get(method.lower())
        if operation is None:
            continue
        if role is OPEN:
            operation["security"] = []
            continue
        operation["security"] = _ANY_SCHEME
        operation["description"] = f"Takes the role {role} or above."
        operation["responses"] |= {
            "401": _error("no key or session, or one that does not work"),
            "403": _error("the key's role may not do this, or a page of another site asked for it"),
        }


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _json(schema: str, description: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}


def _error(description: str) -> dict[str, Any]:
    return _json("ErrorReport", description)
