import { describe, expect, it } from "vitest";
import { gridOf, shade } from "./grid";
import { bucketOf, periodOf, shiftStart, spanOf } from "./period";
import { floorOfShares, linear, roof, runs, ticks } from "./scale";

const asked = (text: string) => new URLSearchParams(text);
// Local times: the station counts days as the operator's clock does.
const now = new Date(2026, 10, 30, 17, 20);

describe("period", () => {
  it("begins at midnight, today or as many days before as make up the period", () => {
    expect(spanOf(asked("period=today"), now)).toEqual({ since: new Date(2026, 10, 30), until: null });
    expect(spanOf(asked("period=7d"), now).since).toEqual(new Date(2026, 10, 24));
    expect(spanOf(asked("period=30d"), now).since).toEqual(new Date(2026, 10, 1));
    expect(periodOf(asked("period=ever"))).toBe("7d");
  });

  it("takes the shift that is on, the night's from the evening before", () => {
    expect(shiftStart(now)).toEqual(new Date(2026, 10, 30, 14));
    expect(shiftStart(new Date(2026, 10, 30, 14))).toEqual(new Date(2026, 10, 30, 14));
    expect(shiftStart(new Date(2026, 10, 30, 3, 59))).toEqual(new Date(2026, 10, 29, 22));
  });

  it("ends chosen dates with their last day", () => {
    const span = spanOf(asked("period=free&since=2026-11-02&until=2026-11-03"), now);
    expect(span).toEqual({ since: new Date(2026, 10, 2), until: new Date(2026, 10, 4) });
    expect(spanOf(asked("period=free&since=2026-11-02&until=2026-11-01"), now).until).toBeNull();
    expect(spanOf(asked("period=free&since=yesterday"), now).since).toEqual(new Date(2026, 10, 24));
  });

  it("counts by hour while a plot has room for hours", () => {
    expect(bucketOf(spanOf(asked("period=shift"), now), now)).toBe("hour");
    expect(bucketOf(spanOf(asked("period=7d"), now), now)).toBe("day");
  });
});

describe("scale", () => {
  it("writes round steps, without the drift of sums", () => {
    expect(ticks(0.85, 1, 4)).toEqual([0.85, 0.9, 0.95, 1]);
    expect(ticks(0, 1, 10)).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]);
    expect(ticks(3, 3)).toEqual([3]);
  });

  it("leaves room above and below all values", () => {
    expect(roof([0.12, 0.03])).toBe(0.15);
    expect(roof([0])).toBe(1);
    expect(roof([7000])).toBe(7500);
    expect(floorOfShares([0.97, 0.93])).toBe(0.9);
    expect(floorOfShares([])).toBe(0.99);
    expect(floorOfShares([0])).toBe(0);
  });

  it("maps the ends to the ends", () => {
    const y = linear([0.9, 1], [160, 10]);
    expect(y(1)).toBeCloseTo(10);
    expect(y(0.9)).toBeCloseTo(160);
  });

  it("draws no line over a gap", () => {
    expect(runs([1, 2, 0, 0, 3], (value) => value > 0)).toEqual([[1, 2], [3]]);
  });
});

describe("grid", () => {
  it("counts calls by cell and names what is called most there", () => {
    const spot = (x: number, y: number, label: string) => ({ x, y, label, word: null, reference: "" });
    const spots = [spot(5, 5, "open"), spot(9.9, 0, "short"), spot(1, 1, "short"), spot(10, 0, "open"), spot(400, 0, "out")];
    expect(gridOf(spots, { width: 400, height: 200 })).toEqual({
      cell_px: 10,
      cells: [
        { column: 0, row: 0, count: 3, label: "short" },
        { column: 1, row: 0, count: 1, label: "open" },
      ],
    });
  });

  it("has the darkest shade for one call and the brightest for the most", () => {
    expect([1, 2, 4, 8, 16].map((count) => shade(count, 16, 5))).toEqual([0, 1, 2, 3, 4]);
    expect(shade(1, 1, 5)).toBe(4);
  });
});
