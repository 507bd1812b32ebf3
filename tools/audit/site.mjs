// The built book under a sub-path, as on a project site, and the Chromium of the system: what every audit needs.
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, resolve, sep } from "node:path";
import puppeteer from "puppeteer-core";

export const PREFIX = "/course/";
const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png",
  ".woff": "font/woff", ".woff2": "font/woff2", ".json": "application/json", ".txt": "text/plain", ".ipynb": "application/json",
  ".map": "application/json", ".wasm": "application/wasm", ".mjs": "text/javascript",
};

/** A static server on 127.0.0.1; resolves to { origin, close }. */
export function serve(root) {
  const folder = resolve(root);
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    let file = path.startsWith(PREFIX) ? resolve(join(folder, path.slice(PREFIX.length))) : null;
    if (file && existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!file || !(file + sep).startsWith(folder + sep) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  return new Promise((done) =>
    server.listen(0, "127.0.0.1", () =>
      done({ origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() })));
}

/** Every page of the book, as a path below its root. */
export function pages(root) {
  return readdirSync(root, { recursive: true })
    .map((name) => name.split(sep).join("/"))
    .filter((name) => name.endsWith(".html") && !/^_(static|sources)\//.test(name))
    .sort();
}

export const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Chromium: CHROMIUM in the environment, or one of its usual places; null where there is none. */
export function chromium() {
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const places = [...(process.env.PATH ?? "").split(":"), "/usr/bin"].flatMap((p) => names.map((n) => join(p, n)));
  return [process.env.CHROMIUM, ...places, "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"]
    .find((path) => path && existsSync(path)) ?? null;
}

export function launch(options = {}) {
  return puppeteer.launch({ executablePath: chromium(), args: FLAGS, ...options });
}

/** Where a tool is missing: a visible skip on a person's machine, a failure in CI. */
export function missing(tool) {
  console.error(`${tool} is not on this machine: the audit is skipped`);
  process.exit(process.env.CI === "true" ? 1 : 0);
}
