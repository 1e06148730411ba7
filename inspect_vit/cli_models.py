"""`inspect-vit models`: the versions of the service, and which one inspects. A running service follows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from inspect_vit.console import say, stdout
from inspect_vit.errors import ConfigError

app = typer.Typer(
    help="Model versions of the service: list, compare, promote, roll back.",
    no_args_is_help=True,
    add_completion=False,
)

VersionArgument = Annotated[str, typer.Argument(help="12 hex digits, as models list shows them.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RecipeOption = Annotated[
    str | None,
    typer.Option(help="Only boards of this recipe. Default: boards without one or whose recipe pins none."),
]
ReasonOption = Annotated[str, typer.Option(help="Why, for the history. Default: empty.")]


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List all versions, the one added last first."""
    from serving.model_reports import model_reports

    with _store() as (database, _):
        reports = model_reports(database)
    if as_json:
        print(json.dumps([report.model_dump(mode="json") for report in reports], allow_nan=False))
        return
    table = Table("version", "name", "stage", "inspects", "parent", "classes", "added", "by")
    for report in reports:
        inspects = [*(["(no recipe)"] if report.is_default else []), *report.recipes]
        cells = (report.name, report.stage, ", ".join(inspects), report.parent or "")
        more = (str(len(report.classes)), f"{report.added:%Y-%m-%d %H:%M}", report.actor)
        table.add_row(report.version, *(_plain(cell) for cell in (*cells, *more)))
    stdout().print(table)


@app.command()
def show(version: VersionArgument, as_json: JsonOption = False) -> None:
    """Show where a version is from, what it inspects and what became of it."""
    from serving.model_reports import model_report

    with _store() as (database, _):
        report = model_report(database, version)
    if as_json:
        print(report.model_dump_json())
        return
    facts = Table(show_header=False)
    for name, value in report.model_dump(mode="json", exclude={"history", "gate", "report"}).items():
        facts.add_row(name, _plain(", ".join(value) if isinstance(value, list) else str(value)))
    history = Table("when", "who", "what", "recipe", "why")
    for event in report.history:
        deed = f"{event.deed} (override)" if event.override else event.deed
        cells = (event.actor, deed, event.recipe or "", event.reason)
        history.add_row(f"{event.at:%Y-%m-%d %H:%M:%S}", *map(_plain, cells))
    stdout().print(facts, history)
    for line in report.gate.words if report.gate else ():
        stdout().print(line, markup=False)


@app.command()
def add(
    file: Annotated[
        Path | None, typer.Argument(help="Model file (.safetensors). Default: the one that is shipped.")
    ] = None,
    parent: Annotated[
        str | None, typer.Option(help="Version it was made from. Default: as its training record says.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="table.json of inspect-vit add-class, kept with it. Default: none.")
    ] = None,
) -> None:
    """Copy a checkpoint into the service's store, as a candidate; or bring back a damaged version."""
    from inspect_vit.checkpoint import default_checkpoint
    from serving.command_line import person
    from serving.registry import add_version

    report = None if table is None else _read_json(table)
    with _store() as (database, home):
        model = add_version(
            database, home, file or default_checkpoint(), parent=parent, actor=person(), report=report
        )
    stdout().print(f"{model.version} {model.name} is in {home / 'models'}", markup=False, soft_wrap=True)


@app.command()
def compare(
    version: VersionArgument,
    other: Annotated[str, typer.Argument(help="The version to compare with.")],
    as_json: JsonOption = False,
) -> None:
    """Show the figures of two versions side by side."""
    from serving.model_reports import compare_models

    with _store() as (database, home):
        found = compare_models(database, home, version, other)
    if as_json:
        print(found.model_dump_json())
        return
    table = Table("", found.a, found.b)
    for row in found.rows:
        table.add_row(
            *(_plain("" if cell is None else f"{cell}") for cell in (row.figure, row.a, row.b)),
            style="bold" if row.a != row.b else None,
        )
    stdout().print(table)


@app.command()
def promote(
    version: VersionArgument,
    acceptance: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of labelled boards on which the version is held against the one in production. "
            "May be repeated."
        ),
    ] = None,
    recipe: RecipeOption = None,
    reason: ReasonOption = "",
    override: Annotated[
        str | None,
        typer.Option(
            help="Why it goes into production although the gate does not pass or is not run; "
            "kept in the audit trail. Default: the gate decides."
        ),
    ] = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="A class that the version has renamed. May be repeated."),
    ] = None,
    retired: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS", help="A class that the version has given up. May be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the gate's answer. Default: gate-VERSION.")
    ] = None,
) -> None:
    """Run the gate, then put a version into production; a running service swaps without a pause.

    Exit 0: it is in production. 1: the gate failed. 3: too few boards to tell."""
    from inspect_vit.gate_report import EXIT_CODES
    from serving.command_line import person
    from serving.config import from_environment
    from serving.gate_command import gate_command
    from serving.promotion import promote as put_into_production

    if override is not None and not override.strip():
        raise ConfigError("--override is empty; say why the version goes into production all the same")
    with _store() as (database, home):
        gate = None
        base = _to_replace(database, recipe, version)
        if acceptance and base is not None:
            folder = out or Path(f"gate-{version}")
            command = gate_command(
                database,
                from_environment(os.environ),
                version,
                recipe=recipe,
                acceptance=acceptance,
                out=folder,
                renamed=renamed or (),
                retired=retired or (),
            )
            gate = _run_gate(command, folder)
        elif base is not None and override is None:
            raise ConfigError(
                "nothing to hold the version against: give --acceptance FOLDER, or --override REASON"
            )
        if gate is not None and gate["result"] != "pass" and override is None:
            say(f"the gate said {gate['result']!r}; version {base} stays in production")
            raise typer.Exit(EXIT_CODES[gate["result"]])
        done = put_into_production(
            database,
            home,
            version,
            recipe=recipe,
            actor=person(),
            gate=gate,
            override_reason=override,
            reason=reason,
        )
    _say_done(done)


