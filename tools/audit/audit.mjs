// Every page of the built book as it prints, and what readers press on all of them: `node tools/audit/audit.mjs [pages]`, `make audit` does it for all.
// On paper nothing is cut off or left folded; search, colours, copying and the contents on a phone work. tests/browser looks at the rest.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, launch, missing, pages, PREFIX, serve } from "./site.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(process.env.BOOK ?? join(HERE, "..", "..", "_build", "html"));
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

async function audit(browser, url) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.goto(url, { waitUntil: "networkidle0" });
  await page.evaluate(() => window.MathJax?.startup?.promise);
  const wrong = await onPaper(page);
  await page.close();
  return [...new Set(wrong)];
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
      const wrong = await audit(browser, site.origin + PREFIX + name);
      failed += wrong.length;
      console.log(`${wrong.length ? "WRONG" : "ok   "} ${name}`);
      wrong.forEach((line) => console.log(`    ${line}`));
    }
  } finally {
    await browser.close();
    site.close();
  }
  console.log(failed ? `${failed} things are wrong` : `${names.length} pages, nothing wrong`);
  process.exit(failed ? 1 : 0);
}

main(process.argv.slice(2));
