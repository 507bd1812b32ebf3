// Every page of the built book as its readers meet it: `node tools/audit/audit.mjs [pages]`, `make audit` does it for all.
// Light, dark, and on a phone: axe-core finds nothing, also with every fold open; every formula is rendered; nothing is asked of another host,
// nothing is missing, the console is silent, the page does not scroll sideways, and it weighs less than the limit. Some pages are also read as files.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium, launch, missing, pages, PREFIX, serve } from "./site.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(process.env.BOOK ?? join(HERE, "..", "..", "_build", "html"));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const LIMIT = 2.5e6; // bytes of a page read without Run, raw: page, styles, scripts, fonts, pictures
const WAYS = [
  { name: "light", width: 1280, theme: "light" },
  { name: "dark", width: 1280, theme: "dark" },
  { name: "phone", width: 390, theme: "light" },
];
const AS_FILES = /^(index|search|chapters\/04_scores|exercises\/learn\/04_scores)\.html$/;

/** Open a page and note what it asks for and complains about. */
async function visit(browser, url, way) {
  const page = await browser.newPage();
  const wrong = [];
  let bytes = 0;
  const reading = [];
  await page.setViewport({ width: way.width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: way.theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.setCacheEnabled(false);
  page.on("console", (m) => ["error", "warn"].includes(m.type()) && wrong.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => wrong.push(`script: ${e.message}`));
  page.on("requestfailed", (r) => wrong.push(`not loaded: ${r.url()} (${r.failure()?.errorText})`));
  page.on("request", (r) => {
    const asked = new URL(r.url());
    const outside = asked.protocol !== "data:" && asked.protocol !== "blob:" && asked.origin !== new URL(url).origin;
    if (outside) wrong.push(`asks another host: ${r.url()}`);
  });
  page.on("response", (r) => {
    if (r.status() >= 400) wrong.push(`${r.status()}: ${r.url()}`);
    else if (r.url().startsWith("http")) reading.push(r.buffer().then((b) => (bytes += b.length)));
  });
  await page.goto(url, { waitUntil: "networkidle0" });
  await page.evaluate(() => window.MathJax?.startup?.promise);
  await page.evaluate(() => document.fonts.ready);
  await Promise.all(reading);
  return { page, wrong, bytes: () => bytes };
}

async function formulas(page) {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll("span.math, div.math")];
    const say = (e, what) => `${what}: ${e.textContent.trim().slice(0, 60)}`;
    return [
      ...all.filter((e) => !e.querySelector("mjx-container")).map((e) => say(e, "formula not rendered")),
      ...all.filter((e) => e.querySelector("mjx-container") && !e.querySelector("mjx-assistive-mml math")).map((e) => say(e, "formula not read aloud")),
      ...[...document.querySelectorAll("[data-mjx-error], mjx-merror")].map((e) => `formula: ${e.dataset.mjxError ?? e.textContent}`),
    ];
  });
}

async function sideways(page) {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > clientWidth + 1);
    return [`scrolls sideways: ${scrollWidth} in ${clientWidth} pixels, as ${wide.slice(0, 3).map((e) => e.tagName + "." + e.className).join(", ")}`];
  });
}

async function axe(page, when) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => `axe ${when}: ${v.id}: ${n.target.join(" ")}: ${n.failureSummary.split("\n").slice(1).join(" ").trim()}`));
}

/** As it prints: light, nothing folded but an exercise's hints, no navigation, nothing cut off at the edge. */
async function onPaper(page) {
  await page.setViewport({ width: 680, height: 1000 }); // A4 less its margins
  await page.emulateMediaType("print");
  const wrong = await page.evaluate(() => {
    window.dispatchEvent(new Event("beforeprint"));
    const shown = (e) => e.getClientRects().length > 0;
    const found = [];
    const { theme, print } = document.documentElement.dataset;
    if (theme !== "light") found.push(`paper: printed in the ${theme} theme`);
    for (const e of document.querySelectorAll(".bd-sidebar, .bd-header-article, .prev-next-footer, .copybtn, #pst-back-to-top")) {
      if (shown(e)) found.push(`paper: shows ${e.className || e.id}`);
    }
    for (const e of document.querySelectorAll(".bd-article :is(pre, table, svg, img, .mha-fig, mjx-container)")) {
      const cut = getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1;
      if (shown(e) && (cut || e.getBoundingClientRect().right > innerWidth + 1)) found.push(`paper: cut off at the edge: ${e.tagName} ${e.textContent.trim().slice(0, 50)}`);
    }
    const closed = [...document.querySelectorAll(".bd-article details:not([open])")].filter(shown);
    if (closed.length) found.push(`paper: ${closed.length} closed folds (${print})`);
    window.dispatchEvent(new Event("afterprint"));
    if (document.documentElement.dataset.print) found.push("paper: the page stays as printed");
    return found;
  });
  return wrong;
}

