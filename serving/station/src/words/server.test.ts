// The English texts are those of the service, written out as it sends them.

import { expect, test } from "vitest";
import { inChinese } from "./server";

test("the reasons of a verdict keep their numbers and names", () => {
  expect(inChinese("3 x mouse_bite")).toBe("mouse_bite × 3");
  expect(inChinese("cannot align: the board is turned by about 7 degrees (limit 5); place it as in the reference")).toBe(
    "无法对齐：板子旋转了 7°（上限 5°）；请按黄金样板的方向放置",
  );
  expect(
    inChinese("a large area of 90 x 80 px at x 200, y 150 does not look like the reference, and no defect class names it"),
  ).toContain("x 200、y 150 处有 90 × 80 px");
});

test("what is said within what is said is translated too", () => {
  expect(inChinese("reference: out of focus: blur effect 0.61 (sharp boards are below 0.55)")).toBe(
    "黄金样板：略微失焦：模糊度 0.61（清晰板低于 0.55）",
  );
  expect(inChinese("recipe locked: challenge board 'known bad': short, spur not called")).toBe(
    "配方已锁定：点检板 known bad：未报出 short, spur",
  );
  expect(
    inChinese(
      "2.5 % of the board was not covered (40 cells of 4 px between x 0 and 16, y 8 and 200): the board is not in the picture there, or there is no reference to compare it with",
    ),
  ).toBe("2.5% 的板面未检测（x 0 至 16、y 8 至 200 之间 40 个 4 px 的单元）：该处不在画面内，或没有黄金样板可对比");
});

test("a longer pattern goes before a shorter one that fits as well", () => {
  expect(
    inChinese("reference: scaled from 4095 to 255, the board from 65535; send both at the same depth and exposure"),
  ).toBe("黄金样板按 4095 缩放到 255，而板图按 65535；请以相同位深和曝光拍摄");
});

test("who is no person has a name in Chinese too", () => {
  expect(inChinese("(service)")).toBe("（服务）");
  expect(inChinese("(command line: root)")).toBe("（命令行：root）");
});

test("what no pattern knows stays as it was said", () => {
  expect(inChinese("something the station has never heard of")).toBe("something the station has never heard of");
  expect(inChinese("recipe locked: a reason by hand")).toBe("配方已锁定：a reason by hand");
});
