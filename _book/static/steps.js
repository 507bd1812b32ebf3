// Step by step: each cell of a matrix product with its sum, each array of the layer with its shape and numbers.
(() => {
  const { kinds, html, clamp, button, reader, below, onKeys, ARROWS } = window.mhaFigures;

  // product

  function product(figure) {
    const tables = [...figure.querySelectorAll("table")], names = tables.map((t) => t.caption.querySelector("b")?.textContent || "");
    const [A, B, C] = tables.map((t) => [...t.tBodies[0].rows].map((row) => [...row.cells].filter((c) => c.tagName === "TD")));
    if (tables.some((t) => /[…⋮]/.test(t.tBodies[0].textContent))) return; // cut short: its sums are not all there
    const cells = [...A, ...B, ...C].flat(), before = cells.map((c) => c.className);
    const [m, n] = [C.length, C[0].length], marked = C.flat().findIndex((c) => c.classList.contains("mha-mark"));
    const old = figure.querySelector(".mha-sum"), read = old || html("p", { class: "mha-sum" }), stored = read.textContent;
    read.setAttribute("role", "status");
    let at = marked;
    const bracket = (cell) => (cell.textContent.startsWith("−") ? `(${cell.textContent})` : cell.textContent);

    function show(next) {
      at = next;
      const i = Math.floor(at / n), j = at % n, row = A[i], column = B.map((r) => r[j]);
      cells.forEach((c) => c.classList.remove("mha-mark"));
      [...row, ...column, C[i][j]].forEach((c) => c.classList.add("mha-mark"));
      C.flat().forEach((c, place) => (c.tabIndex = place === at ? 0 : -1));
      const sum = row.map((a, c) => `${bracket(a)}·${bracket(column[c])}`).join(" + ");
      read.textContent = `${names[2]}[${i}, ${j}] = ${sum} = ${C[i][j].textContent}`;
      reset.disabled = false;
    }
    const walk = (by) => show(at < 0 ? 0 : (at + by + m * n) % (m * n));
    const reset = button("as stored", () => {
      cells.forEach((c, place) => (c.className = before[place]));
      [at, read.textContent, reset.disabled] = [marked, stored, true];
    });
    reset.disabled = true;
    figure.classList.add("mha-live-table");
    tables[2].setAttribute("role", "grid");
    tables[2].setAttribute("aria-label", `${names[2]}: the arrow keys go from cell to cell and write out each sum`);
    C.flat().forEach((cell, place) => {
      cell.tabIndex = place === Math.max(at, 0) ? 0 : -1;
      cell.addEventListener("click", () => { show(place); cell.focus({ preventScroll: true }); });
      cell.addEventListener("keydown", (event) => {
        const step = ARROWS[event.key];
        if (!step && event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        const [down, right] = step || [0, 0];
        show(clamp(Math.floor(place / n) + down, m) * n + clamp((place % n) + right, n));
        C.flat()[at].focus();
      });
    });
    below(figure, button("◂ back", () => walk(-1)), button("step ▸", () => walk(1)), reset);
    figure.append(read);
  }

  // flow

  function flow(figure) {
    const steps = JSON.parse(figure.dataset.steps), svg = figure.querySelector("svg");
    const cards = steps.map((s) => svg.querySelector(`[data-step~="${s.name}"]`));
    const read = reader("Step through the layer, or choose a card."), numbers = html("div", { class: "mha-corner" });
    let at = -1;

    function show(next) {
      at = clamp(next, steps.length);
      const s = steps[at], [rows, columns] = s.size.split(" × ").slice(-2), part = s.rows.map((row) => row.split(" "));
      svg.querySelectorAll(".mha-step").forEach((card) => card.classList.toggle("mha-on", card === cards[at]));
      const head = "head" in s ? `head ${s.head}, ` : "";
      read.textContent = `Step ${at + 1} of ${steps.length}: ${s.name}, ${s.letters} = ${s.size}. ${s.how}. Its first numbers${head ? `, ${head.slice(0, -2)}` : ""}: ${part[0].join(", ")}`;
      const caption = `${s.name}, ${head}the first ${part.length} of ${rows} rows and ${part[0].length} of ${columns} columns`;
      numbers.replaceChildren(html("table", {}, html("caption", {}, caption), html("tbody", {}, ...part.map((row) => html("tr", {}, ...row.map((v) => html("td", {}, v)))))));
      [back.disabled, on.disabled, reset.disabled] = [at === 0, at === steps.length - 1, false];
    }
    onKeys(svg, "The layer step by step: the arrow keys go from X to the output", (key) => {
      const step = ARROWS[key];
      if (step) show(at + step[0] + step[1]);
      if (step) cards[at].scrollIntoView({ block: "center" });
      return step;
    });
    svg.addEventListener("click", (event) => {
      const found = cards.indexOf(event.target.closest(".mha-step"));
      if (found >= 0) show(found);
    });
    const back = button("◂ back", () => show(at - 1)), on = button("step ▸", () => show(at + 1));
    const reset = button("as stored", () => {
      at = -1;
      svg.querySelectorAll(".mha-on").forEach((card) => card.classList.remove("mha-on"));
      numbers.replaceChildren();
      read.textContent = "The whole layer, as stored.";
      [back.disabled, on.disabled, reset.disabled] = [true, false, true];
    });
    [back.disabled, reset.disabled] = [true, true];
    const panel = html("div", { class: "mha-panel" }); // stays in view beside a drawing that is taller than the screen
    below(panel, back, on, reset);
    panel.append(read, numbers);
    figure.append(panel);
  }

  kinds.product = product;
  kinds.flow = flow;
})();
