// Lighthouse on the first page, a chapter and an exercise: `node tools/audit/lighthouse.mjs [pages]`. The scores are a promise of the README.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import lighthouse, { desktopConfig } from "lighthouse";
import { chromium, launch, missing, PREFIX, serve } from "./site.mjs";

const WANTED = { accessibility: 1, "best-practices": 0.95, seo: 0.95 };
const ROOT = resolve(process.env.BOOK ?? join(dirname(fileURLToPath(import.meta.url)), "..", "..", "_build", "html"));

async function main(names) {
  if (!chromium()) missing("Chromium");
  const site = await serve(ROOT);
  const browser = await launch();
  const wrong = [];
  try {
    for (const name of names) {
      const page = await browser.newPage();
      const options = { onlyCategories: Object.keys(WANTED), logLevel: "error" };
      const { lhr } = await lighthouse(site.origin + PREFIX + name, options, desktopConfig, page);
      await page.close();
      console.log(name, Object.entries(lhr.categories).map(([key, { score }]) => `${key} ${Math.round(score * 100)}`).join(", "));
      for (const [key, { score, auditRefs }] of Object.entries(lhr.categories)) {
        const low = auditRefs.filter(({ id, weight }) => weight && lhr.audits[id].score !== null && lhr.audits[id].score < 1);
        low.forEach(({ id }) => console.log(`    ${key}: ${id}: ${lhr.audits[id].title}`));
        if (score < WANTED[key]) wrong.push(`${name}: ${key}`);
      }
    }
  } finally {
    await browser.close();
    site.close();
  }
  process.exit(wrong.length ? 1 : 0);
}

const asked = process.argv.slice(2);
main(asked.length ? asked : ["index.html", "chapters/04_scores.html", "exercises/learn/04_scores.html"]);
