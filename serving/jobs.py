"""The table of jobs: what waits, what runs, what came of it. Every change is in the audit trail."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session

from serving.audit import record, utc_now
from serving.config import ServingConfig
from serving.errors import BusyError, JobStateError, NotFoundError
from serving.ids import is_id
from serving.job_files import JobFiles
from serving.job_schemas import ENDED, Job, JobKind, JobLinks, JobResult, JobState, Promotion, RetrainRequest
from serving.job_tables import JobRow
from serving.roles import SERVICE, Actor, Role
from serving.scrubbing import scrubbed

MAX_WAITING = 20
RETRY_S = 60
STOPPING = "cancelled, and being stopped"
ADDED, CANCELLED, RESUMED, ENDED_BY_ITSELF = "job_added", "job_cancelled", "job_resumed", "job_ended"


def add_job(engine: Engine, job: str, request: RetrainRequest | Promotion, actor: Actor) -> None:
    """Put a job at the end of the queue.

    Raises:
        BusyError: MAX_WAITING jobs wait already.
    """
    kind: JobKind = "promote" if isinstance(request, Promotion) else "retrain"
    with Session(engine) as session:
        waiting = session.scalar(select(func.count()).where(JobRow.state == "waiting")) or 0
        if waiting >= MAX_WAITING:
            raise BusyError(
                f"{waiting} jobs are waiting, and there is room for no more",
                retry_after_s=RETRY_S,
                hint="wait until one is done, or cancel one: DELETE /v1/jobs/{id}",
            )
        session.add(
            JobRow(
                id=job,
                kind=kind,
                state="waiting",
                created=utc_now(),
                actor=actor.name or "",
                role=actor.role.value,
                request=request.model_dump_json(),
                reason="",
                cancel_asked=False,
            )
        )
        record(session, actor, ADDED, object_name=job, details={"kind": kind} | _told(request))
        session.commit()


def read_job(engine: Engine, config: ServingConfig, job: str) -> Job:
    """Raises NotFoundError."""
    with Session(engine) as session:
        row = session.get(JobRow, job) if is_id(job) else None
    return job_report(_there(row, job), config)


def list_jobs(
    engine: Engine, config: ServingConfig, *, limit: int, before: str | None = None, state: str | None = None
) -> list[Job]:
    """Up to `limit` jobs, newest first, of those older than the job `before`; without gate and table."""
    query = select(JobRow).order_by(JobRow.id.desc()).limit(limit)
    if before is not None:
        query = query.where(JobRow.id < before)
    if state is not None:
        query = query.where(JobRow.state == state)
    with Session(engine) as session:
        return [job_report(row, config, is_whole=False) for row in session.scalars(query)]


def cancel_job(engine: Engine, job: str, actor: Actor) -> None:
    """End a job that waits, or ask for the end of one that runs; asked again, nothing changes.

    Raises:
        NotFoundError.
        JobStateError: it has ended already.
    """
    with Session(engine) as session:
        waiting = update(JobRow).where(JobRow.id == job, JobRow.state == "waiting")
        is_ended = session.execute(waiting.values(state="cancelled", ended=utc_now())).rowcount  # type: ignore[attr-defined]
        running = update(JobRow).where(JobRow.id == job, JobRow.state == "running", ~JobRow.cancel_asked)
        is_asked = session.execute(running.values(cancel_asked=True, reason=STOPPING)).rowcount  # type: ignore[attr-defined]
        row = _there(session.get(JobRow, job) if is_id(job) else None, job)
        if is_ended or is_asked:
            record(session, actor, CANCELLED, object_name=job)
        elif row.state in ENDED and row.state != "cancelled":
            raise JobStateError(
                f"job {job} is {row.state} already", hint="only one that has not ended can be"
            )
        session.commit()


def resume_job(engine: Engine, job: str, actor: Actor) -> None:
    """Let a job go on that failed or was cancelled; asked again, nothing changes.

    Raises:
        NotFoundError.
        JobStateError: it is done.
    """
    with Session(engine) as session:
        ended = update(JobRow).where(JobRow.id == job, JobRow.state.in_(("failed", "cancelled")))
        again = {"state": "waiting", "ended": None, "reason": "", "cancel_asked": False}
        is_changed = session.execute(ended.values(**again)).rowcount  # type: ignore[attr-defined]
        row = _there(session.get(JobRow, job) if is_id(job) else None, job)
        if is_changed:
            record(session, actor, RESUMED, object_name=job)
        elif row.state == "done":
            raise JobStateError(f"job {job} is done", hint="POST /v1/retrain starts another")
        session.commit()


def running_job(engine: Engine) -> JobRow | None:
    """The one that runs, or ran when its service ended."""
    with Session(engine) as session:
        return session.scalar(select(JobRow).where(JobRow.state == "running").order_by(JobRow.id).limit(1))


def start_next(engine: Engine) -> JobRow | None:
    """The job that has waited longest, running from now on; None: none waits."""
    with Session(engine, expire_on_commit=False) as session:
        row = session.scalar(select(JobRow).where(JobRow.state == "waiting").order_by(JobRow.id).limit(1))
        if row is None:
            return None
        waiting = update(JobRow).where(JobRow.id == row.id, JobRow.state == "waiting")
        if not session.execute(waiting.values(state="running", started=utc_now())).rowcount:  # type: ignore[attr-defined]
            return None  # It was cancelled just now.
        session.commit()
        session.refresh(row)
        return row


def note_dataset(engine: Engine, job: str, fingerprint: str) -> None:
    with Session(engine) as session:
        session.execute(update(JobRow).where(JobRow.id == job).values(dataset=fingerprint))
        session.commit()


def end_job(engine: Engine, job: str, state: JobState, reason: str, result: JobResult | None = None) -> None:
    """What came of the job that ran."""
    with Session(engine) as session:
        row = session.get_one(JobRow, job)
        row.state, row.ended, row.reason, row.cancel_asked = state, utc_now(), reason, False
        row.result = None if result is None else result.model_dump_json()
        details: dict[str, Any] = {"kind": row.kind, "state": state, "reason": reason}
        version = None if result is None else result.version
        record(session, SERVICE, ENDED_BY_ITSELF, object_name=job, details=details, model_version=version)
        session.commit()


def is_cancel_asked(engine: Engine, job: str) -> bool:
    with Session(engine) as session:
        return bool(session.scalar(select(JobRow.cancel_asked).where(JobRow.id == job)))


def ended_beyond(engine: Engine, kept: int) -> list[str]:
    """Jobs that have ended, but for the newest `kept`."""
    query = select(JobRow.id).where(JobRow.state.in_(ENDED)).order_by(JobRow.ended.desc(), JobRow.id.desc())
    with Session(engine) as session:
        return list(session.scalars(query.offset(kept)))


def actor_of(row: JobRow) -> Actor:
    """Who asked for a job: what it changes is done in their name."""
    return Actor(name=row.actor or None, role=Role(row.role))


def job_report(row: JobRow, config: ServingConfig, *, is_whole: bool = True) -> Job:
    """A job as it is answered. is_whole: with gate and table."""
    result = None if row.result is None else JobResult.model_validate_json(row.result)
    if result is not None and not is_whole:
        result = result.model_copy(update={"gate": None, "table": None})
    link = f"/v1/jobs/{row.id}"
    return Job(
        id=row.id,
        kind=next(kind for kind in get_args(JobKind) if kind == row.kind),
        state=next(state for state in get_args(JobState) if state == row.state),
        created=datetime.fromisoformat(row.created),
        started=None if row.started is None else datetime.fromisoformat(row.started),
        ended=None if row.ended is None else datetime.fromisoformat(row.ended),
        actor=row.actor,
        request=json.loads(row.request),
        dataset=row.dataset,
        progress=None if row.started is None else JobFiles(config, row.id).progress(),
        reason=scrubbed(row.reason, config),
        result=result,
        can_resume=row.state in ("failed", "cancelled"),
        links=JobLinks(log=f"{link}/log", curves=f"{link}/curves"),
    )


def _there(row: JobRow | None, job: str) -> JobRow:
    if row is None:
        raise NotFoundError(f"there is no job {job[:40]!r}", hint="GET /v1/jobs lists them")
    return row


def _told(request: RetrainRequest | Promotion) -> dict[str, Any]:
    """What of a request the trail keeps."""
    if isinstance(request, Promotion):
        return request.model_dump(mode="json")
    return request.model_dump(mode="json", include={"base", "add", "rename", "retire", "data", "settings"})
