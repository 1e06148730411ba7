// The board with one layer and the defect boxes over it: zoom, pan, focus.
// Positions are pixels of the posted image.

import { getPicture } from "/station/api.js";

const SVG = "http://www.w3.org/2000/svg";
const MAX_SCALE = 32;
const PIXELATED_FROM = 3;
const DRAG_FROM = 4; // stage pixels
const FOCUS_SHARE = 0.25; // of the stage that a focused defect fills

export class Viewer {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.stage = document.getElementById("stage");
    this.canvas = document.getElementById("canvas");
    this.board = document.getElementById("board");
    this.layer = document.getElementById("layer");
    this.marks = document.getElementById("marks");
    this.note = document.getElementById("stage-note");
    this.pictures = new Map(); // link -> promise of an object URL
    this.size = { width: 1, height: 1 };
    this.view = { scale: 1, x: 0, y: 0 };
    this.listen();
  }

  /** Show the board of a report with its boxes, fitted. */
  async open(report) {
    this.forgetPictures();
    const ticket = (this.ticket = Symbol("open"));
    this.report = report;
    this.size = report.image;
    for (const element of [this.canvas, this.board, this.layer]) {
      element.style.width = `${report.image.width}px`;
      element.style.height = `${report.image.height}px`;
    }
    this.marks.setAttribute("viewBox", `0 0 ${report.image.width} ${report.image.height}`);
    this.drawMarks(report.defects);
    this.hideLayer();
    this.board.removeAttribute("src");
    document.getElementById("stage-empty").hidden = true;
    this.canvas.hidden = false;
    this.fit();
    const url = await this.picture(`${report.links.image}?format=png`);
    if (ticket !== this.ticket) return;
    this.board.src = url;
    await this.board.decode().catch(() => {});
  }

  /** Take the board away. */
  close() {
    this.ticket = Symbol("close");
    this.report = null;
    this.hideLayer();
    this.forgetPictures();
    this.drawMarks([]);
    this.canvas.hidden = true;
    document.getElementById("stage-empty").hidden = false;
  }

  /** Lay the picture behind a link over the board; null shows the bare board. */
  async showLayer(link, waiting) {
    const ticket = (this.layerTicket = Symbol("layer"));
    if (!link) {
      this.hideLayer();
      return;
    }
    this.say(waiting);
    try {
      const url = await this.picture(link);
      if (ticket !== this.layerTicket) return;
      this.layer.src = url;
      await this.layer.decode().catch(() => {});
      if (ticket !== this.layerTicket) return;
      this.layer.hidden = false;
      this.say("");
    } catch (error) {
      if (ticket !== this.layerTicket) return;
      this.pictures.delete(link);
      this.hideLayer();
      this.say(`${error.message} ${error.hint ?? ""}`);
    }
  }

  hideLayer() {
    this.layerTicket = null;
    this.layer.hidden = true;
    this.say("");
  }

  /** Hide the layer while a key is held. */
  peek(isBare) {
    this.canvas.classList.toggle("bare", isBare);
  }

  setOpacity(share) {
    this.layer.style.opacity = share;
  }

  showBoxes(isShown) {
    this.marks.classList.toggle("hidden", !isShown);
  }

  /** Mark one defect and zoom to it; null unmarks. */
  focus(defect) {
    for (const mark of this.marks.children) {
      mark.classList.toggle("selected", defect !== null && mark.dataset.id === String(defect.id));
    }
    if (!defect) return;
    const [left, top, right, bottom] = defect.box_xyxy;
    const { clientWidth, clientHeight } = this.stage;
    const side = Math.max(right - left, bottom - top, 8);
    const wanted = (FOCUS_SHARE * Math.min(clientWidth, clientHeight)) / side;
    const scale = clamp(wanted, this.fitScale(), MAX_SCALE);
    this.move({
      scale,
      x: clientWidth / 2 - ((left + right) / 2) * scale,
      y: clientHeight / 2 - ((top + bottom) / 2) * scale,
    });
  }

  fit() {
    const scale = this.fitScale();
    const { clientWidth, clientHeight } = this.stage;
    this.move({
      scale,
      x: (clientWidth - this.size.width * scale) / 2,
      y: (clientHeight - this.size.height * scale) / 2,
    });
    this.isFitted = true;
  }

  /** Zoom by a factor around a point of the stage, its centre by default. */
  zoom(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    const scale = clamp(this.view.scale * factor, this.fitScale() / 2, MAX_SCALE);
    const ratio = scale / this.view.scale;
    this.move({ scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio });
  }

  fitScale() {
    const { clientWidth, clientHeight } = this.stage;
    return Math.min(clientWidth / this.size.width, clientHeight / this.size.height) * 0.97;
  }

  move(view) {
    this.view = view;
    this.isFitted = false;
    this.canvas.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
    this.canvas.classList.toggle("pixelated", view.scale >= PIXELATED_FROM);
    this.marks.style.setProperty("--px", `${1 / view.scale}px`); // a screen pixel, whatever the zoom
  }

  drawMarks(defects) {
    this.marks.replaceChildren(
      ...defects.map((defect) => {
        const [left, top, right, bottom] = defect.box_xyxy;
        const group = document.createElementNS(SVG, "g");
        group.dataset.id = defect.id;
        const box = document.createElementNS(SVG, "rect");
        box.setAttribute("x", left);
        box.setAttribute("y", top);
        box.setAttribute("width", Math.max(right - left, 1));
        box.setAttribute("height", Math.max(bottom - top, 1));
        const halo = box.cloneNode();
        halo.classList.add("halo"); // dark around light: seen on every ground
        const number = document.createElementNS(SVG, "text");
        number.setAttribute("x", left);
        number.setAttribute("y", top);
        number.textContent = defect.id;
        group.append(halo, box, number);
        group.addEventListener("click", () => this.onSelect(defect.id));
        return group;
      }),
    );
  }

  picture(link) {
    if (!this.pictures.has(link)) this.pictures.set(link, getPicture(link));
    return this.pictures.get(link);
  }

  forgetPictures() {
    for (const picture of this.pictures.values()) picture.then(URL.revokeObjectURL, () => {});
    this.pictures.clear();
  }

  say(words) {
    this.note.textContent = words ?? "";
    this.note.hidden = !words;
  }

  listen() {
    this.stage.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const bounds = this.stage.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY / 400), event.clientX - bounds.left, event.clientY - bounds.top);
      },
      { passive: false },
    );
    this.stage.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.clientX, y: event.clientY, view: this.view, isMoving: false };
    });
    this.stage.addEventListener("pointermove", (event) => {
      if (!this.drag || !(event.buttons & 1)) return;
      const x = event.clientX - this.drag.x;
      const y = event.clientY - this.drag.y;
      if (!this.drag.isMoving && Math.hypot(x, y) < DRAG_FROM) return; // a click on a box, not a drag
      this.drag.isMoving = true;
      this.stage.setPointerCapture(event.pointerId);
      this.move({ ...this.view, x: this.drag.view.x + x, y: this.drag.view.y + y });
    });
    this.stage.addEventListener("pointerup", () => (this.drag = null));
    this.stage.addEventListener("dblclick", () => this.fit());
    new ResizeObserver(() => this.isFitted && this.fit()).observe(this.stage);
  }
}

function clamp(value, lowest, highest) {
  return Math.min(Math.max(value, lowest), highest);
}
