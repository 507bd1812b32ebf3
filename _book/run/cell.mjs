// One code cell of the page: its text, its editor, its buttons and its output.
import { button, h } from "./html.mjs";
import { collect, draw } from "./outputs.mjs";

export class Cell {
  /** element: div.cell. number: from 1. page: what the buttons act on. */
  constructor(element, number, page) {
    const code = element.querySelector(".cell_input pre");
    Object.assign(this, { element, number, page, published: code.textContent.replace(/\n$/, ""), outputs: [], ranText: null });
    this.runnable = !element.matches(".tag_native-only");
    this.text = this.published;
    this.input = element.querySelector(".cell_input");
    this.code = this.input.querySelector("div[class*=highlight-]");
    this.stored = element.querySelector(".cell_output");
    if (this.runnable) this.furnish();
  }

  get edited() {
    return this.text !== this.published;
  }

  furnish() {
    const named = (action) => ({ ariaLabel: `${action} cell ${this.number}` });
    this.runButton = button("Run", () => (this.busy ? this.page.stop() : this.page.run(this)), named("Run"));
    this.runButton.classList.add("run-main");
    this.editButton = button("Edit", () => this.edit(), named("Edit"));
    this.resetButton = button("Reset", () => this.reset(), { ...named("Reset"), hidden: true });
    this.note = h("span", { className: "run-note", id: `run-note-${this.number}` });
    this.input.append(h("div", { className: "run-buttons" }, this.runButton, this.editButton, this.resetButton, this.note));
    this.place = h("div", { className: "cell_output docutils container run-output", hidden: true });
    if (this.stored) this.stored.after(this.place);
    else this.input.after(this.place);
    this.code.addEventListener("click", ({ target }) => getSelection().isCollapsed && !target.closest("button") && this.edit());
    const kept = this.page.edits.get(this.number - 1);
    if (kept !== null && kept !== this.published) {
      this.text = kept;
      this.edit(false);
    }
    this.show();
  }

  /** Put an editor in place of the code; it stays. */
  async edit(focus = true) {
    if (!this.opening) this.opening = this.open();
    const editor = await this.opening;
    if (focus) editor?.focus();
  }

  async open() {
    const module = await this.page.editor();
    if (!module) return (this.opening = null);
    const parent = h("div", { className: "run-editor highlight" });
    this.code.hidden = this.editButton.hidden = true;
    this.code.after(parent);
    return (this.editor = module.edit({
      parent,
      text: this.text,
      label: `Code of cell ${this.number}`,
      describedBy: "run-keys",
      onChange: (text) => this.change(text),
      onRun: () => this.page.run(this),
    }));
  }

  change(text) {
    this.text = text;
    if (this.edited) this.page.edits.set(this.number - 1, text);
    else this.page.edits.remove(this.number - 1);
    this.show();
    this.page.show();
  }

  /** The published code and output again. */
  reset() {
    const hadFocus = this.resetButton === document.activeElement;
    if (this.stored) this.stored.hidden = false;
    this.place.hidden = true;
    this.result = null;
    this.editor?.set(this.published);
    this.change(this.published);
    this.page.say(`Cell ${this.number} is as published.`);
    if (hadFocus) this.runButton.focus();
    this.show();
  }

  /** Show that the cell waits or runs, so that its button stops it. */
  setBusy(busy) {
    this.busy = busy;
    this.element.classList.toggle("run-busy", busy);
    this.show();
  }

  begin() {
    this.outputs = [];
    this.place.replaceChildren();
    if (this.stored) this.stored.hidden = true;
    this.place.hidden = false;
  }

  hear(outputs) {
    collect(this.outputs, outputs);
    draw(this.place, this.outputs);
  }

  end(result) {
    this.result = result;
    this.ranText = result === "stopped" ? null : this.ranText;
    this.place.hidden = !this.outputs.length;
    this.show();
  }

  /** Open the folds that hide this cell's output. */
  reveal() {
    for (let fold = this.place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  }

  show() {
    this.runButton.textContent = this.busy ? "Stop" : "Run";
    this.runButton.ariaLabel = `${this.busy ? "Stop" : "Run"} cell ${this.number}`;
    this.resetButton.hidden = !this.edited && this.place.hidden && !this.stored?.hidden;
    this.element.classList.toggle("run-edited", this.edited);
    const old = this.ranText !== this.text; // this cell or one above has changed since, or Python was stopped
    this.note.textContent = [
      this.edited && "edited by you",
      this.result === "stopped" && "stopped",
      this.result === "error" && !old && "ended with an error",
      !this.place.hidden && this.result === "ok" && (old ? "output of an earlier run" : "output from your browser"),
    ].filter(Boolean).join(" · ");
  }
}
