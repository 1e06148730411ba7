"""A gate that cannot judge, classes that nobody told of, and what an override is remembered by."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from inspect_vit.model import HierarchicalViT
from serving.audit import read_audit
from serving.errors import FieldError, ModelRefusedError, VersionGoneError
from serving.job_schemas import Promotion
from serving.lineage import ClassChanges, class_changes
from serving.model_reports import model_report
from serving.promoting import resolve
from serving.registry import add_version, find_model, production
from tests.serving.job_bench import EVA, Bench

REFUSAL = "the candidate does not know class 'x' of the base, read in {home}/models"


@pytest.fixture
def judged(small_bench: Bench) -> Bench:
    """Half of the boards are acceptance boards."""
    small_bench.config = small_bench.config.model_copy(update={"acceptance_share": 0.5})
    return small_bench


@pytest.fixture
def add(tmp_path: Path, tiny_checkpoint: Path, judged: Bench) -> Callable[..., str]:
    """add(classes, parent=..., **training): a version with the shape of tiny and classes of these names."""
    number = 0

    def made(classes: tuple[str, ...], *, parent: str | None = None, **training: object) -> str:
        nonlocal number
        number += 1
        _, metadata = load_checkpoint(tiny_checkpoint)
        model = HierarchicalViT(metadata.model.model_copy(update={"class_names": classes}))
        limits = dict.fromkeys(classes, 0.5)
        path = tmp_path / f"{number}.safetensors"
        thresholds = {"with_reference": limits, "without_reference": limits}
        save_checkpoint(path, model, name="made", thresholds=thresholds, training=training)  # type: ignore[arg-type]
        home = judged.config.home_dir
        return add_version(judged.store.engine, home, path, parent=parent, actor=EVA).version

    return made


def names(bench: Bench) -> tuple[str, ...]:
    return find_model(bench.store.engine, bench.base).facts.classes


def test_an_override_goes_ahead_where_the_gate_could_not_judge_and_all_is_said(judged: Bench) -> None:
    judged.order(steps=1, step_s=0.01, refuses=REFUSAL.format(home=judged.config.home_dir))
    with judged.running():
        learnt = judged.ended(judged.rename()).result
        assert learnt is not None
        refused = judged.ended(judged.add(Promotion(version=learnt.version)))
        assert (refused.state, "does not know class 'x'" in refused.reason) == ("failed", True)
        assert production(judged.store.engine) == judged.base
        asked = Promotion(version=learnt.version, override=True, reason="x is not made any more")
        forced = judged.ended(judged.add(asked))
    assert forced.state == "done", forced.reason
    assert forced.result is not None
    assert (forced.result.is_promoted, forced.result.is_override) == (True, True)
    assert forced.result.gate_result is None
    for words in ("by override of eva", "x is not made any more", "could not judge: the candidate does not"):
        assert words in forced.reason
    assert production(judged.store.engine) == learnt.version
    (entry,) = read_audit(judged.store.engine, limit=5, action="model_promoted")
    assert (entry.actor, entry.details["override"], entry.details["gate"]) == ("eva", True, None)
    (said,) = entry.details["gate_words"]
    assert said == REFUSAL.format(home="$INSPECT_VIT_HOME")
    (event,) = model_report(judged.store.engine, learnt.version).overrides
    assert (event.actor, event.recipe, event.reason) == ("eva", None, "x is not made any more")


def test_an_override_goes_ahead_where_the_boards_cannot_be_exported(judged: Bench) -> None:
    with judged.running():
        learnt = judged.ended(judged.rename()).result
        assert learnt is not None
        folder = judged.config.home_dir / "datasets"
        assert not folder.exists(), "another folder is blocked than the one that is written"
        folder.write_text("in the way")
        asked = Promotion(version=learnt.version, override=False, reason="the line stands")
        assert judged.ended(judged.add(asked)).state == "failed"
        assert production(judged.store.engine) == judged.base
        forced = judged.ended(judged.add(asked.model_copy(update={"override": True})))
    assert forced.state == "done", forced.reason
    assert "the gate could not judge: its boards were not exported: " in forced.reason
    assert str(judged.config.home_dir) not in forced.reason
    assert production(judged.store.engine) == learnt.version


def test_an_override_replaces_a_damaged_version_but_never_puts_one_in(judged: Bench) -> None:
    home = judged.config.home_dir
    with judged.running():
        learnt = judged.ended(judged.rename()).result
        assert learnt is not None
        asked = Promotion(version=learnt.version, override=True, reason="the line stands")
        for version, state in ((learnt.version, "failed"), (judged.base, "done")):
            path = home / "models" / version / "model.safetensors"
            whole = path.read_bytes()
            path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
            found = judged.ended(judged.add(asked))
            assert (found.state, f"{version} is corrupt" in found.reason) == (state, True), found.reason
            assert (production(judged.store.engine) == learnt.version) == (state == "done")
            if state == "failed":
                path.write_bytes(whole)


def test_a_version_that_cannot_go_in_is_refused_before_a_job_waits_for_its_turn(judged: Bench) -> None:
    """Also where its lineage, which its own file tells, would be missed first."""
    with judged.running():
        learnt = judged.ended(judged.rename()).result
    assert learnt is not None
    folder = judged.config.home_dir / "models" / learnt.version
    asked = Promotion(version=learnt.version, override=True, reason="the line stands")
    (folder / "manifest.json").unlink()
    for each in (asked, asked.model_copy(update={"override": False})):
        with pytest.raises(ModelRefusedError, match=f"{learnt.version} is corrupt"):
            resolve(judged.store.engine, judged.config, each)
    folder.rename(folder.with_name("moved"))
    with pytest.raises(VersionGoneError, match="is not on this server"):
        resolve(judged.store.engine, judged.config, asked)


def test_the_second_of_two_orders_for_a_version_says_what_the_first_one_did(judged: Bench) -> None:
    """So does a job that goes on after its service was killed between the promotion and its own end."""
    judged.order(steps=1, step_s=0.01, refuses="no matter")
    with judged.running():
        learnt = judged.ended(judged.rename()).result
        assert learnt is not None
        asked = [Promotion(version=learnt.version, override=True, reason=why) for why in ("first", "second")]
        jobs = [judged.add(each) for each in asked]
        first, second = [judged.ended(job) for job in jobs]
    assert first.result is not None
    assert (second.state, second.result) == ("done", first.result)
    assert first.result.is_override
    assert "is in production for boards whose recipe pins none already: promoted" in second.reason
    assert second.reason.endswith("by eva: first")
    assert not (judged.files(jobs[1]).folder / "arguments.json").exists(), "no gate was asked again"
    assert len(read_audit(judged.store.engine, limit=5, action="model_promoted")) == 1


def test_a_class_that_nobody_told_of_is_asked_for_at_once_and_a_word_is_passed_on(
    judged: Bench, add: Callable[..., str]
) -> None:
    first, second, *others = names(judged)
    version = add(("another", *others))
    engine = judged.store.engine
    with pytest.raises(FieldError, match=f"does not know '{first}', '{second}'") as told:
        resolve(engine, judged.config, Promotion(version=version))
    assert f'"retired": ["{first}"]' in told.value.hint
    for wrong, words in (
        (Promotion(version=version, renamed={"nothing": "another"}), "renamed: 'nothing' is no class of"),
        (Promotion(version=version, renamed={first: "nothing"}), "'nothing' is no class of"),
        (Promotion(version=version, retired=("nothing",)), "retired: 'nothing' is no class of"),
        (Promotion(version=version, retired=(first,), renamed={first: "another"}), "say one of the two"),
        (Promotion(version=version, renamed={first: "another", first.upper(): others[0]}), "named twice"),
        (Promotion(version=version, renamed={others[0]: "another"}), f"still knows '{others[0]}'"),
        (Promotion(version=version, retired=(others[0],)), f"still knows '{others[0]}'"),
        (Promotion(version=add(("alien",)), retired=names(judged)), "names all classes of"),
    ):
        # An override would go ahead of the gate that could make nothing of it.
        for is_override in (False, True):
            asked = wrong.model_copy(update={"override": is_override, "reason": "so it is"})
            with pytest.raises(FieldError, match=words):
                resolve(engine, judged.config, asked)
    asked = Promotion(version=version, renamed={first: "another"}, retired=(second,))
    judged.order(steps=1, step_s=0.01, refuses="no matter")
    with judged.running():
        job = judged.add(resolve(engine, judged.config, asked))
        judged.ended(job)
    lines = (judged.files(job).folder / "arguments.json").read_text().splitlines()
    arguments = json.loads(lines[-1])
    options = list(pairwise(arguments))
    assert ("--renamed", f"{first}=another") in options
    assert ("--retired", second) in options


def test_what_a_lineage_tells_needs_no_word_and_a_word_goes_before_it(
    judged: Bench, add: Callable[..., str]
) -> None:
    first, second, third, *others = names(judged)
    middle = add(
        (f"new {first}", second, third, *others), parent=judged.base, renamed={first: f"new {first}"}
    )
    last = add(
        ("newest", third, *others), parent=middle, renamed={f"new {first}": "newest"}, retired=[second]
    )
    engine, home = judged.store.engine, judged.config.home_dir

    def changes(**said: object) -> ClassChanges:
        return class_changes(engine, home, judged.base, last, **{"renamed": {}, "retired": (), **said})  # type: ignore[arg-type]

    assert changes() == ClassChanges({first: "newest"}, (second,))
    assert changes(retired=[first]) == ClassChanges({}, (first, second))
    assert changes(renamed={second: "newest"}) == ClassChanges({first: "newest", second: "newest"}, ())
    assert resolve(engine, judged.config, Promotion(version=last)).version == last
    (home / "models" / middle / "manifest.json").unlink()
    assert changes() == ClassChanges({}, (), (first, second)), "a step that cannot be read tells nothing"
