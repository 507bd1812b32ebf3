// Figures that answer: what mha_lib.viz draws can be read cell by cell (maps.js) and gone through step by step (steps.js).
// All numbers come from the figure itself; without scripts it reads as it stands. Here is what those two share.
(() => {
  const NS = "http://www.w3.org/2000/svg";

  /** An HTML element; attributes that start with "on" are listeners. */
  function html(tag, attributes = {}, ...children) {
    const e = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
      else e.setAttribute(key, value);
    }
    e.append(...children);
    return e;
  }

  function draw(tag, attributes, text) {
    const e = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    if (text !== undefined) e.textContent = text;
    return e;
  }

  /** As mha_lib.viz prints it: no negative zero, a real minus sign; what is not finite is a text already. */
  function num(value, digits = 2) {
    if (typeof value === "string") return value.replace("-", "−");
    const text = value.toFixed(digits);
    return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
  }

  /** The same texts, with their place where one is repeated: the (1), the (7). */
  const unique = (texts) => texts.map((t, i) => (texts.filter((other) => other === t).length > 1 ? `${t} (${i})` : t));
  const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
  const button = (text, act) => html("button", { type: "button", onclick: act }, text);
  const reader = (text) => html("p", { class: "mha-read", role: "status" }, text);
  /** Controls go behind the drawing, but not into a box that scrolls sideways. */
  const below = (figure, ...parts) => figure.append(html("div", { class: "mha-controls" }, ...parts));

  /** Arrow keys as steps: [down, right]. */
  const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  /** A box around the drawing that takes the arrow keys; press(event) says whether it used the key. */
  function onKeys(svg, label, press) {
    const box = html("div", { class: "mha-explore", role: "application", tabindex: 0, "aria-label": label });
    svg.replaceWith(box);
    box.append(svg);
    box.addEventListener("keydown", (event) => {
      if (!event.altKey && !event.ctrlKey && !event.metaKey && press(event.key)) event.preventDefault();
    });
    return box;
  }

  // Each kind of figure has a function that makes it answer; figures that a cell draws anew get theirs too.
  const kinds = {}, done = new WeakSet();
  function enhance(root) {
    for (const [kind, answer] of Object.entries(kinds)) {
      for (const figure of root.querySelectorAll(`figure.mha-${kind}`)) {
        if (!done.has(figure)) answer(figure);
        done.add(figure);
      }
    }
  }
  document.addEventListener("DOMContentLoaded", () => {
    const article = document.querySelector(".bd-article") || document.body;
    enhance(article);
    new MutationObserver(() => enhance(article)).observe(article, { childList: true, subtree: true });
  });
  window.mhaFigures = { kinds, html, draw, num, unique, clamp, button, reader, below, onKeys, ARROWS };
})();
