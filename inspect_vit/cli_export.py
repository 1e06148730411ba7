"""`inspect-vit data export`: what people verified, as a data set. Heavy parts are imported inside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from inspect_vit.console import say, stdout

LONGEST_WAIT_S = 3600.0


def export(
    recipe: Annotated[str | None, typer.Option(help="Only boards of this recipe. Default: all.")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only boards inspected from then on: a day or a time, as 2026-11-30T08:00Z."),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only boards inspected before then.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="Only boards that show a defect of this class. May be repeated. "
            "Default: all, good boards too."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a copy, new or empty. Default: none; the data set is in "
            "INSPECT_VIT_HOME/datasets."
        ),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(help="Name that the data set notes as its maker's. Default: the user of this machine."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write what people verified as a data set: COCO labels, parts train and acceptance.

    Reads INSPECT_VIT_HOME; the service may run. The same boards and labels give the same data set."""
    from inspect_vit.config import validate
    from inspect_vit.errors import ConfigError
    from serving.command_line import person
    from serving.config import from_environment
    from serving.dataset_files import export_dataset
    from serving.dataset_schemas import DatasetFilter
    from serving.roles import Actor, Role
    from serving.store import Store

    asked: dict[str, Any] = {"recipe": recipe, "since": since, "until": until, "labels": tuple(label or ())}
    wanted = validate(asked, DatasetFilter, source="options")
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not an empty folder; give a new one, so that two sets do not mix")
    config = from_environment(os.environ)
    if not (config.home_dir / "pictures").is_dir():
        raise ConfigError(f"there is no store in {config.home_dir}; set INSPECT_VIT_HOME")
    store = Store(config)
    try:
        maker = person() if actor is None else Actor(actor[:100], Role.ADMIN)
        dataset = export_dataset(store, config, wanted, maker, wait_s=LONGEST_WAIT_S)
    finally:
        store.close()
    folder = config.home_dir / dataset.folder
    if out is not None:
        shutil.copytree(folder, out, copy_function=shutil.copyfile, dirs_exist_ok=True)
        folder = out
    if as_json:
        print(dataset.model_dump_json())
        return
    classes = ", ".join(f"{name} {one.train} + {one.acceptance}" for name, one in dataset.classes.items())
    stdout().print(
        f"{dataset.pictures.train} boards to train on, {dataset.pictures.acceptance} for acceptance; "
        f"defects (train + acceptance): {classes or 'none'}",
        markup=False,
        soft_wrap=True,
    )
    for why, count in dataset.left_out.items():
        say(f"left out, {why}: {count}")
    if dataset.references.not_laid:
        say(f"{dataset.references.not_laid} boards are without the reference, which could not be aligned")
    say(f"wrote {folder}")
