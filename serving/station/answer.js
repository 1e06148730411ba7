// Words for a report: verdict, reasons, defects, details; and one line of the list of inspections.

const VERDICTS = {
  PASS: { mark: "\u2713", words: "No defect reached its threshold." },
  FAIL: { mark: "\u2715", words: "" },
  ERROR: { mark: "!", words: "Not inspected: do not pass this board." },
};

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Fill the answer panel; onSelect(id) is called for a clicked defect. */
export function showAnswer(report, onSelect) {
  const { mark, words } = VERDICTS[report.verdict];
  const summary = report.verdict === "FAIL" ? count(report.defects.length, "defect") : words;
  const verdict = document.getElementById("verdict");
  verdict.className = `verdict ${report.verdict.toLowerCase()}`;
  verdict.replaceChildren(
    element("span", { className: "mark", "aria-hidden": "true" }, mark),
    element("strong", {}, report.verdict),
    element("span", {}, summary),
  );
  const warnings = [...report.intake.warnings, ...report.warnings];
  const notes = [...report.reasons, ...warnings.map((warning) => `Note: ${warning}`)];
  document.getElementById("reasons").replaceChildren(...notes.map((note) => element("li", {}, note)));
  document.getElementById("count").textContent = `(${report.defects.length || "none"})`;
  document.getElementById("defects").replaceChildren(
    ...report.defects.map((defect) => element("li", {}, defectButton(defect, onSelect))),
  );
  document.getElementById("details").replaceChildren(...details(report));
  document.getElementById("answer").hidden = false;
  document.getElementById("answer-empty").hidden = true;
}

export function markDefect(id) {
  for (const button of document.querySelectorAll("#defects button")) {
    const isMarked = button.dataset.id === String(id);
    button.setAttribute("aria-pressed", isMarked);
    if (isMarked) button.scrollIntoView({ block: "nearest" });
  }
}

function defectButton(defect, onSelect) {
  const [left, top, right, bottom] = defect.box_xyxy.map(Math.round);
  const button = element(
    "button",
    { type: "button", "aria-pressed": "false", onclick: () => onSelect(defect.id) },
    element("span", { className: "number" }, String(defect.id)),
    element("span", { className: "label" }, defect.label),
    element("span", { className: "score" }, defect.score.toFixed(2)),
    element(
      "small",
      {},
      `${right - left} \u00d7 ${bottom - top} px at ${left}, ${top}; largest gate share ${shares(defect.gate_share)}`,
    ),
  );
  button.dataset.id = defect.id;
  return button;
}

function shares(gateShare) {
  const [[level, share]] = Object.entries(gateShare).sort((one, other) => other[1] - one[1]);
  return `${level} px (${Math.round(100 * share)} %)`;
}

function details(report) {
  const timings = Object.entries(report.timings_ms).map(([stage, spent]) => `${stage} ${spent.toFixed(0)}`);
  const rows = {
    Inspection: report.id,
    Time: new Date(report.created).toLocaleString(),
    Serial: report.serial ?? "none",
    Recipe: report.recipe ? `${report.recipe}, revision ${report.recipe_revision}` : "none",
    Reference: reference(report.reference),
    "Highest score": report.score.toFixed(3),
    Picture: `${size(report.image)}, ${report.intake.format} ${report.intake.mode}`,
    Intake: report.intake.actions.join("; ") || "unchanged",
    Model: `${report.model.name} ${report.model.version}`,
    "Time in ms": timings.join(", "),
  };
  return Object.entries(rows).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
}

function reference(found) {
  if (!found) return "none";
  const name = found.name ? `${found.name}, ` : "";
  if (found.residual_px === null) return `${name}not aligned`;
  return `${name}moved by ${found.shift_px.toFixed(1)} px, ${found.residual_px.toFixed(2)} px left`;
}

export function size(image) {
  return `${image.width} \u00d7 ${image.height} px`;
}

/** Take an earlier board's verdict away: what is on the screen is no answer to what is asked now. */
export function withdrawAnswer(words) {
  const verdict = document.getElementById("verdict");
  verdict.className = "verdict none";
  verdict.replaceChildren(element("strong", {}, words));
  for (const id of ["reasons", "defects", "details"]) document.getElementById(id).replaceChildren();
  document.getElementById("count").textContent = "";
}

/** One line of the list of inspections. */
export function inspectionItem(report, onOpen) {
  const name = report.serial ?? `\u2026${report.id.slice(-6)}`;
  const button = element(
    "button",
    { type: "button", onclick: () => onOpen(report.id) },
    element("span", { className: `chip ${report.verdict.toLowerCase()}` }, report.verdict),
    element("span", { className: "label" }, name),
    element("small", {}, `${when(report.created)}, ${count(report.defects.length, "defect")}`),
  );
  button.dataset.id = report.id;
  return element("li", {}, button);
}

function when(created) {
  const moment = new Date(created);
  const isToday = moment.toDateString() === new Date().toDateString();
  if (!isToday) return moment.toLocaleDateString();
  return moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function count(number, noun) {
  return `${number || "no"} ${noun}${number === 1 ? "" : "s"}`;
}
