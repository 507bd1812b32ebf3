// The editor of a cell: CodeMirror, small, in the colours that the theme gives to code. Loaded when a cell is first edited.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, keymap } from "@codemirror/view";
import { tagHighlighter, tags as t } from "@lezer/highlight";

// Pygments' names for the same parts: the stylesheet of the pages then colours both, light and dark.
const colours = tagHighlighter([
  { tag: [t.comment, t.lineComment], class: "c1" },
  { tag: [t.string, t.docString, t.special(t.string)], class: "s2" },
  { tag: t.number, class: "mi" },
  { tag: [t.bool, t.null], class: "kc" },
  { tag: [t.keyword, t.controlKeyword, t.definitionKeyword, t.operatorKeyword], class: "k" },
  { tag: t.moduleKeyword, class: "kn" },
  { tag: [t.operator, t.compareOperator, t.arithmeticOperator, t.logicOperator, t.bitwiseOperator], class: "o" },
  { tag: [t.punctuation, t.paren, t.squareBracket, t.brace, t.separator], class: "p" },
  { tag: t.function(t.definition(t.variableName)), class: "nf" },
  { tag: t.definition(t.className), class: "nc" },
  { tag: [t.variableName, t.propertyName], class: "n" },
]);

/** An editor in `parent`. onChange(text) after each change, onRun() for Shift+Enter and Ctrl+Enter, onLeave() for Escape. */
export function edit({ parent, text, label, describedBy, onChange, onRun }) {
  const run = () => (onRun(), true);
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        python(),
        syntaxHighlighting(colours),
        Prec.highest(keymap.of([{ key: "Shift-Enter", run }, { key: "Mod-Enter", run }])),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]), // Escape, then Tab, leaves
        EditorView.contentAttributes.of({ tabindex: "0", "aria-label": label, "aria-describedby": describedBy }),
        EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
      ],
    }),
  });
  return {
    focus: () => view.focus(),
    set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    remeasure: () => view.requestMeasure(),
  };
}
