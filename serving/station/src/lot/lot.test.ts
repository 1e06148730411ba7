import { describe, expect, it } from "vitest";
import type { CallWord, QueueItem, Review } from "../types";
import { around } from "./crop";
import type { LotBoard } from "./gather";
import { outcomeOf, tallyOf } from "./tally";

let last = 0;

function board(item: Partial<QueueItem>, calls: CallWord[] | null = null, more: Partial<Review> = {}): LotBoard {
  const id = String((last += 1));
  const full: QueueItem = {
    id,
    created: "2026-11-30T08:00:00Z",
    verdict: "PASS",
    serial: null,
    recipe: null,
    attempt: 1,
    model_version: "0123",
    score: 0,
    uncertainty: 0,
    num_defects: 0,
    labels: [],
    state: calls ? "done" : "open",
    disposition: null,
    final: null,
    audit: false,
    revision: calls ? 1 : 0,
    links: { thumbnail: "", report: "" },
    ...item,
  };
  const review = calls && {
    inspection: id,
    revision: 1,
    state: full.state,
    calls,
    missed: [],
    checked: true,
    disposition: full.disposition,
    note: "",
    final: full.final,
    hasty: false,
    question: "",
    actor: "li",
    at: null,
    history: [],
    ...more,
  };
  return { item: full, review };
}

const real = { defect: 1, word: "real", label: "short" } as const;
const falseCall = { defect: 2, word: "false_call", label: "open" } as const;

describe("a lot\u2019s figures", () => {
  const boards = [
    board({ serial: "A" }),
    board({ serial: "B", verdict: "FAIL", final: "bad", disposition: "rework" }, [real, falseCall]),
    board({ serial: "B", attempt: 2, final: "good" }, []),
    board({ serial: "C", verdict: "FAIL", final: "good" }, [falseCall]),
    board({ serial: "D", verdict: "FAIL" }),
    board({ serial: "E", verdict: "ERROR" }),
    board({ serial: "F", final: "bad", disposition: "scrap" }, [], {
      missed: [{ label: "scratch", box_xyxy: [0, 0, 4, 4], polygon: null }],
    }),
    board({ serial: "G", verdict: "FAIL", final: "good" }, [falseCall], { hasty: true }),
    board({ serial: null }),
  ];
  const tally = tallyOf(boards);

  it("count first attempts that were inspected: A, B, C, D, F, G and the one without a serial", () => {
    expect([tally.first, tally.first_passed]).toEqual([7, 3]);
    // A, C and the one without a serial; F was passed and is bad, G was reviewed too quickly to count.
    expect(tally.first_good).toBe(3);
  });

  it("count each board once, by its newest inspection", () => {
    expect([tally.boards, tally.inspections]).toEqual([8, 9]);
    expect([tally.good, tally.bad, tally.open, tally.not_inspected]).toEqual([4, 1, 2, 1]);
    expect(tally.dispositions).toEqual({ rework: 0, scrap: 1, use_as_is: 0, repaired: 0 });
    expect(tally.verdicts).toEqual({ PASS: 4, FAIL: 4, ERROR: 1 });
  });

  it("count words by class, the classes with real defects first, and no word of a hasty review", () => {
    expect(tally.classes.map((line) => [line.label, line.real, line.missed, line.false_calls])).toEqual([
      ["scratch", 0, 1, 0],
      ["short", 1, 0, 0],
      ["open", 0, 0, 2],
    ]);
  });

  it("believe a finished review before the verdict", () => {
    expect(outcomeOf(board({ verdict: "ERROR", final: "bad" }, []))).toBe("bad");
    expect(outcomeOf(board({ verdict: "PASS" }))).toBe("good");
  });
});

describe("a crop", () => {
  const image = { width: 640, height: 480 };

  it("is square, twice the defect and no smaller than 64 px", () => {
    expect(around([100, 100, 110, 104], image)).toEqual([73, 70, 137, 134]);
    expect(around([100, 100, 200, 150], image)).toEqual([50, 25, 250, 225]);
  });

  it("lies on the board", () => {
    expect(around([0, 470, 10, 480], image)).toEqual([0, 416, 64, 480]);
    expect(around([0, 0, 600, 40], image)).toEqual([0, 0, 640, 480]);
  });
});
