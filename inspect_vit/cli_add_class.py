"""`inspect-vit add-class`: teach a model new classes. Heavy parts are imported where they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inspect_vit.cli_data import FormatOption, GroupsOption, ReferencesOption
from inspect_vit.console import say, stdout

EXIT_INTERRUPTED = 130


def add_class(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Classes to add, as the labels of --data call them."),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option("--from", help="Model that is taught. Default: the one shipped with the package."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Boards on which the new defects are labelled, in any label format; one board is enough, "
            "thirty are better. Other defects on them may lack labels."
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            help="Boards with the old classes labelled, which hold what the model knows; they should carry "
            "none of the new defects without a label. Default: boards are drawn."
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW", help="The model's class OLD is called NEW from now on. May be repeated."
        ),
    ] = None,
    retire: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The model forgets this class. May be repeated."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the new model. Default: the old one's with the classes added.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change one setting, as part=fusion, steps=2000 or optim.lr=3e-4; docs/retraining.md lists "
            "them. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the run: model, table, progress, state; made if missing.")
    ] = Path("runs/add-class"),
    format: FormatOption = "auto",
    references: ReferencesOption = None,
    groups: GroupsOption = None,
) -> None:
    """Teach a model new classes from a few labelled boards. Stopped, the same command goes on."""
    from inspect_vit.checkpoint import default_checkpoint
    from inspect_vit.config import changed
    from inspect_vit.errors import ConfigError
    from training.formats.references import parse_groups, parse_references
    from training.incremental import add_class as run
    from training.incremental_config import IncrementalConfig
    from training.incremental_data import Request

    renames = [pair.partition("=") for pair in rename or []]
    if wrong := [f"{old}{sign}{new}" for old, sign, new in renames if not (old and sign and new)]:
        raise ConfigError(f"--rename {wrong[0]!r}; wanted OLD=NEW")
    request = Request(
        base=base or default_checkpoint(),
        add=tuple(names or ()),
        data=data,
        replay=replay,
        rename={old: new for old, _, new in renames},
        retire=tuple(retire or ()),
        name=name,
        format=format,
        references=None if references is None else parse_references(references),
        groups=None if groups is None else parse_groups(groups),
    )
    try:
        checkpoint = run(request, changed(IncrementalConfig(), overrides or []), out=out)
    except KeyboardInterrupt:
        say(f"stopped; the same command goes on from the last state saved in {out}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    stdout().print(f"wrote {checkpoint}", soft_wrap=True)
