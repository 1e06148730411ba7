"""Versions are whole or refused, what is promoted went through the gate, and rollback goes back.

Over 300 lines: each promise is tried on the same three versions, in a home that is copied for it.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import delete
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.orm import Session

from inspect_vit.checkpoint import load_checkpoint, read_metadata, save_checkpoint
from inspect_vit.errors import CheckpointError, ConfigError
from inspect_vit.recipe import Recipe
from serving.audit import read_audit
from serving.backup import back_up
from serving.config import ServingConfig
from serving.database import alembic_config
from serving.errors import (
    GateRefusedError,
    ModelRefusedError,
    NotFoundError,
    RevisionConflictError,
    VersionGoneError,
)
from serving.model_reports import compare_models, model_report
from serving.model_stages import shadows_in_force
from serving.model_start import start_with
from serving.model_tables import ModelRow, ShadowRunRow
from serving.promotion import check_put_pin, promote, rollback
from serving.recipes import delete_recipe, get_recipe, put_recipe
from serving.registry import (
    add_version,
    find_model,
    list_models,
    production,
    retire,
    version_file,
)
from serving.restore import restore
from serving.retention import Limits, prune
from serving.roles import Actor, Role
from serving.shadows import is_drawn, set_shadow, shadow_report
from serving.store import Store
from tests.serving.model_versions import ENGINEER, Versions, gate

BOTH = pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def home(versions: Versions, tmp_path: Path) -> Path:
    return shutil.copytree(versions.home, tmp_path / "home")


@pytest.fixture
def store(request: pytest.FixtureRequest, versions: Versions, home: Path) -> Iterator[Store]:
    url = ""
    if getattr(request, "param", "sqlite") == "postgresql":
        url = request.getfixturevalue("postgres").empty()
    with closing(Store(ServingConfig(home=home, database_url=url))) as opened:
        if url:
            versions.fill(opened, home)
        yield opened


@pytest.fixture
def a(versions: Versions) -> str:
    return read_metadata(versions.checkpoints[0]).version


@pytest.fixture
def b(versions: Versions) -> str:
    return read_metadata(versions.checkpoints[1]).version


@pytest.fixture
def c(versions: Versions) -> str:
    return read_metadata(versions.checkpoints[2]).version


def test_a_version_is_kept_as_it_came_and_adding_it_again_changes_nothing(
    store: Store, home: Path, a: str, b: str, c: str, other_checkpoint: Path
) -> None:
    found = find_model(store.engine, b)
    assert (found.name, found.parent, found.actor) == ("other", a, "ada")
    assert version_file(home, b).read_bytes() == other_checkpoint.read_bytes()
    before = {path: path.stat().st_mtime_ns for path in (home / "models" / b).iterdir()}
    again = add_version(store.engine, home, other_checkpoint, actor=Actor("bob", Role.ADMIN))
    assert again == found
    assert {path: path.stat().st_mtime_ns for path in (home / "models" / b).iterdir()} == before
    assert {model.version for model in list_models(store.engine)} == {a, b, c}
    assert not list((home / "models").glob(".*"))
    (_, added) = read_audit(store.engine, limit=9, action="model_added", actor="ada")
    assert (added.object, added.details["parent"]) == (b, a)


@BOTH
def test_many_add_the_same_version_at_once(
    store: Store, home: Path, a: str, b: str, c: str, other_checkpoint: Path
) -> None:
    with Session(store.engine) as session:
        session.execute(delete(ModelRow).where(ModelRow.version == b))
        session.commit()
    shutil.rmtree(home / "models" / b)
    found: list[str] = []

    def work() -> None:
        found.append(add_version(store.engine, home, other_checkpoint, actor=ENGINEER).version)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 4
    version_file(home, found[0])
    assert {path.name for path in (home / "models").iterdir()} == {a, b, c}


def test_a_version_never_changes_its_thresholds(
    store: Store, home: Path, b: str, other_checkpoint: Path, tmp_path: Path
) -> None:
    model, metadata = load_checkpoint(other_checkpoint)
    thresholds: Any = {mode: dict.fromkeys(limits, 0.9) for mode, limits in metadata.thresholds.items()}
    save_checkpoint(tmp_path / "x.safetensors", model, name="x", thresholds=thresholds, training={})
    with pytest.raises(ModelRefusedError, match="other thresholds"):
        add_version(store.engine, home, tmp_path / "x.safetensors", actor=ENGINEER)
    assert version_file(home, b).read_bytes() == other_checkpoint.read_bytes()


def test_what_is_no_checkpoint_is_not_added(store: Store, home: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no checkpoint")
    for path in (tmp_path / "x", tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match=path.name):
            add_version(store.engine, home, path, actor=ENGINEER)
    assert len(list((home / "models").iterdir())) == 3


def _flip(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a byte flipped": _flip,
    "cut short": _truncate,
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "no model": lambda folder: (folder / "model.safetensors").unlink(),
    "half a manifest": lambda folder: (folder / "manifest.json").write_text('{"format": 1,'),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_version_is_refused_the_old_one_stays_and_adding_it_again_repairs(
    store: Store, home: Path, a: str, b: str, other_checkpoint: Path, damage: str
) -> None:
    DAMAGE[damage](home / "models" / b)
    with pytest.raises(ModelRefusedError, match=f"{b} is corrupt"):
        promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    assert production(store.engine) == a
    add_version(store.engine, home, other_checkpoint, actor=ENGINEER)
    promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    assert production(store.engine) == b
    _flip(home / "models" / b)
    with pytest.raises(ModelRefusedError) as told:
        start_with(store.engine, home, None)
    assert f"inspect-vit models rollback {b}" in told.value.hint
    assert rollback(store.engine, home, b, recipe=None, actor=ENGINEER, reason="corrupt").version == a
    assert start_with(store.engine, home, None) == a


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda a, b: None, "has not been through the gate"),
        (lambda a, b: gate(a, b, "fail"), "said 'fail'.*fail: spur"),
        (lambda a, b: gate(a, b, "insufficient"), "said 'insufficient'"),
        (lambda a, b: gate("0" * 12, b), "compared with model version 0000"),
        (lambda a, b: gate(a, a), "is about model version"),
        (lambda a, b: gate(a, b, recipe="r"), "is about recipe r, wanted None"),
    ],
)
def test_without_a_gate_that_passed_nothing_is_promoted_but_by_override(
    store: Store, home: Path, a: str, b: str, make: Callable[[str, str], Any], words: str
) -> None:
    with pytest.raises(GateRefusedError, match=words):
        promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=make(a, b))
    assert production(store.engine) == a
    assert not read_audit(store.engine, limit=9, action="model_promoted")
    promote(
        store.engine, home, b, recipe=None, actor=ENGINEER, gate=make(a, b), override_reason="line is down"
    )
    assert production(store.engine) == b
    (entry,) = read_audit(store.engine, limit=9, action="model_promoted")
    assert (entry.actor, entry.object, entry.details["override"]) == ("ada", b, True)
    assert entry.details["reason"] == "line is down"


def test_promoting_what_is_in_production_changes_nothing(store: Store, home: Path, a: str, b: str) -> None:
    assert promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b)).is_changed
    entries = read_audit(store.engine, limit=99)
    done = promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=None)
    assert (done.is_changed, done.version) == (False, b)
    assert read_audit(store.engine, limit=99) == entries


@BOTH
def test_of_two_promotions_at_once_one_is_told(store: Store, home: Path, a: str, b: str, c: str) -> None:
    together, told = threading.Barrier(2), []

    def work(version: str) -> None:
        together.wait()
        try:
            promote(store.engine, home, version, recipe=None, actor=ENGINEER, gate=gate(a, version))
        except (RevisionConflictError, GateRefusedError):
            told.append(version)

    threads = [threading.Thread(target=work, args=(version,)) for version in (b, c)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (refused,) = told
    assert production(store.engine) == ({b, c} - {refused}).pop()


@BOTH
def test_rollback_goes_back_step_by_step_and_never_to_what_was_rolled_back(
    store: Store, home: Path, a: str, b: str, c: str
) -> None:
    promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    promote(store.engine, home, c, recipe=None, actor=ENGINEER, gate=gate(b, c))
    with pytest.raises(ModelRefusedError, match="is not in production"):
        rollback(store.engine, home, b, recipe=None, actor=ENGINEER, reason="")
    assert rollback(store.engine, home, c, recipe=None, actor=ENGINEER, reason="bad").version == b
    assert rollback(store.engine, home, b, recipe=None, actor=ENGINEER, reason="bad too").version == a
    with pytest.raises(ModelRefusedError, match="nothing was in production"):
        rollback(store.engine, home, a, recipe=None, actor=ENGINEER, reason="")
    promote(store.engine, home, c, recipe=None, actor=ENGINEER, gate=gate(a, c))
    assert rollback(store.engine, home, c, recipe=None, actor=ENGINEER, reason="again").version == a
    told = [(event.deed, event.reason) for event in model_report(store.engine, c).history]
    assert told == [
        *(("added", ""), ("promoted", ""), ("rolled back", "bad")),
        *(("promoted", ""), ("rolled back", "again")),
    ]


@BOTH
def test_a_recipe_is_promoted_alone_with_the_calibration_of_its_gate(
    store: Store,
    home: Path,
    a: str,
    b: str,
    tiny_checkpoint: Path,
    make_calibration: Callable[..., Any],
) -> None:
    limits = read_metadata(tiny_checkpoint).thresholds["with_reference"]
    old, new = (make_calibration(limits, version, recipe="r") for version in (a, b))
    put_recipe(store.engine, "r", Recipe(note="mine", calibration=old), (), ENGINEER)
    put_recipe(store.engine, "other", Recipe(), (), ENGINEER)
    document = gate(a, b, recipe="r", calibration=new.model_dump(mode="json"))
    done = promote(store.engine, home, b, recipe="r", actor=ENGINEER, gate=document)
    assert (done.replaced, done.revision) == (a, 2)
    stored = get_recipe(store.engine, "r")
    assert stored.recipe == Recipe(note="mine", calibration=new, model_version=b)
    assert (production(store.engine, "r"), production(store.engine, "other")) == (b, a)
    assert production(store.engine) == a
    report = model_report(store.engine, b)
    assert (report.stage, report.recipes, report.is_default) == ("production", ("r",), False)
    assert report.gate is not None
    assert report.gate.base.version == a
    done = rollback(store.engine, home, b, recipe="r", actor=ENGINEER, reason="escapes")
    assert (done.version, done.revision) == (a, 3)
    assert get_recipe(store.engine, "r").recipe == Recipe(note="mine", calibration=old)
    delete_recipe(store.engine, "r", ENGINEER)
    assert model_report(store.engine, b).stage == "candidate"


def test_a_recipe_that_changes_meanwhile_is_not_overwritten(
    store: Store, home: Path, a: str, b: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import serving.promotion

    put_recipe(store.engine, "r", Recipe(), (), ENGINEER)
    check = serving.promotion.usable

    def changed_meanwhile(*arguments: Any) -> Any:
        put_recipe(store.engine, "r", Recipe(note="newer"), (), ENGINEER)
        return check(*arguments)

    stored = get_recipe(store.engine, "r")
    monkeypatch.setattr(serving.promotion, "get_recipe", lambda *_: stored)
    monkeypatch.setattr(serving.promotion, "usable", changed_meanwhile)
    with pytest.raises(RevisionConflictError):
        promote(store.engine, home, b, recipe="r", actor=ENGINEER, gate=gate(a, b, recipe="r"))
    assert get_recipe(store.engine, "r").recipe == Recipe(note="newer")
    assert not read_audit(store.engine, limit=9, action="model_promoted"), "the row fell with the revision"


def test_a_recipe_that_names_a_class_the_version_lacks_is_not_promoted(
    store: Store, home: Path, a: str, b: str, c: str
) -> None:
    put_recipe(store.engine, "r", Recipe(px_per_mm=48, min_defect_mm={"scratch": 1.0}), (), ENGINEER)
    with pytest.raises(ConfigError, match="scratch"):
        promote(store.engine, home, b, recipe="r", actor=ENGINEER, gate=gate(a, b, recipe="r"))
    promote(store.engine, home, c, recipe="r", actor=ENGINEER, gate=gate(a, c, recipe="r"))
    assert production(store.engine, "r") == c


def test_storing_a_recipe_does_not_go_round_the_gate(store: Store, home: Path, a: str, b: str) -> None:
    put_recipe(store.engine, "r", Recipe(), (), ENGINEER)
    with pytest.raises(GateRefusedError, match="cannot be moved"):
        check_put_pin(store.engine, "r", Recipe(model_version=b))
    check_put_pin(store.engine, "r", Recipe(model_version=a))
    promote(store.engine, home, b, recipe="r", actor=ENGINEER, gate=gate(a, b, recipe="r"))
    check_put_pin(store.engine, "r", Recipe(model_version=b))


def test_a_version_in_use_is_not_retired_and_a_retired_one_is_not_promoted(
    store: Store, home: Path, a: str, b: str, c: str
) -> None:
    put_recipe(store.engine, "r", Recipe(), (), ENGINEER)
    promote(store.engine, home, b, recipe="r", actor=ENGINEER, gate=gate(a, b, recipe="r"))
    set_shadow(store.engine, home, c, share=0.5, recipe=None, actor=ENGINEER)
    for version, words in ((a, "pins no version"), (b, "inspects recipe r"), (c, "runs beside")):
        with pytest.raises(ModelRefusedError, match=words):
            retire(store.engine, version, actor=ENGINEER, reason="")
    assert model_report(store.engine, c).stage == "shadow"
    rollback(store.engine, home, b, recipe="r", actor=ENGINEER, reason="")
    assert retire(store.engine, b, actor=ENGINEER, reason="superseded").is_retired
    with pytest.raises(ModelRefusedError, match="retired"):
        promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    assert version_file(home, b).is_file(), "its files stay"
    assert model_report(store.engine, b).stage == "retired"


def test_starting_the_same_command_again_undoes_no_promotion(
    store: Store, home: Path, a: str, b: str, tiny_checkpoint: Path, other_checkpoint: Path
) -> None:
    assert start_with(store.engine, home, other_checkpoint) == b
    assert start_with(store.engine, home, tiny_checkpoint) == a, "another checkpoint is meant"
    promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    assert start_with(store.engine, home, tiny_checkpoint) == b
    assert start_with(store.engine, home, None) == b


def test_a_version_whose_folder_is_gone_is_told_from_a_corrupt_one(
    store: Store, home: Path, a: str, b: str
) -> None:
    (home / "models" / b).rename(home / "elsewhere")
    with pytest.raises(VersionGoneError, match="not on this server"):
        version_file(home, b)
    for name in ("../secret", "", "0123456789AB", "nothing"):
        with pytest.raises(NotFoundError):
            version_file(home, name)


def test_what_a_killed_process_left_half_written_is_swept(home: Path) -> None:
    half = home / "models" / ".writing-0123"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    with closing(Store(ServingConfig(home=home))):
        assert not half.exists()
    assert len(list((home / "models").iterdir())) == 3


def test_figures_of_two_versions_stand_side_by_side(store: Store, home: Path, a: str, b: str, c: str) -> None:
    rows = {row.figure: (row.a, row.b) for row in compare_models(store.engine, home, a, c).rows}
    assert rows["name"] == ("tiny", "c")
    assert rows["threshold of open, with reference"] == (0.3, 0.99)
    assert rows["threshold of scratch, with reference"] == (None, 0.0001)


def test_the_boards_of_a_shadow_are_a_fixed_share() -> None:
    ids = [f"{number:032x}" for number in range(4000)]
    drawn = {share: {each for each in ids if is_drawn(each, share)} for share in (0.0, 0.1, 0.3, 1.0)}
    assert len(drawn[0.0]) == 0
    assert len(drawn[1.0]) == 4000
    assert abs(len(drawn[0.1]) - 400) < 100
    assert drawn[0.1] < drawn[0.3]


@BOTH
def test_a_shadow_ends_and_gives_way_to_the_next(store: Store, home: Path, a: str, b: str, c: str) -> None:
    with pytest.raises(ModelRefusedError, match="in production there itself"):
        set_shadow(store.engine, home, a, share=1.0, recipe=None, actor=ENGINEER)
    set_shadow(store.engine, home, b, share=0.25, recipe=None, actor=ENGINEER)
    assert shadow_report(store.engine, b).share == 0.25
    set_shadow(store.engine, home, c, share=1.0, recipe=None, actor=ENGINEER)
    assert (shadow_report(store.engine, b).share, shadow_report(store.engine, c).share) == (0.0, 1.0)
    set_shadow(store.engine, home, b, share=0.0, recipe=None, actor=ENGINEER)
    assert shadow_report(store.engine, c).share == 1.0, "ending one does not end the other"
    set_shadow(store.engine, home, c, share=0.0, recipe=None, actor=ENGINEER)
    assert shadow_report(store.engine, c).recipes == ()
    entries = read_audit(store.engine, limit=9, action="model_shadowed")
    assert [entry.details["share"] for entry in entries] == [0.0, 1.0, 0.25]


@BOTH
def test_what_goes_into_production_or_comes_out_no_longer_runs_beside(
    store: Store, home: Path, a: str, b: str, c: str
) -> None:
    for name in ("follows", "pins"):
        put_recipe(store.engine, name, Recipe(), (), ENGINEER)
    promote(store.engine, home, c, recipe="pins", actor=ENGINEER, gate=gate(a, c, recipe="pins"))
    for recipe in (None, "follows", "pins"):
        set_shadow(store.engine, home, b, share=0.25, recipe=recipe, actor=ENGINEER)
    promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    assert shadow_report(store.engine, b).recipes == ("pins",), "its boards have another version"
    set_shadow(store.engine, home, a, share=0.5, recipe=None, actor=ENGINEER)
    rollback(store.engine, home, b, recipe=None, actor=ENGINEER, reason="escapes")
    assert shadows_in_force(store.engine) == {"pins": (b, 0.25)}
    told = [event.reason for event in model_report(store.engine, b).history if event.deed == "shadow"]
    assert told[-1] == "ended: promoted: it no longer runs beside"
    promote(store.engine, home, b, recipe="pins", actor=ENGINEER, gate=gate(c, b, recipe="pins"))
    rollback(store.engine, home, b, recipe="pins", actor=ENGINEER, reason="escapes")
    assert model_report(store.engine, b).stage == "candidate"
    set_shadow(store.engine, home, b, share=0.25, recipe=None, actor=ENGINEER)
    assert model_report(store.engine, b).stage == "shadow", "whoever wants it there says so again"


@BOTH
def test_the_migration_goes_down_and_up_and_the_folders_stay(
    store: Store, home: Path, a: str, b: str, tiny_checkpoint: Path, boards: Any
) -> None:
    report = boards.report()
    boards.add(store, report)
    kept = store.get(report.id)
    promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    with store.engine.begin() as connection:
        command.downgrade(alembic_config(connection), "0007")
        assert not {"models", "model_stages", "shadow_runs"} & set(sa_inspect(connection).get_table_names())
        command.upgrade(alembic_config(connection), "head")
    assert store.get(report.id) == kept
    assert list_models(store.engine) == []
    assert start_with(store.engine, home, tiny_checkpoint) == a
    assert version_file(home, b).is_file()


def test_a_backup_carries_folders_and_rows_but_nothing_half_written(
    store: Store, home: Path, a: str, b: str, tmp_path: Path
) -> None:
    promote(store.engine, home, b, recipe=None, actor=ENGINEER, gate=gate(a, b))
    (home / "models" / ".writing-1").mkdir()
    (home / "models" / ".writing-1" / "model.safetensors").write_bytes(b"half")
    back_up(ServingConfig(home=home), tmp_path / "x.tar")
    elsewhere = ServingConfig(home=tmp_path / "elsewhere")
    restore(elsewhere, tmp_path / "x.tar")
    with closing(Store(elsewhere)) as restored:
        assert start_with(restored.engine, elsewhere.home_dir, None) == b
        assert model_report(restored.engine, b) == model_report(store.engine, b)
    assert version_file(elsewhere.home_dir, a).read_bytes() == version_file(home, a).read_bytes()
    assert len(list((elsewhere.home_dir / "models").iterdir())) == 3


def test_with_an_inspection_goes_what_a_candidate_said_of_it(
    store: Store, a: str, c: str, boards: Any
) -> None:
    reports = [boards.report(verdict="PASS", days_ago=days) for days in (3.0, None)]
    for report in reports:
        boards.add(store, report)
    said = {"version": c, "verdict": "PASS", "calls": "", "disagreement": False}
    with Session(store.engine) as session:
        session.add_all(ShadowRunRow(inspection=report.id, **said) for report in reports)
        session.commit()
    assert shadow_report(store.engine, c).boards == 2
    prune(store, Limits(keep_days=1.0, keep_bytes=None), pause_s=0.0)
    assert shadow_report(store.engine, c).boards == 1
