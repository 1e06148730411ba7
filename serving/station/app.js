// The QA station: wires the form, the viewer, the answer and the list of inspections together.

import { getFile, getInspection, inspect, listInspections, listSamples, newKey } from "/station/api.js";
import { element, inspectionItem, markDefect, showAnswer, size, withdrawAnswer } from "/station/answer.js";
import { EvidenceLine } from "/station/evidence.js";
import { isThere, LAYERS } from "/station/layers.js";
import { wireKeys } from "/station/keys.js";
import { admitted } from "/station/login.js";
import { Viewer } from "/station/viewer.js";

const MAX_TRIES = 5;
const FIRST_LAYER = 3;
const FIRST_OPACITY = 90;

const byId = (id) => document.getElementById(id);
const files = { image: null, reference: null };
let isSample = false;
const state = { report: null, layer: FIRST_LAYER, selected: null, samples: [], nextSample: 0, older: null };
const viewer = new Viewer(select);
const evidence = new EvidenceLine();

// inspect

async function submit() {
  if (!files.image || byId("inspect").disabled) return;
  const board = { ...files, serial: byId("serial").value.trim(), recipe: byId("recipe").value.trim() };
  const key = newKey();
  busy(true);
  withdraw("Inspecting\u2026");
  try {
    for (let tries = 1; ; tries += 1) {
      try {
        say(`Inspecting ${board.image.name} (${(board.image.size / 1e6).toFixed(1)} MB)\u2026`);
        await show(await inspect(board, key));
        break;
      } catch (error) {
        if (error.status !== 503 || tries === MAX_TRIES) throw error;
        await countDown(error.retryAfterSeconds ?? 2);
      }
    }
    await refreshLatest();
  } catch (error) {
    withdraw("NOT INSPECTED");
    fail(error, "The board was not inspected.");
  } finally {
    busy(false);
  }
}

async function countDown(seconds) {
  for (let left = seconds; left > 0; left -= 1) {
    say(`The server is busy; trying again in ${left} s\u2026`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

async function trySample() {
  if (!state.samples.length || byId("sample").disabled) return;
  const sample = state.samples[state.nextSample];
  state.nextSample = (state.nextSample + 1) % state.samples.length;
  try {
    setFile("image", await getFile(sample.image));
    setFile("reference", await getFile(sample.reference));
    byId("serial").value = sample.name;
    isSample = true;
  } catch (error) {
    fail(error, "The sample could not be loaded.");
    return;
  }
  await submit();
}

// show

async function open(id) {
  try {
    await show(await getInspection(id));
  } catch (error) {
    fail(error, "The inspection could not be opened.");
  }
}

async function show(report) {
  state.report = report;
  state.selected = null;
  byId("alert").hidden = true;
  history.replaceState(null, "", `#${report.id}`);
  showAnswer(report, select);
  byId("model").textContent = `${report.model.name} ${report.model.version}`;
  const took = ((report.timings_ms.inference ?? 0) / 1000).toFixed(2);
  say(`${report.serial ?? size(report.image)}: ${report.verdict}, inspected in ${took} s`);
  markOpened();
  layerButtons().forEach((button, index) => (button.disabled = !isThere(LAYERS[index], report)));
  try {
    await viewer.open(report);
    await chooseLayer(layerButtons()[state.layer].disabled ? FIRST_LAYER : state.layer);
  } catch (error) {
    fail(error, "The board's picture could not be loaded.");
  }
}

async function chooseLayer(index) {
  if (!state.report || layerButtons()[index].disabled) return;
  state.layer = index;
  const layer = LAYERS[index];
  layerButtons().forEach((button, other) => button.setAttribute("aria-pressed", other === index));
  viewer.showBoxes(byId("boxes").checked && !layer.drawsBoxes);
  const link = layer.link(state.report.links, state.selected);
  const tested = evidence.show(state.report, layer.map ?? null, state.selected);
  await Promise.all([tested, viewer.showLayer(link, layer.waiting ?? "Loading\u2026")]);
}

function select(id) {
  const isAgain = state.selected === id;
  state.selected = isAgain ? null : id;
  const defect = state.report.defects.find((other) => other.id === state.selected) ?? null;
  markDefect(state.selected);
  viewer.focus(defect);
  if (isAgain) viewer.fit();
  if (LAYERS[state.layer].map) chooseLayer(state.layer);
}

function step(direction) {
  const number = state.report?.defects.length ?? 0;
  if (!number) return;
  const at = state.selected === null ? (direction > 0 ? 0 : number + 1) : state.selected;
  select(((at - 1 + direction + number) % number) + 1);
}

// list

async function refreshLatest(link) {
  try {
    const page = await listInspections(link);
    const items = page.inspections.map((report) => inspectionItem(report, open));
    if (link) byId("latest").append(...items);
    else byId("latest").replaceChildren(...items);
    state.older = page.next;
    byId("older").hidden = !page.next;
    byId("latest-empty").hidden = byId("latest").children.length > 0;
    markOpened();
  } catch (error) {
    fail(error, "The latest inspections could not be listed.");
  }
}

function markOpened() {
  for (const button of document.querySelectorAll("#latest button")) {
    button.setAttribute("aria-current", button.dataset.id === state.report?.id);
  }
}

// words

function say(words) {
  byId("status").textContent = words;
}

function fail(error, what) {
  say(what);
  const lines = [error.message, error.hint].filter(Boolean).map((line) => element("p", {}, line));
  byId("alert").replaceChildren(element("strong", {}, what), ...lines);
  byId("alert").hidden = false;
}

function busy(isBusy) {
  byId("progress").hidden = !isBusy;
  byId("inspect").disabled = isBusy || !files.image;
  byId("sample").disabled = isBusy;
  if (isBusy) byId("alert").hidden = true;
}

// form

function setFile(field, file) {
  files[field] = file;
  const drop = byId(`drop-${field}`);
  const thumb = drop.querySelector(".thumb");
  thumb.replaceChildren();
  drop.classList.toggle("filled", file !== null);
  drop.querySelector("small").textContent = file?.name ?? drop.dataset.empty;
  if (file) {
    const url = URL.createObjectURL(file);
    const preview = element("img", { alt: "", src: url, onload: () => URL.revokeObjectURL(url) });
    preview.onerror = () => preview.remove(); // TIFF: browsers show no preview
    thumb.append(preview);
  }
  byId("inspect").disabled = !files.image;
}

function wireFile(field) {
  const input = byId(field);
  byId(`drop-${field}`).dataset.empty = byId(`drop-${field}`).querySelector("small").textContent;
  input.addEventListener("change", () => input.files.length && choose(field, input.files[0]));
  wireDrop(byId(`drop-${field}`), field);
}

function wireDrop(drop, field) {
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) choose(field, event.dataTransfer.files[0]);
  });
}

