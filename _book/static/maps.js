// Attention maps: each cell read out; temperature and mask compute the weights again; one head of many seen large.
(() => {
  const { kinds, html, draw, num, unique, clamp, button, reader, below, onKeys, ARROWS } = window.mhaFigures;
  const BLUE = "#1B7FC4", ORANGE = "#C27500";

  /** Softmax of one row; keys that may not be attended get 0, as all do where none may. */
  function softmax(row, may) {
    const most = Math.max(...row.filter((_, j) => may[j]));
    const e = row.map((s, j) => (may[j] ? Math.exp(s - most) : 0));
    const sum = e.reduce((a, b) => a + b, 0) || 1;
    return e.map((v) => v / sum);
  }

  /** Where the cells of a map lie, read from its rectangles. */
  function gridOf(svg) {
    const rows = [...svg.querySelectorAll(".mha-row")], first = rows[0].children[0];
    const at = (name) => Number(first.getAttribute(name));
    const top = Number(rows[0].getAttribute("transform").match(/ ([\d.]+)\)/)[1]);
    return { x: at("x"), y: top, w: at("width"), h: at("height"), L: rows.length, S: rows[0].children.length };
  }

  /** The cell under the pointer, or undefined. */
  function cellAt(svg, grid, event) {
    const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const i = Math.floor((p.y - grid.y) / grid.h), j = Math.floor((p.x - grid.x) / grid.w);
    return i >= 0 && j >= 0 && i < grid.L && j < grid.S ? [i, j] : undefined;
  }

  /** Let pointer and arrow keys choose a cell of the drawing; say(i, j) reads it out. Returns go(i, j). */
  function explore(svg, grid, start, name, say) {
    const frame = draw("rect", { class: "mha-cursor", width: grid.w, height: grid.h, visibility: "hidden" });
    svg.append(frame);
    let [i, j] = start;
    const hidden = () => frame.getAttribute("visibility") === "hidden";
    function go(row, column) {
      [i, j] = [clamp(row, grid.L), clamp(column, grid.S)];
      frame.setAttribute("x", grid.x + j * grid.w);
      frame.setAttribute("y", grid.y + i * grid.h);
      frame.setAttribute("visibility", "visible");
      say(i, j);
    }
    const point = (event) => {
      const cell = cellAt(svg, grid, event);
      if (cell && (cell[0] !== i || cell[1] !== j || hidden())) go(...cell);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    const box = onKeys(svg, `${name}: the arrow keys read out its cells`, (key) => {
      const ends = { Home: [i, 0], End: [i, grid.S - 1] }[key], step = ARROWS[key];
      if (!ends && !step) return false;
      if (ends) go(...ends);
      else if (hidden()) go(i, j);
      else go(i + step[0], j + step[1]);
      frame.scrollIntoView({ block: "nearest", inline: "nearest" });
      return true;
    });
    box.addEventListener("focus", () => box.matches(":focus-visible") && go(i, j));
    return { go, cell: () => [i, j] };
  }

  function hatch(grid, cells) {
    const d = cells.map(([i, j]) => {
      const x = grid.x + j * grid.w, y = grid.y + i * grid.h, { w, h } = grid;
      return `M${x} ${y + h / 2}l${w / 2} ${-h / 2}M${x} ${y + h}l${w} ${-h}M${x + w / 2} ${y + h}l${w / 2} ${-h / 2}`;
    });
    return draw("path", { d: d.join(""), stroke: "currentColor", "stroke-opacity": 0.55, "stroke-width": 0.8 });
  }

  // attention_map

  function attentionMap(figure) {
    const svg = figure.querySelector("svg"), grid = gridOf(svg);
    const [weights, queries, keys, axes, label] = ["weights", "queries", "keys", "axes", "label"].map((k) => JSON.parse(figure.dataset[k]));
    const [q, k] = [unique(queries), unique(keys)];
    const stored = (figure.dataset.mask ? JSON.parse(figure.dataset.mask).split(" ") : weights.map((row) => "1".repeat(row.length)))
      .map((row) => [...row].map(Number));
    const scores = figure.dataset.scores && JSON.parse(figure.dataset.scores);
    const divisor = Number(figure.dataset.divisor || 1);
    let shown = weights, may = stored, digits = 3, by = divisor;
    const read = reader("Point at a cell, or go there with the arrow keys.");
    const start = JSON.parse(figure.dataset.highlight || "[0, 0]");
    function text(i, j) {
      const value = `${label} ${num(shown[i][j], digits)}`, zero = typeof shown[i][j] === "string" || shown[i][j] === 0;
      const said = may[i][j] ? value : zero ? "masked" : `masked, but ${value}, a leak`;
      const raw = scores ? `, score ${num(scores[i][j])}` + (by === 1 ? "" : ` / ${num(by)} = ${num(scores[i][j] / by)}`) : "";
      return `${axes[0]} ${q[i]} → ${axes[1]} ${k[j]}: ${said}${raw}`;
    }
    const cursor = explore(svg, grid, start, label === "weight" ? "Attention map" : `Map of the ${label}`, (i, j) => (read.textContent = text(i, j)));
    if (scores) recompute();
    figure.append(read);

    /** Temperature and mask: each row's softmax again, from the scores that the figure carries. */
    function recompute() {
      const rects = [...svg.querySelectorAll(".mha-row")].map((row) => [...row.children]);
      const opacities = rects.map((row) => row.map((r) => r.getAttribute("fill-opacity")));
      const described = svg.getAttribute("aria-label"), statement = svg.querySelector(".mha-stated"), stated = statement?.textContent;
      const live = draw("g", { class: "mha-live" }), numbers = !!svg.querySelector(".mha-numbers");
      svg.insertBefore(live, svg.querySelector(".mha-mark") || svg.querySelector(".mha-cursor"));
      const causal = stored.every((row, i) => row.every((ok, j) => ok === Number(j <= i))), masked = !!figure.dataset.mask;
      const all = stored.map((row) => row.map(() => 1));
      const other = masked ? all : stored.map((row, i) => row.map((_, j) => Number(j <= i)));
      const name = divisor === 1 ? "temperature" : "scores divided by";
      const slider = html("input", { type: "range", min: -1, max: 1, step: 0.05, value: 0, "aria-label": name, oninput: () => update() });
      const value = html("span", { class: "mha-value", "aria-hidden": "true" });
      const box = html("input", { type: "checkbox", onchange: () => update(), ...(masked ? { checked: "" } : {}) });
      const reset = button("as stored", () => { slider.value = 0; box.checked = masked; update(); });
      const choice = masked || (queries.length === keys.length && queries.every((t, i) => t === keys[i]));
      below(figure, html("label", {}, `${name} `, slider, value), ...(choice ? [html("label", {}, box, masked && !causal ? " mask" : " causal mask")] : []), reset);

      function update(silent) {
        by = divisor * 10 ** Number(slider.value);
        may = box.checked === masked ? stored : other;
        const changed = Number(slider.value) !== 0 || may !== stored;
        [shown, digits] = changed ? [scores.map((row, i) => softmax(row.map((s) => s / by), may[i])), 2] : [weights, 3];
        value.textContent = num(by);
        slider.setAttribute("aria-valuetext", num(by));
        reset.disabled = !changed;
        svg.classList.toggle("mha-changed", changed);
        rects.forEach((row, i) => row.forEach((r, j) =>
          r.setAttribute("fill-opacity", changed ? Math.min(1, shown[i][j] * figure.dataset.shade).toFixed(2) : opacities[i][j])));
        live.replaceChildren(...(changed ? overlay() : []));
        const [i, j] = start;
        if (statement) statement.textContent = changed ? `${q[i]} → ${k[j]} ${may[i][j] ? num(shown[i][j]) : "masked"}` : stated;
        svg.setAttribute("aria-label", changed ? `Attention map, computed again: ${name} ${num(by)}, ${mask()}. ${text(...cursor.cell())}.` : described);
        if (!silent) read.textContent = `${changed ? `Computed again: ${name} ${num(by)}, ${mask()}` : "As stored"}. ${text(...cursor.cell())}`;
      }
      const mask = () => (may.flat().includes(0) ? "masked" : "no mask");
      function overlay() {
        const cells = may.flatMap((row, i) => row.map((ok, j) => [i, j, ok]));
        const hidden = cells.filter(([, , ok]) => !ok);
        const texts = numbers ? cells.filter(([, , ok]) => ok) : [];
        return [...(hidden.length ? [hatch(grid, hidden)] : []), ...texts.map(([i, j]) =>
          draw("text", { x: grid.x + (j + 0.5) * grid.w, y: grid.y + (i + 0.5) * grid.h + 4.3, "font-size": 12, "text-anchor": "middle" }, num(shown[i][j])))];
      }
      update(true);
    }
  }

  // head_maps

  function headMaps(figure) {
    const [queries, keys, label, top] = ["queries", "keys", "label", "top"].map((k) => JSON.parse(figure.dataset[k]));
    const [q, k] = [unique(queries), unique(keys)], S = keys.length;
    const start = JSON.parse(figure.dataset.highlight || "[0, 0]");
    const heads = [...figure.querySelectorAll(".mha-head")].map((g) => {
      const all = g.dataset.values.split(" ").map((t) => (t === "x" ? "masked" : /\d$/.test(t) ? Number(t) / 100 : t));
      return { g, name: g.dataset.name, values: queries.map((_, i) => all.slice(i * S, (i + 1) * S)) };
    });
    const text = (head, i, j) => {
      const v = head.values[i][j];
      return `${head.name}: query ${q[i]} → key ${k[j]}: ${v === "masked" ? v : `${label} ${num(v)}`}`;
    };
    const read = reader("Point at a cell, or choose a map to see it large.");
    const place = html("div", { class: "mha-large" }), overview = figure.querySelector("svg");
    const choice = html("select", { onchange: () => show() }, html("option", { value: "" }, "none"), ...heads.map((h, n) => html("option", { value: n }, h.name)));
    const back = button("all again", () => { choice.value = ""; show(); choice.focus(); });
    let cell = start;

    function show() {
      const head = heads[choice.value];
      heads.forEach((h) => h.g.classList.toggle("mha-on", h === head));
      back.disabled = !head;
      place.replaceChildren();
      if (!head) return void (read.textContent = "All maps as stored.");
      const { svg, grid } = largeMap(head, queries, keys, top);
      svg.setAttribute("aria-label", `${head.name} large, ${queries.length} queries by ${S} keys. ${text(head, ...cell)}.`);
      place.append(svg);
      explore(svg, grid, cell, head.name, (i, j) => { cell = [i, j]; read.textContent = text(head, i, j); }).go(...cell);
    }
    const panel = (event) => heads.map((head) => {
      const frame = head.g.querySelector("rect[fill=none]"), at = (name) => Number(frame.getAttribute(name));
      return [head, cellAt(overview, { x: at("x"), y: at("y"), w: at("width") / S, h: at("height") / queries.length, L: queries.length, S }, event)];
    }).find(([, found]) => found);
    overview.addEventListener("pointermove", (event) => {
      const [head, found] = panel(event) || [];
      if (head) read.textContent = text(head, ...found);
    });
    overview.addEventListener("click", (event) => {
      const [head, found] = panel(event) || [];
      if (head) { cell = found; choice.value = heads.indexOf(head); show(); }
    });
    back.disabled = true;
    below(figure, html("label", {}, "large: ", choice), back);
    figure.append(place, read);
  }

  /** One map as an SVG of its own, built like an attention_map. */
  function largeMap(head, queries, keys, top) {
    const cut = (t) => (t.length > 14 ? `${t.slice(0, 13)}…` : t), wide = (texts) => Math.max(...texts.map((t) => cut(t).length)) * 6.6 + 10;
    const [L, S] = [queries.length, keys.length], x = wide(queries), y = wide(keys);
    const w = Math.max(8, Math.min(34, (420 - x) / S)), grid = { x, y, w, h: w, L, S }, size = Math.min(11, w * 0.9);
    const svg = draw("svg", { viewBox: `0 0 ${x + w * S + 2} ${y + w * L + 2}`, role: "img", fill: "currentColor", style: `width:100%;max-width:${Math.round((x + w * S) * 1.25)}px` });
    head.values.forEach((row, i) => {
      const g = draw("g", { class: "mha-row", transform: `translate(0 ${y + i * w})`, fill: BLUE });
      row.forEach((v, j) => {
        const shade = typeof v === "string" ? 0 : Math.min(1, Math.abs(v) / top);
        g.append(draw("rect", { x: x + j * w, width: w, height: w, "fill-opacity": shade.toFixed(2), ...(v < 0 ? { fill: ORANGE } : {}) }));
      });
      svg.append(g, draw("text", { x: x - 6, y: y + (i + 0.7) * w, "font-size": size, "text-anchor": "end" }, cut(queries[i])));
    });
    keys.forEach((t, j) => {
      const [cx, cy] = [x + (j + 0.7) * w, y - 5];
      svg.append(draw("text", { x: cx, y: cy, "font-size": size, transform: `rotate(-90 ${cx} ${cy})` }, cut(t)));
    });
    const masked = head.values.flatMap((row, i) => row.map((v, j) => [i, j, v])).filter(([, , v]) => v === "masked");
    if (masked.length) svg.append(hatch(grid, masked));
    svg.append(draw("rect", { x, y, width: w * S, height: w * L, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 }));
    return { svg, grid };
  }

  kinds.attention = attentionMap;
  kinds.heads = headMaps;
})();
