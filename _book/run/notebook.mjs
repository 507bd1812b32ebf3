// The page's notebook with the reader's edits and outputs in it.

/** The published notebook (an object) with what the cells of the page hold now. exercise: its slug, or "". */
export function filled(published, cells, exercise) {
  const notebook = structuredClone(published);
  const code = notebook.cells.filter((cell) => cell.cell_type === "code");
  if (code.length !== cells.length) throw new Error("this page and its notebook differ: load the page again");
  code.forEach((target, index) => fill(target, cells[index], index + 1));
  if (exercise) notebook.metadata.mha_course = { exercise };
  return notebook;
}

function fill(target, cell, count) {
  const ran = cell.ranText !== null && cell.ranText === cell.text;
  if (!cell.runnable || (!cell.edited && !ran)) return; // as published, with its stored output
  target.source = cell.text;
  target.outputs = ran ? cell.outputs.map(stored) : [];
  target.execution_count = ran ? count : null;
}

/** An output as a notebook file holds it. */
function stored({ check, ...output }) {
  return output.output_type === "execute_result" ? { ...output, execution_count: null } : output;
}
