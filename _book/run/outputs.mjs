// Outputs of a notebook as the elements that the book's own outputs are made of.
import { h } from "./html.mjs";

const text = (kind, content) =>
  h("div", { className: `output ${kind} highlight-myst-ansi notranslate` }, h("div", { className: "highlight" }, h("pre", {}, content)));

/** Append outputs to a list of those of a notebook; text of one stream is joined. */
export function collect(list, outputs) {
  for (const output of outputs) {
    const last = list.at(-1);
    if (output.output_type === "stream" && last?.output_type === "stream" && last.name === output.name) last.text += output.text;
    else list.push({ ...output });
  }
}

/** Draw outputs into a place, in order. */
export function draw(place, outputs) {
  place.replaceChildren(...outputs.map(element));
  place.dispatchEvent(new CustomEvent("mha:output", { bubbles: true })); // for scripts that make pictures answer
}

function element(output) {
  if (output.output_type === "stream") return text(output.name === "stderr" ? "stderr" : "stream", output.text);
  if (output.output_type === "error") return text("traceback", output.traceback.join("\n"));
  const html = output.data["text/html"];
  if (html === undefined) return text("text_plain", output.data["text/plain"]);
  const place = h("div", { className: "output text_html" });
  place.innerHTML = html;
  for (const link of place.querySelectorAll("a[href]")) {
    const [file, anchor] = link.getAttribute("href").split("#"); // notebooks name each other; pages are meant
    if (!/^\w+:/.test(file)) link.setAttribute("href", file.replace(/\.ipynb$/, ".html") + (anchor ? "#" + anchor : ""));
  }
  return place;
}
