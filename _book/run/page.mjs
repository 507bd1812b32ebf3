// The cells of a page run in the reader's browser. Started by the element .run-bar, which _book/ext/run_cells.py writes.
import { Cell } from "./cell.mjs";
import { button, h, save } from "./html.mjs";
import { filled } from "./notebook.mjs";
import { count, overview } from "./progress.mjs";
import { Python } from "./python.mjs";
import { Edits, lasts, progress } from "./store.mjs";

const KEYS = "Shift+Enter runs the cell. Tab indents; Escape, then Tab, leaves the editor.";

class Page {
  constructor(bar, elements) {
    const { run, version, page, notebook, cells } = bar.dataset;
    this.hashes = cells.split(" ");
    this.base = new URL(run, location.href);
    Object.assign(this, { bar, version, page, notebook, turn: 0 });
    this.edits = new Edits(page, this.hashes);
    this.python = new Python(this.base, version, (again) => this.say(again ? "Starting Python again …" : "Fetching Python, about 10 MB, once …"));
    this.slug = page.split("/").at(-1);
    this.isExercise = page.startsWith("exercises/");
    this.furnish();
    this.cells = elements.map((element, index) => new Cell(element, index + 1, this));
    this.exercise = { page, questions: this.questions() };
    this.show();
  }

  get runnable() {
    return this.cells?.filter((cell) => cell.runnable);
  }

  furnish() {
    this.status = h("p", { className: "run-status" });
    this.status.setAttribute("role", "status");
    this.allButton = button("Run all", () => (this.busy ? this.stop() : this.runAll()));
    this.allButton.classList.add("run-main");
    this.resetButton = button("Reset all", () => this.resetAll(), { hidden: true });
    this.saveButton = button("Download my notebook", () => this.download());
    this.progress = h("span", { className: "run-count" });
    this.old = h("p", { className: "run-old", hidden: true });
    const buttons = h("div", { className: "run-buttons" }, this.allButton, this.resetButton, this.saveButton, this.progress);
    this.bar.replaceChildren(buttons, this.status, this.old, h("p", { id: "run-keys", hidden: true }, KEYS));
    const which = document.querySelector("article .tag_native-only") ? "Cells with a Run button" : "The cells";
    this.say(`${which} run in your browser. Press Run, or click into the code to change it.`);
    this.offerOld();
  }

