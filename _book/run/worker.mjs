// The page's thread for Python. It takes {id, number, source}, and answers {id, outputs} as they come and {id, done, ok} at the end.
// Ending the thread is what stops an endless loop; it needs no special headers.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const { search } = new URL(import.meta.url); // ?v=…: the edition of the book
const here = (name) => new URL(name, import.meta.url);

async function bytes(name) {
  return (await fetch(here(name + search))).arrayBuffer();
}

async function start() {
  const [python, library, code] = await Promise.all([
    loadPyodide({ indexURL: here("./pyodide/").href, packages: ["numpy"] }),
    bytes("mha_lib.zip"),
    bytes("cells.py"),
  ]);
  if (!python.loadedPackages.numpy) throw new Error("NumPy could not be loaded");
  python._api.on_fatal = broke;
  python.unpackArchive(library, "zip", { extractDir: python.runPython("import site; site.getsitepackages()[0]") });
  const names = python.toPy({ __name__: "cells" });
  python.runPython(new TextDecoder().decode(code), { globals: names });
  return names.get("Cells")(collect);
}

// After its first outputs those of a cell travel in bundles: a loop that prints must not send a message a line.
const FIRST = 50, PAUSE = 50; // outputs; milliseconds
let bundle = [], count = 0, sent = 0, current = null;
function collect(output, last) {
  bundle.push(output);
  if (last || ++count < FIRST || performance.now() - sent > PAUSE) send();
}
function send() {
  if (bundle.length) postMessage({ id: current, outputs: bundle.map((text) => JSON.parse(text)) });
  bundle = [];
  sent = performance.now();
}

// Where a file cannot be had, Pyodide may tell the console alone, and wait for ever. So the worker sees to its files itself.
const fail = (error) => postMessage({ broken: String(error?.message || error) });
const { fetch: ask } = globalThis, { instantiateStreaming } = WebAssembly;
globalThis.fetch = async (what, ...options) => {
  const name = new URL(what).pathname.split("/").pop();
  const answer = await ask(what, ...options).catch(() => ({ status: "no answer" }));
  if (answer.ok) return answer;
  const error = new Error(`${name} could not be fetched (${answer.status})`);
  fail(error);
  throw error;
};
WebAssembly.instantiateStreaming = (...what) => {
  const instance = instantiateStreaming(...what);
  instance.catch(fail);
  return instance;
};
const started = start();
started.then(() => postMessage({ ready: true }), fail);

/** Pyodide itself has broken, which is not a cell's error: those cells.py reports. */
function broke() {
  send();
  postMessage({ id: current, done: true, broke: true });
}

onmessage = async ({ data }) => {
  const cells = await started;
  current = data.id;
  count = 0;
  const ok = await cells.run(data.number, data.source);
  send();
  postMessage({ id: data.id, done: true, ok });
};
