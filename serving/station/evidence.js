// Whether the layer on the screen can be believed: one sentence beside the layer buttons.

import { getEvidence } from "/station/api.js";

export class EvidenceLine {
  constructor() {
    this.line = document.getElementById("evidence");
    this.ticket = null;
  }

  /** Test a map of a report, on a defect or on the top call; null shows nothing. */
  async show(report, map, defect) {
    const ticket = (this.ticket = Symbol("evidence"));
    this.say(map && report.defects.length ? "Testing whether this can be believed\u2026" : "");
    if (!map || !report.defects.length) return;
    try {
      const evidence = await getEvidence(report.links.evidence, map, defect);
      if (ticket !== this.ticket) return;
      const [tested] = evidence.maps;
      const on = `Tested on defect ${evidence.defect}, ${evidence.label}`;
      if (tested) this.say(`${on}: ${tested.words}.`, tested.reliable);
      else this.say(evidence.words);
    } catch (error) {
      if (ticket === this.ticket) this.say(`Not tested: ${error.message} ${error.hint ?? ""}`);
    }
  }

  say(words, isReliable = true) {
    this.line.textContent = words;
    this.line.hidden = !words;
    this.line.classList.toggle("doubt", !isReliable);
  }
}
