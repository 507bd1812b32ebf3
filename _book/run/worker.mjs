// The page's thread for Python. It takes {id, number, source}, and answers {id, outputs} as they come and {id, done, ok} at the end.
// Ending the thread is what stops an endless loop; it needs no special headers.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const { search } = new URL(import.meta.url); // ?v=…: the edition of the book
const here = (name) => new URL(name, import.meta.url);

async function bytes(name) {
  const answer = await fetch(here(name + search));
  if (!answer.ok) throw new Error(`${name} could not be fetched (${answer.status})`);
  return answer.arrayBuffer();
}

async function start() {
  const [python, library, code] = await Promise.all([
    loadPyodide({ indexURL: here("./pyodide/").href, packages: ["numpy"] }),
    bytes("mha_lib.zip"),
    bytes("cells.py"),
  ]);
  python.unpackArchive(library, "zip", { extractDir: python.runPython("import site; site.getsitepackages()[0]") });
  const names = python.toPy({ __name__: "cells" });
  python.runPython(new TextDecoder().decode(code), { globals: names });
  return names.get("Cells")(collect);
}

// Outputs travel in bundles: a loop that prints must not send a message a line.
const PAUSE = 50; // milliseconds
let bundle = [], sent = 0, current = null;
function collect(output) {
  bundle.push(output);
  if (performance.now() - sent > PAUSE) send();
}
function send() {
  if (bundle.length) postMessage({ id: current, outputs: bundle.map((text) => JSON.parse(text)) });
  bundle = [];
  sent = performance.now();
}

const started = start();
started.then(() => postMessage({ ready: true }), (error) => postMessage({ broken: String(error.message || error) }));

onmessage = async ({ data }) => {
  const cells = await started;
  current = data.id;
  let end;
  try {
    end = { ok: await cells.run(data.number, data.source) };
  } catch {
    end = { broke: true }; // not the cell's error, which cells.py reports: Pyodide's own
  }
  send();
  postMessage({ id: data.id, done: true, ...end });
};
