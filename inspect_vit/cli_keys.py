"""`inspect-vit keys` and `inspect-vit audit`: who may use the service, and who did what."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from inspect_vit.console import say, stdout
from inspect_vit.errors import ConfigError

app = typer.Typer(
    help="API keys of the service: make, list, revoke them.", no_args_is_help=True, add_completion=False
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON lines instead of a table.")]


@app.command()
def create(
    role: Annotated[
        str,
        typer.Option(
            help="What the key may do: line (inspect, see its own answers), operator (see all, verify), "
            "engineer (recipes, models), admin (everything). Each may do what the ones before it may."
        ),
    ],
    name: Annotated[
        str, typer.Option(help="Who will use it, as the audit trail will say; used once for ever.")
    ],
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    from serving.command_line import open_database, person
    from serving.keys import create_key
    from serving.roles import Role

    if role not in list(Role):
        raise ConfigError(f"role {role!r}, wanted one of {', '.join(Role)}")
    with open_database() as engine:
        key = create_key(engine, name, Role(role), by=person())
    print(key, flush=True)
    say(f"made the {role} key {name.strip()!r}; it is shown this once. Revoke it with: keys revoke NAME")


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List all keys there ever were, without the keys themselves."""
    from serving.command_line import open_database
    from serving.keys import list_keys

    with open_database() as engine:
        keys = list_keys(engine)
    if as_json:
        for key in keys:
            print(json.dumps(vars(key)))
        return
    table = Table("name", "role", "key begins", "created", "revoked")
    for key in keys:
        table.add_row(_plain(key.name), key.role, f"ivk_{key.id}", key.created, key.revoked or "")
    stdout().print(table)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="Name of the key, as keys list shows it.")]) -> None:
    """End a key and its sessions at once."""
    from serving.command_line import open_database, person
    from serving.keys import revoke_key

    with open_database() as engine:
        key = revoke_key(engine, name, by=person())
    say(f"revoked the {key.role} key {key.name!r}; its next request is answered 401")


def audit(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Newest entries shown, at most.")] = 50,
    actor: Annotated[str | None, typer.Option(help="Only what this one did: the name of a key.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Only this kind of deed, as key_created or session_opened.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the audit trail, newest first: who did what, when, with which model."""
    from serving.audit import read_audit
    from serving.command_line import open_database

    with open_database() as engine:
        entries = read_audit(engine, limit=limit, actor=actor, action=action)
    if as_json:
        for entry in entries:
            print(entry.model_dump_json())
        return
    table = Table("no.", "time", "who", "role", "what", "to what", "details", "model")
    for entry in entries:
        details = ", ".join(f"{key} {value}" for key, value in entry.details.items())
        table.add_row(
            str(entry.id),
            f"{entry.time:%Y-%m-%d %H:%M:%S}",
            *(_plain(text) for text in (entry.actor, entry.role, entry.action, entry.object, details)),
            entry.model_version or "",
        )
    stdout().print(table)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
