// An editor of labels: names, and what each of them means.
import { make } from "./dom.js";

export function labelEditor(labels, changed, wordings) {
  const rows = make("div");
  const row = (name = "", description = "") => {
    const made = make("div.label-row", {},
      make("input", { type: "text", value: name, placeholder: "Name", "aria-label": "Name of the label", oninput: tell }),
      make("input", { type: "text", value: description ?? "", placeholder: "What it means (optional)",
        "aria-label": "Description of the label", oninput: tell }),
      make("div.tools", {},
        wordings && make("button.icon", { type: "button", title: "Compare other wordings", "aria-label": "Compare wordings",
          onclick: () => wordings(made.children[0].value.trim(), made.children[1].value.trim(), (text) => {
            made.children[1].value = text;
            tell();
          }) }, "⇄"),
        make("button.icon", { type: "button", title: "Remove", "aria-label": "Remove the label",
          onclick: () => { made.remove(); tell(); } }, "✕")));
    return made;
  };
  const read = () => Object.fromEntries([...rows.children]
    .map((one) => [one.children[0].value.trim(), one.children[1].value.trim() || null])
    .filter(([name]) => name));
  const tell = () => changed?.(read());
  rows.append(...Object.entries(labels).map(([name, text]) => row(name, text)));
  const more = make("button.plain", { type: "button", onclick: () => {
    rows.append(row());
    rows.lastChild.children[0].focus();
  } }, "+ Add a label");
  const paste = (text) => {
    rows.append(...parse(text).map(([name, description]) => row(name, description)));
    tell();
  };
  // Several lines pasted into a name are several labels.
  rows.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (!text.includes("\n") || event.target.value) return;
    event.preventDefault();
    event.target.closest(".label-row").remove();
    paste(text);
  });
  return { element: make("div", {}, rows, more), read, paste };
}

// A label a line: a name, or a name, a colon or a tab, and what it means.
export function parse(text) {
  return text.split(/\r?\n/).map((line) => line.trim().replace(/^- /, "")).filter(Boolean).map((line) => {
    const found = line.match(/^([^:\t]+)[:\t]\s*(.*)$/);
    return found ? [found[1].trim(), found[2].trim()] : [line, ""];
  });
}
