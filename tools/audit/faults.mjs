// The audit must see what it is there for: `node tools/audit/faults.mjs` puts one fault of each kind into a page and demands that all are named.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, missing } from "./site.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const BOOK = resolve(process.env.BOOK ?? join(HERE, "..", "..", "_build", "html"));
const PAGE = "chapters/04_scores.html";
const FAULTS = [
  ["paper: cut off", '<pre style="white-space: pre !important; overflow: hidden !important; width: 9em">longer than the box that holds it</pre>'],
  ["paper: shows copybtn", '<button class="copybtn" style="display: block !important">copy</button>'],
  ["closed folds", '<script>addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((e) => (e.open = false)));</script>'],
];

if (!chromium()) missing("Chromium");
const copy = mkdtempSync(join(tmpdir(), "audit-"));
try {
  cpSync(BOOK, copy, { recursive: true });
  const html = readFileSync(join(copy, PAGE), "utf8");
  writeFileSync(join(copy, PAGE), html.replace("</article>", FAULTS.map(([, fault]) => fault).join("\n") + "</article>"));
  const { stdout, status } = spawnSync(process.execPath, [join(HERE, "audit.mjs"), PAGE], { env: { ...process.env, BOOK: copy }, encoding: "utf8" });
  const unseen = FAULTS.filter(([name]) => !stdout.includes(name)).map(([name]) => name);
  if (unseen.length || !status) {
    console.log(stdout);
    throw new Error(`the audit does not see: ${unseen.join(", ")} (status ${status})`);
  }
  console.log(`ok    the audit names ${FAULTS.length} of ${FAULTS.length} faults`);
} finally {
  rmSync(copy, { recursive: true });
}
