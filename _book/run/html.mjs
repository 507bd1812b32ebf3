// Making elements.

/** An element with these properties and children. */
export function h(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** A button. */
export const button = (label, onclick, more) => h("button", { type: "button", className: "run-button", textContent: label, onclick, ...more });

/** Offer a file for download. */
export function save(name, text, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
