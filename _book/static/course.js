// What no template reaches. Each item names the code that makes it necessary.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false; // Sphinx's search fetches summaries, which browsers forbid for files
}

document.addEventListener("DOMContentLoaded", () => {
  // myst-nb: the label of a folded cell differs from its visible text
  document.querySelectorAll("summary[aria-label]").forEach((e) => e.removeAttribute("aria-label"));
  // docutils: the bibliography's list and entries have roles that do not fit together
  document.querySelectorAll(".citation-list").forEach((list) => {
    list.removeAttribute("role");
    list.querySelectorAll('[role="doc-biblioentry"]').forEach((e) => e.removeAttribute("role"));
  });
});

// Whatever scrolls sideways can be reached and moved by keyboard; nothing else becomes a stop.
const SCROLLERS = ".highlight pre, .cell_output pre, .pst-scrollable-table-container, .output.text_html, .mha-fig, mjx-container, span.math";
function markScrollers() {
  document.querySelectorAll("span.math").forEach((e) => {
    const formula = e.querySelector("mjx-container");
    e.classList.toggle("wide", formula?.offsetWidth > e.closest("section")?.clientWidth);
  });
  document.querySelectorAll(SCROLLERS).forEach((e) => {
    if (e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === "auto") e.tabIndex = 0;
    else e.removeAttribute("tabindex");
  });
}

// A line may break between a formula and the comma after it; keep them together.
function keepPunctuation() {
  document.querySelectorAll(".bd-article span.math").forEach((formula) => {
    const mark = formula.nextSibling?.nodeType === Node.TEXT_NODE && formula.nextSibling.data.match(/^[,.;:)?!]+/)?.[0];
    if (!mark) return;
    formula.nextSibling.data = formula.nextSibling.data.slice(mark.length);
    const together = document.createElement("span");
    together.style.whiteSpace = "nowrap";
    formula.replaceWith(together);
    together.append(formula, mark);
  });
}

window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  keepPunctuation();
  markScrollers();
});
window.addEventListener("resize", markScrollers);
document.addEventListener("toggle", markScrollers, true); // what a fold hides has no width until it opens
document.addEventListener("mha:output", markScrollers); // what a cell has drawn anew in the page

// Paper is white and cannot be unfolded: print in light colours, and open what a chapter keeps folded. An exercise keeps its secrets.
const forScreen = [];
window.addEventListener("beforeprint", () => {
  const page = document.documentElement, { theme, mode } = page.dataset;
  const exercise = DOCUMENTATION_OPTIONS.pagename?.startsWith("exercises/learn/");
  Object.assign(page.dataset, { theme: "light", mode: "light", print: exercise ? "exercise" : "chapter" });
  forScreen.push(() => {
    Object.assign(page.dataset, { theme, mode });
    delete page.dataset.print;
  });
  if (exercise) return;
  document.querySelectorAll(".bd-article details:not([open])").forEach((fold) => {
    fold.open = true;
    forScreen.push(() => (fold.open = false));
  });
});
window.addEventListener("afterprint", () => {
  while (forScreen.length) forScreen.pop()();
});
