// Runs the cells of notebooks in Pyodide under Node, with the cells.py of the pages, and prints for each notebook one line of JSON:
// {path, cells: [{index, ok, outputs}]}.   node run_notebook.mjs _build/browser/run notebook.ipynb...
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [run, ...notebooks] = process.argv.slice(2);
const at = (name) => path.resolve(run, name);
const { loadPyodide } = await import(pathToFileURL(at("pyodide/pyodide.mjs")));
const python = await loadPyodide({ indexURL: at("pyodide") + path.sep, packages: ["numpy"], stdout() {} });
python.unpackArchive(new Uint8Array(fs.readFileSync(at("mha_lib.zip"))), "zip", {
  extractDir: python.runPython("import site; site.getsitepackages()[0]"),
});
const names = python.toPy({ __name__: "cells" });
python.runPython(fs.readFileSync(at("cells.py"), "utf8"), { globals: names });

for (const file of notebooks) {
  let outputs;
  const cells = names.get("Cells")((text) => outputs.push(JSON.parse(text))); // one namespace for each notebook, as in a page
  const ran = [];
  const code = JSON.parse(fs.readFileSync(file, "utf8")).cells.filter((cell) => cell.cell_type === "code");
  for (const [index, cell] of code.entries()) {
    if ((cell.metadata.tags || []).includes("native-only")) continue;
    outputs = [];
    const ok = await cells.run(index + 1, [].concat(cell.source).join(""));
    ran.push({ index, ok, outputs });
  }
  console.log(JSON.stringify({ path: file, cells: ran }));
}
