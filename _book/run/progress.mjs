// How far a learner is: squares and a count, from what this browser keeps.
import { button, h } from "./html.mjs";
import { forget, progress } from "./store.mjs";

const right = ({ page, questions }) => Object.entries(questions).filter(([name, hash]) => progress.isRight(page, name, hash)).length;

/** "■■□ 2 of 3" of an exercise. */
export function count(exercise) {
  const done = right(exercise), all = Object.keys(exercise.questions).length;
  const squares = h("span", { className: "run-squares" }, "■".repeat(done) + "□".repeat(all - done));
  squares.setAttribute("aria-hidden", "true");
  return [squares, ` ${done} of ${all} right`];
}

/** Fill the overview of all exercises. */
export function overview(place) {
  if (!place.dataset.exercises) return;
  const exercises = JSON.parse(place.dataset.exercises);
  const rows = exercises.map((e) => h("li", {}, h("a", { href: e.href }, e.title), " ", h("span", {}, ...count(e))));
  const again = button("Forget my answers and progress", () => {
    if (!confirm("Forget all edits, answers and progress that this browser keeps for this course?")) return;
    forget();
    overview(place);
  });
  place.replaceChildren(h("ul", {}, ...rows), h("p", {}, "Only this browser keeps your answers and progress; nothing is sent. ", again));
}
