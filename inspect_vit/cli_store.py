"""`inspect-vit prune`, `backup` and `restore`: the store of the service. Heavy parts are imported where they
are used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from inspect_vit.console import say, stdout


def prune(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")
    ] = False,
    keep_days: Annotated[
        float | None,
        typer.Option(
            help="Delete PASS and reviewed boards older than so many days. "
            "Default: INSPECT_VIT_KEEP_DAYS, else none."
        ),
    ] = None,
    keep_gb: Annotated[
        float | None,
        typer.Option(
            help="Delete the oldest PASS and reviewed boards until the pictures have at most so many GB "
            "(10^9 bytes). Default: INSPECT_VIT_KEEP_GB, else no limit."
        ),
    ] = None,
) -> None:
    """Delete old inspections and their pictures now; never a FAIL or ERROR whose review is not done.

    A running service does so by itself, by the same two settings."""
    from inspect_vit.errors import ConfigError
    from serving.retention import Limits, count_kept, limits_of, plan
    from serving.retention import prune as delete
    from serving.store import Store

    config = _config(keep_days=keep_days, keep_gb=keep_gb)
    limits = limits_of(config)
    if limits == Limits(None, None):
        raise ConfigError("nothing says what to keep; give --keep-days or --keep-gb")
    store = Store(config)
    try:
        done = plan(store, limits) if dry_run else delete(store, limits, pause_s=0.0)
        num_kept = count_kept(store, limits)
    finally:
        store.close()
    stdout().print(f"{'would delete' if dry_run else 'deleted'} {done}", markup=False)
    if num_kept:
        say(f"{num_kept} inspections older than {limits.keep_days:g} days stay: their review is not done")


def backup(
    file: Annotated[Path, typer.Argument(help="Archive to write (.tar); it must not be there yet.")],
) -> None:
    """Write pictures and database of INSPECT_VIT_HOME into one file, while the service runs."""
    from serving.backup import back_up

    contents = back_up(_config(), file)
    for name in contents.missing[:5]:
        say(f"not there, though a row names it: {name}")
    if contents.missing:
        say(f"{len(contents.missing)} files are missing from the home folder and from the backup")
    stdout().print(f"wrote {file}: {_told(contents)}", markup=False, soft_wrap=True)


def restore(
    file: Annotated[Path, typer.Argument(help="Archive that `inspect-vit backup` wrote.")],
    home: Annotated[
        Path,
        typer.Option(help="Folder to restore into; empty or not there yet. The service's INSPECT_VIT_HOME."),
    ],
) -> None:
    """Restore a backup into an empty folder, and into the database of INSPECT_VIT_DATABASE_URL if set."""
    from serving.restore import restore as restore_archive

    contents = restore_archive(_config(home=home), file)
    stdout().print(f"restored {file} into {home}: {_told(contents)}", markup=False, soft_wrap=True)


def _config(**given: Any) -> Any:
    from inspect_vit.config import validate
    from serving.config import ServingConfig, from_environment

    known = {name: value for name, value in given.items() if value is not None}
    config = from_environment(os.environ)
    return validate({**config.model_dump(), **known}, ServingConfig, source="options")


def _told(contents: Any) -> str:
    rows = ", ".join(f"{count} {table}" for table, count in contents.num_rows.items())
    return f"{rows}, {contents.num_files} files, {contents.num_bytes / 1e6:.1f} MB"
