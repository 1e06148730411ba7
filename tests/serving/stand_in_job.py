"""Stands in for `inspect-vit add-class` and `evaluate --against` as a program that a job starts.

It does what tests of the runner need of a long, resumable process, as home/orders.json says, in seconds:
`data export` is passed on to the real command.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from inspect_vit.cli import main
from inspect_vit.files import write_atomically
from inspect_vit.gate_report import REFUSAL_NAME


def terminated(_: int, __: FrameType | None) -> None:
    sys.exit(143)


def learn(out: Path, home: Path) -> None:
    orders = json.loads((home / "orders.json").read_text())
    state = out / "state.json"
    first = json.loads(state.read_text()) if state.exists() else 0
    print(f"process {os.getpid()} at step {first} in {out}", file=sys.stderr, flush=True)
    (out / "drawn").mkdir(exist_ok=True)
    with (out / "metrics.jsonl").open("a") as log:
        for step in range(first, orders["steps"]):
            if step == orders.get("hangs_at"):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
            if step == orders.get("fails_at"):
                print(orders["words"], file=sys.stderr, flush=True)
                sys.exit(orders.get("code", 2))
            if step == orders.get("dies_at"):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(orders["step_s"])
            write_atomically(state, json.dumps(step + 1).encode())
            progress = {"stage": "learning", "done": step + 1, "total": orders["steps"], "eta_s": 1.5}
            write_atomically(out / "progress.json", json.dumps(progress).encode())
            log.write(json.dumps({"step": step, "centre": 1 / (step + 1), "note": "words"}) + "\n")
            log.flush()
    (out / "table.json").write_text(
        json.dumps({"base": "tiny", "version": "", "classes": [], "minutes": 0.1})
    )
    (out / "learnt.safetensors").write_bytes((home / "candidate.safetensors").read_bytes())


def judge(out: Path, home: Path) -> None:
    orders = json.loads((home / "orders.json").read_text())
    if "refuses" in orders:
        (out / REFUSAL_NAME).write_text(orders["refuses"])
        print(f"error: {orders['refuses']}", file=sys.stderr, flush=True)
        sys.exit(2)
    (out / "gate.json").write_text((home / "gate.json").read_text())
    sys.exit(
        {"pass": 0, "fail": 1, "insufficient": 3}[json.loads((home / "gate.json").read_text())["result"]]
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "data":
        main(arguments)
    out = Path(arguments[arguments.index("--out") + 1])
    with (out.parent / "arguments.json").open("a") as file:
        file.write(json.dumps(arguments) + "\n")
    signal.signal(signal.SIGTERM, terminated)
    (judge if arguments[0] == "evaluate" else learn)(out, out.parents[2])