@app.command()
def rollback(version: VersionArgument, recipe: RecipeOption = None, reason: ReasonOption = "") -> None:
    """Take a version out of production, back to the one before it; a running service swaps at once."""
    from serving.command_line import person
    from serving.promotion import rollback as roll_back

    with _store() as (database, home):
        done = roll_back(database, home, version, recipe=recipe, actor=person(), reason=reason)
    _say_done(done)


@app.command()
def retire(version: VersionArgument, reason: ReasonOption = "") -> None:
    """Flag a version as not to be promoted any more; its files stay, for inspections name it."""
    from serving.command_line import person
    from serving.registry import retire as retire_version

    with _store() as (database, _):
        retire_version(database, version, actor=person(), reason=reason)
    stdout().print(f"{version} is retired")


@contextmanager
def _store() -> Iterator[tuple[Any, Path]]:
    """The database and the home folder that the INSPECT_VIT_* variables name."""
    from serving.command_line import in_plain_words
    from serving.config import from_environment
    from serving.store import Store

    config = from_environment(os.environ)
    with closing(Store(config)) as store, in_plain_words():
        yield store.engine, config.home_dir


def _to_replace(database: Any, recipe: str | None, version: str) -> str | None:
    """The version that would be replaced; None: there is none to compare with, or it is this one."""
    from serving.errors import ModelMismatchError, NotFoundError
    from serving.recipes import get_recipe
    from serving.registry import production

    pins = None if recipe is None else get_recipe(database, recipe).recipe.model_version
    try:
        base = production(database, recipe)
    except (NotFoundError, ModelMismatchError):
        return None
    return None if version == (base if recipe is None else pins) else base


def _run_gate(command: Sequence[str], out: Path) -> dict[str, Any]:
    """What the gate finds, in a process of its own that shows its progress."""
    from inspect_vit.gate_report import EXIT_CODES, JSON_NAME, load_gate

    done = subprocess.run(command, check=False)
    if done.returncode not in EXIT_CODES.values():
        raise ConfigError(f"the gate ended with exit code {done.returncode}; what it said is above")
    return load_gate(out / JSON_NAME).model_dump(mode="json")


def _say_done(done: Any) -> None:
    """done: promotion.Promotion."""
    where = "boards whose recipe pins no version" if done.recipe is None else f"recipe {done.recipe!r}"
    if not done.is_changed:
        text = f"{done.version} is in production for {where} already; nothing was changed"
    else:
        text = f"{done.version} is in production for {where}"
        text += "" if done.replaced is None else f", in place of {done.replaced}"
        text += "" if done.revision is None else f" (revision {done.revision})"
    stdout().print(text, markup=False, soft_wrap=True)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} holds a {type(tree).__name__}, wanted the table of inspect-vit add-class")
    return tree


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
