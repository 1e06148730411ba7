"""`inspect-vit models`: the versions of the service, and which one inspects. A running service follows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from inspect_vit.cli_gate import parse_renamed
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
    apart = {"history", "gate", "report", "overrides"}
    for name, value in report.model_dump(mode="json", exclude=apart).items():
        facts.add_row(name, _plain(", ".join(value) if isinstance(value, list) else str(value)))
    for event in report.overrides:
        where = f"recipe {event.recipe!r}" if event.recipe else "boards whose recipe pins no version"
        facts.add_row("by override", _plain(f"{where}: {event.actor or 'somebody'}, {event.reason}"))
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
            help="Why it goes into production although the gate does not pass, cannot judge or is not run; "
            "kept in the audit trail. Default: the gate decides."
        ),
    ] = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="A class that the version has under another name, where its lineage does not say so. "
            "May be repeated.",
        ),
    ] = None,
    retired: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS",
            help="A class that the version has given up, where its lineage does not say so. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the gate's answer. Default: gate-VERSION.")
    ] = None,
) -> None:
    """Run the gate, then put a version into production; a running service swaps without a pause.

    Exit 0: it is in production. 1: the gate failed. 2: it could not judge, or wrong usage. 3: too few boards
    to tell."""
    from inspect_vit.gate_report import EXIT_CODES
    from serving.command_line import person
    from serving.gate_asking import ask_gate, to_replace
    from serving.promotion import promote as put_into_production

    if override is not None and not override.strip():
        raise ConfigError("--override is empty; say why the version goes into production all the same")
    with _store() as (database, home):
        base, answer = to_replace(database, recipe, version), None
        if acceptance and base is not None:
            answer = ask_gate(
                database,
                version,
                recipe=recipe,
                acceptance=acceptance,
                out=out or Path(f"gate-{version}"),
                renamed=parse_renamed(renamed or ()),
                retired=retired or (),
                is_override=override is not None,
            )
        elif base is not None and override is None:
            raise ConfigError(
                "nothing to hold the version against: give --acceptance FOLDER, or --override REASON"
            )
        gate, unjudged = (None, "") if answer is None else (answer.document, answer.unjudged)
        if gate is not None and gate["result"] != "pass" and override is None:
            say(f"the gate said {gate['result']!r}; version {base} stays in production")
            raise typer.Exit(EXIT_CODES[gate["result"]])
        if unjudged and override is not None:
            say(f"the gate could not judge: {unjudged}")
        done = put_into_production(
            database,
            home,
            version,
            recipe=recipe,
            actor=person(),
            gate=gate,
            unjudged=unjudged,
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


def _say_done(done: Any) -> None:
    """done: promotion.Promotion."""
    where = "boards whose recipe pins no version" if done.recipe is None else f"recipe {done.recipe!r}"
    if not done.is_changed:
        text = f"{done.version} is in production for {where} already; nothing was changed"
    else:
        text = f"{done.version} is in production for {where}"
        text += "" if done.replaced is None else f", in place of {done.replaced}"
        text += "" if done.revision is None else f" (revision {done.revision})"
        text += ", by override: the gate did not pass" if done.is_override else ""
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
