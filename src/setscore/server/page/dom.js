// Elements. Whatever comes from a document or a label is set as text, never as markup.

export function make(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && !key.startsWith("aria") && key !== "list" && key !== "form") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const percent = (value) => `${Math.round(100 * value)}%`;

export function fill(share) {
  const bar = make("span.fill");
  bar.style.width = `${(100 * share).toFixed(1)}%`;
  return bar;
}

let hiding;
export function notice(message) {
  const place = document.getElementById("notice");
  place.replaceChildren(make("p", {}, message));
  clearTimeout(hiding);
  hiding = setTimeout(() => place.replaceChildren(), 7000);
}

// Runs after a pause, and only the last time it was asked.
export function calmly(work, pause) {
  let waiting;
  return (...values) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => work(...values), pause);
  };
}

export function ask(title, content, actions) {
  const dialog = document.getElementById("dialog");
  const close = () => dialog.close();
  dialog.replaceChildren(
    make("h2", { id: "dialog-title" }, title),
    ...[content].flat(),
    make("div.row", {}, ...actions(close), make("button", { type: "button", onclick: close }, "Cancel")),
  );
  dialog.showModal();
  return close;
}

// Files that are dropped on an element, or chosen.
export function dropzone(text, accept, take) {
  const input = make("input", { type: "file", accept, hidden: true, onchange: () => input.files[0] && take(input.files[0]) });
  const zone = make("div.drop", {
    ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
    ondragleave: () => zone.classList.remove("over"),
    ondrop: (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
    },
  }, text, " ", make("button.plain", { type: "button", onclick: () => input.click() }, "choose a file"), input);
  return zone;
}
