// What the browser keeps for the reader, and nobody else sees: edited cells, and which questions are right.

const PREFIX = "mha-course:";
const memory = new Map(); // where the browser keeps nothing, for as long as the page is open
let kept = true;

function works() {
  try {
    localStorage.setItem(PREFIX + "test", "1");
    localStorage.removeItem(PREFIX + "test");
    return true;
  } catch {
    return false;
  }
}
const storage = works() ? localStorage : null;

function get(key) {
  return memory.get(key) ?? storage?.getItem(PREFIX + key) ?? null;
}

function set(key, value) {
  try {
    if (!storage) throw new Error("no storage");
    storage.setItem(PREFIX + key, value);
  } catch {
    memory.set(key, value);
    kept = false;
  }
}

function remove(key) {
  memory.delete(key);
  storage?.removeItem(PREFIX + key);
}

const keys = (start) =>
  storage ? Object.keys(storage).filter((key) => key.startsWith(PREFIX + start)).map((key) => key.slice(PREFIX.length)) : [];

/** Whether everything so far outlasts the page. */
export const lasts = () => kept;

/** The edited cells of one page, each under a hash of its published source: another edition never sees them as its own. */
export class Edits {
  constructor(page, hashes) {
    const seen = {};
    this.start = `edit:${page}:`;
    this.names = hashes.map((hash) => `${this.start}${hash}:${(seen[hash] = (seen[hash] ?? -1) + 1)}`);
  }
  get = (index) => get(this.names[index]);
  set = (index, text) => set(this.names[index], text);
  remove = (index) => remove(this.names[index]);

  /** What was written into cells that this edition does not have. */
  old = () => this.stray().map(get);
  forgetOld = () => this.stray().forEach(remove);
  stray = () => keys(this.start).filter((key) => !this.names.includes(key)).sort();
}

/** Whether a question is right, by page and name; `hash` is that of the question's cell, so that a changed question counts anew. */
export const progress = {
  isRight: (page, question, hash) => get(`right:${page}:${question}`) === hash,
  set: (page, question, hash, right) => (right ? set : remove)(`right:${page}:${question}`, hash),
};

/** Forget everything of this course. */
export function forget() {
  memory.clear();
  keys("").forEach(remove);
}