/** A picture that the operator chose. Serial and samples of the board before do not pass to this one. */
function choose(field, file) {
  if (field === "image") byId("serial").value = "";
  if (isSample) setFile(field === "image" ? "reference" : "image", null);
  isSample = false;
  setFile(field, file);
  withdraw("Not inspected yet");
}

/** Nothing on the screen may be taken for the answer to another board. */
function withdraw(words) {
  if (byId("answer").hidden) return;
  state.report = null;
  state.selected = null;
  withdrawAnswer(words);
  viewer.close();
  evidence.say("");
  layerButtons().forEach((button) => (button.disabled = true));
  markOpened();
  say(words);
}

function clearForm() {
  byId("intake").reset();
  isSample = false;
  withdraw("Not inspected yet");
  setFile("image", null);
  setFile("reference", null);
}

function layerButtons() {
  return [...document.querySelectorAll("#layers button")];
}

function setOpacity(percent) {
  byId("opacity").value = percent;
  viewer.setOpacity(byId("opacity").value / 100);
}

const KEYS = {
  enter: submit,
  "[": () => setOpacity(Number(byId("opacity").value) - 10),
  "]": () => setOpacity(Number(byId("opacity").value) + 10),
  j: () => step(1),
  k: () => step(-1),
  f: () => viewer.fit(),
  "+": () => viewer.zoom(1.4),
  "-": () => viewer.zoom(1 / 1.4),
  b: () => byId("boxes").click(),
  s: trySample,
};
LAYERS.forEach((layer, index) => (KEYS[(index + 1) % 10] = () => chooseLayer(index)));

function wire() {
  wireFile("image");
  wireFile("reference");
  wireDrop(byId("stage"), "image");
  byId("layers").append(
    ...LAYERS.map((layer, index) =>
      element(
        "button",
        { type: "button", "aria-pressed": String(index === FIRST_LAYER), disabled: true },
        layer.name,
        element("kbd", {}, String((index + 1) % 10)),
      ),
    ),
  );
  layerButtons().forEach((button, index) => button.addEventListener("click", () => chooseLayer(index)));
  byId("intake").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  byId("clear").addEventListener("click", clearForm);
  byId("sample").addEventListener("click", trySample);
  byId("older").addEventListener("click", () => refreshLatest(state.older));
  byId("opacity").addEventListener("input", (event) => setOpacity(event.target.value));
  byId("boxes").addEventListener("change", () => {
    viewer.showBoxes(byId("boxes").checked && !LAYERS[state.layer].drawsBoxes);
  });
  byId("fit").addEventListener("click", () => viewer.fit());
  byId("zoom-in").addEventListener("click", () => viewer.zoom(1.4));
  byId("zoom-out").addEventListener("click", () => viewer.zoom(1 / 1.4));
  for (const type of ["dragover", "drop"]) window.addEventListener(type, (event) => event.preventDefault());
  setOpacity(FIRST_OPACITY);
  wireKeys(KEYS, (isHeld) => viewer.peek(isHeld));
}

wire();
await admitted().catch((error) => fail(error, "The station could not ask who you are."));
await refreshLatest();
state.samples = await listSamples().catch(() => []);
byId("sample").hidden = !state.samples.length;
if (location.hash.length > 1) await open(location.hash.slice(1));
document.body.dataset.ready = "true";