/** What a reader presses: search, colours, contents on a phone, copy. */
async function controls(browser, origin) {
  const wrong = [];
  const must = (fine, what) => fine || wrong.push(`controls: ${what}`);
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  await browser.defaultBrowserContext().overridePermissions(origin, ["clipboard-read", "clipboard-write"]);
  await page.goto(`${origin}${PREFIX}chapters/04_scores.html`, { waitUntil: "networkidle0" });

  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const themes = new Set([await theme()]);
  for (let press = 0; press < 3; press++) {
    await page.click("button.theme-switch-button");
    themes.add(await theme());
  }
  must(themes.has("light") && themes.has("dark"), `the colour switch gives ${[...themes].join(", ")}`);
  const icons = await page.$$eval(".theme-switch, .fa-magnifying-glass, .fa-bars", (all) => all.filter((e) => e.getClientRects().length).map((e) => getComputedStyle(e, "::before").content));
  must(icons.length >= 3 && icons.every((c) => c.length === 3), `icons without a glyph: ${icons.join(" ")}`);

  await page.hover("div.highlight");
  await page.click("button.copybtn");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  must(copied.startsWith("import numpy as np"), `copied: ${copied.slice(0, 40)}`);

  await page.keyboard.down("Control");
  await page.keyboard.press("k");
  await page.keyboard.up("Control");
  await page.keyboard.type("softmax overflow");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  const hits = await page.waitForSelector("#search-results li a", { timeout: 10000 }).then(() => page.$$eval("#search-results li a", (all) => all.map((a) => a.href)), () => []);
  must(hits.some((href) => href.includes("05_softmax")), `search finds ${hits.length} pages, not the one on softmax`);

  await page.setViewport({ width: 390, height: 844 });
  await page.goto(`${origin}${PREFIX}chapters/04_scores.html`, { waitUntil: "networkidle0" });
  await page.click("button.primary-toggle");
  must(await page.$eval("#pst-primary-sidebar-modal", (e) => e.open), "the contents do not open on a phone");
  await page.close();
  return wrong;
}

async function audit(browser, url, way) {
  const { page, wrong, bytes } = await visit(browser, url, way);
  const asFile = url.startsWith("file:");
  wrong.push(...(await formulas(page)), ...(await sideways(page)));
  if (!asFile) {
    wrong.push(...(await axe(page, "closed")));
    const folds = await page.evaluate(() => {
      const folds = [...document.querySelectorAll("details:not([open])")];
      folds.forEach((e) => (e.open = true));
      return new Promise((done) => setTimeout(() => done(folds.length), 60));
    });
    if (folds) wrong.push(...(await sideways(page)), ...(await axe(page, "with all folds open")));
    if (way.name === "dark") {
      await page.evaluate(() => document.querySelectorAll("details[open]").forEach((e) => (e.open = false)));
      wrong.push(...(await onPaper(page)));
    }
    if (bytes() > LIMIT) wrong.push(`weighs ${(bytes() / 1e6).toFixed(2)} MB, limit ${LIMIT / 1e6}`);
  }
  const seen = { formulas: (await page.$$("mjx-container")).length, bytes: bytes() };
  await page.close();
  return { wrong: [...new Set(wrong)], ...seen };
}

async function main(only) {
  if (!chromium()) missing("Chromium");
  const names = pages(ROOT).filter((name) => !only.length || only.includes(name));
  if (!names.length) throw new Error(`no page in ${ROOT}: make book`);
  const site = await serve(ROOT);
  const browser = await launch();
  let failed = 0;
  try {
    const unusable = await controls(browser, site.origin);
    failed += unusable.length;
    console.log(unusable.join("\n") || "ok    search, colours, copy, contents on a phone");
    for (const name of names) {
      const views = WAYS.map((way) => [way, site.origin + PREFIX + name]);
      if (AS_FILES.test(name)) views.push([{ ...WAYS[0], name: "as a file" }, pathToFileURL(join(ROOT, name)).href]);
      let first;
      const wrong = [];
      for (const [way, url] of views) {
        const result = await audit(browser, url, way);
        first ??= result;
        wrong.push(...result.wrong.map((w) => `    ${way.name}: ${w}`));
      }
      failed += wrong.length;
      console.log(`${wrong.length ? "WRONG" : "ok   "} ${(first.bytes / 1e6).toFixed(2)} MB ${String(first.formulas).padStart(4)} formulas  ${name}`);
      wrong.forEach((line) => console.log(line));
    }
  } finally {
    await browser.close();
    site.close();
  }
  console.log(failed ? `${failed} things are wrong` : `${names.length} pages, nothing wrong`);
  process.exit(failed ? 1 : 0);
}

main(process.argv.slice(2));