  /** {question: hash of its cell} of an exercise. */
  questions() {
    const found = {};
    if (this.isExercise)
      this.cells.forEach((cell, index) => {
        for (const [, name] of cell.published.matchAll(/^check\(["'](\w+)["']\)/gm)) found[name] = this.hashes[index];
      });
    return found;
  }

  /** Run one cell, after the cells above it that have not run as they are now. */
  run(cell) {
    const first = this.runnable.find((other) => other === cell || other.ranText !== other.text);
    const all = this.runnable;
    return this.runThese(all.slice(all.indexOf(first), all.indexOf(cell) + 1), { until: cell });
  }

  runAll() {
    return this.runThese(this.runnable, {});
  }

  /** Run cells in order. Without `until` the first error ends it; with it, errors above that cell do not. */
  async runThese(cells, { until }) {
    if (this.busy) return this.say("A cell is still running: wait for it, or press Stop.");
    const turn = ++this.turn;
    this.setBusy(cells, true);
    until?.reveal();
    let failed = null;
    try {
      for (const cell of cells) {
        const result = await this.runOne(cell);
        if (turn !== this.turn) return;
        if (result === "broke") return this.say(`Python broke in cell ${cell.number}. All variables are gone; the next run starts afresh.`);
        if (result === "error") failed = cell;
        if (failed && !until) break;
      }
      this.say(this.summary(cells, until, failed));
    } catch (error) {
      if (turn === this.turn) this.say(`Python could not start: ${error.message}. The page can be read as before.`);
    } finally {
      if (turn === this.turn) this.setBusy(cells, false);
    }
  }

  async runOne(cell) {
    const text = cell.text;
    let begun = false;
    const say = () => this.say(`Running cell ${cell.number} …`);
    const begin = () => begun || ((begun = true), cell.begin());
    const result = await this.python.run(cell.number, text, say, (outputs) => (begin(), cell.hear(outputs)));
    begin();
    if (result === "broke") this.runnable.forEach((c) => (c.ranText = null));
    else if (result !== "stopped") {
      if (cell.ranText !== text) this.runnable.filter((c) => c.number > cell.number).forEach((c) => (c.ranText = null));
      cell.ranText = text;
      this.note(cell);
    }
    cell.setBusy(false);
    cell.end(result);
    return result;
  }

  summary(cells, until, failed) {
    if (failed && !until) return `Cell ${failed.number} ended with an error; the cells below it were not run.`;
    if (!until) return `All ${cells.length} cells ran.`;
    const above = cells.length - 1;
    const how = until.result === "error" ? "ended with an error" : "ran";
    return `Cell ${until.number} ${how}${above ? `, after ${above} above it` : ""}.`;
  }

  /** Keep what a check said. */
  note(cell) {
    for (const { check } of cell.outputs)
      if (check && this.isExercise) {
        progress.set(this.page, check.question, this.exercise.questions[check.question], check.status === "right");
        this.show();
      }
  }

  stop() {
    this.turn++;
    this.python.stop();
    this.runnable.forEach((cell) => (cell.ranText = null));
    this.setBusy(this.runnable, false);
    this.say("Stopped. All variables are gone; the next run starts afresh.");
  }

  setBusy(cells, busy) {
    this.busy = busy;
    cells.forEach((cell) => cell.setBusy(busy));
    this.allButton.textContent = busy ? "Stop" : "Run all";
    this.bar.dataset.state = busy ? "busy" : "idle";
    this.show();
  }

  resetAll() {
    this.runnable.filter((cell) => !cell.resetButton.hidden).forEach((cell) => cell.reset());
    this.allButton.focus();
    this.say("All cells are as published.");
  }

  show() {
    const edited = this.cells?.filter((cell) => cell.edited).length;
    this.resetButton.hidden = !this.runnable?.some((cell) => !cell.resetButton.hidden);
    this.resetButton.textContent = edited ? `Reset all (${edited} edited)` : "Reset all";
    if (this.isExercise && this.exercise) this.progress.replaceChildren(...count(this.exercise));
    if (!lasts()) this.say("This browser keeps nothing: download your notebook before you leave.");
  }

  /** Edits of cells that this edition does not have any more: kept apart, to save or to discard. */
  offerOld() {
    const texts = this.edits.old();
    this.old.hidden = !texts.length;
    if (!texts.length) return;
    this.old.replaceChildren(
      "This page has changed since you edited it. What you wrote then is kept: ",
      button("Save it", () => save(`${this.slug}_before.py`, texts.join("\n\n\n# ---\n"), "text/x-python")),
      button("Discard it", () => (this.edits.forgetOld(), this.offerOld(), this.allButton.focus())),
    );
  }

  async download() {
    try {
      const published = await (await fetch(this.notebook)).json();
      const notebook = filled(published, this.cells, this.isExercise ? this.slug : "");
      save(`${this.slug}.ipynb`, JSON.stringify(notebook, null, 1) + "\n", "application/x-ipynb+json");
      this.say("Your notebook is among your downloads.");
    } catch (error) {
      this.say(`The notebook could not be made: ${error.message}.`);
    }
  }

  /** The editor's module, fetched once; null where it cannot be. */
  async editor() {
    try {
      return await (this.module ??= import(new URL(`editor.mjs?v=${this.version}`, this.base).href));
    } catch (error) {
      this.module = null;
      this.say(`The editor could not be fetched: ${error.message}.`);
      return null;
    }
  }

  say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }
}

/** Why this browser cannot run Python, or "". */
function lacking() {
  if (location.protocol === "file:") return "This page was opened from a file, where browsers run no Python: it can be read, and its cells run once it is served";
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") return "This browser cannot run Python, which needs WebAssembly and workers";
  return "";
}

function start() {
  document.querySelectorAll(".run-progress").forEach(overview);
  const bar = document.querySelector(".run-bar[data-run]");
  const elements = [...document.querySelectorAll("article div.cell")];
  if (!bar || bar.dataset.cells.split(" ").length !== elements.length) return;
  const why = lacking();
  if (why) bar.querySelector("p").firstChild.data = `${why}; or `;
  else window.mhaPage = new Page(bar, elements);
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
