// Predict, then run: the options of the list can be chosen, and the folded answer opens with the part about the choice marked.
// The page says what is right: <details data-right="C">, or "A C" where one list answers two questions, (a) and (b).
(() => {
  const { html, button, reader } = window.mhaFigures;

  /** Put the part of the answer about each option, from its bold letter to the next one, into a span of its own. */
  function partsOf(answer, keys) {
    const parts = {};
    for (const block of answer.querySelectorAll("p")) {
      let part;
      for (const node of [...block.childNodes]) {
        const key = node.nodeName === "STRONG" && node.textContent.trim();
        if (keys.includes(key)) {
          part = html("span", { class: "predict-part" });
          node.before(part);
          (parts[key] ??= []).push(part);
        }
        part?.append(node);
      }
    }
    return parts;
  }

  /** The last list before the answer whose items all start with a bold letter. */
  function optionsOf(answer) {
    const lists = [...answer.closest("section").querySelectorAll("ul")].filter(
      (list) => list.compareDocumentPosition(answer) & Node.DOCUMENT_POSITION_FOLLOWING && [...list.children].every((li) => li.querySelector("strong")),
    );
    return [lists.at(-1), [...lists.at(-1).children].map((li) => ({ li, key: li.querySelector("strong").textContent.trim() }))];
  }

  function question(answer, number) {
    const right = answer.dataset.right.split(" "), several = right.length > 1;
    const [list, options] = optionsOf(answer);
    const parts = partsOf(answer, options.map((o) => o.key));
    const letters = right.map((_, n) => `(${"abc"[n]})`), groups = right.map((_, n) => `predict-${number}-${n}`);
    const verdict = reader("");

    for (const { li, key } of options) {
      const text = li.querySelector("p") || li, said = text.textContent.trim();
      const radios = groups.map((name) => html("input", { type: "radio", name, value: key }));
      if (several) {
        radios.forEach((radio, n) => radio.setAttribute("aria-label", `${letters[n]} ${said}`));
        text.prepend(...radios.map((radio, n) => html("label", {}, radio, letters[n])));
      } else {
        const label = html("label", {}, radios[0]);
        label.append(...text.childNodes);
        text.append(label);
      }
    }
    const box = html("fieldset", { class: "predict" }, html("legend", {}, "Your prediction"));
    list.replaceWith(box);
    box.append(list, button("That is my answer", check), verdict);

    function check() {
      const chosen = groups.map((name) => box.querySelector(`[name=${name}]:checked`)?.value);
      if (chosen.includes(undefined)) {
        verdict.textContent = several ? `Choose one answer for each of ${letters.join(" and ")}.` : "Choose an answer first.";
        return;
      }
      answer.querySelectorAll(".predict-part").forEach((part) => part.classList.remove("predict-chosen"));
      const marked = chosen.flatMap((key) => parts[key] || []);
      marked.forEach((part) => part.classList.add("predict-chosen"));
      const all = chosen.every((key, n) => key === right[n]);
      const judged = chosen.map((key, n) => {
        const yes = key === right[n];
        return `${several ? `${letters[n]}: ` : ""}${key} ${yes ? "is right." : `is not right, ${right[n]} is.`}`;
      });
      const where = all ? "" : marked.length ? " The answer below is open; what it says about your choice is marked." : " The answer below is open.";
      verdict.textContent = judged.join(" ") + where;
      verdict.classList.toggle("predict-right", all);
      open();
    }
    /** Unfold the answer, and the output of the cells before it. */
    function open() {
      answer.open = true;
      for (const fold of answer.closest("section").querySelectorAll("details.below-input")) {
        const between = box.compareDocumentPosition(fold) & fold.compareDocumentPosition(answer) & Node.DOCUMENT_POSITION_FOLLOWING;
        if (between) fold.open = true;
      }
    }
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("details[data-right]").forEach(question));
})();
