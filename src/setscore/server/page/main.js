// The page: three views, and the project that two of them are about.
import * as api from "./api.js";
import { ask, make, notice } from "./dom.js";
import { labelEditor } from "./labels.js";
import { tryView } from "./try.js";
import { labelView } from "./label.js";
import { learnView } from "./learn.js";

const views = { try: tryView, label: labelView, learn: learnView };
const main = document.getElementById("main");
let leave = () => {};

// What the views share.
const shared = {
  project: localStorage.getItem("project"),
  jump: null, // the place of a document to show next
  show(error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) askKey();
    else notice(error.message);
  },
  choose(identifier, view) {
    shared.project = identifier;
    if (identifier) localStorage.setItem("project", identifier);
    else localStorage.removeItem("project");
    if (view && location.hash !== `#${view}`) location.hash = view;
    else render();
  },
  newProject,
};

function askKey() {
  const input = make("input", { type: "password", autocomplete: "off" });
  const use = () => { api.useKey(input.value.trim()); location.reload(); };
  ask("This server needs a key", make("form", { onsubmit: (event) => { event.preventDefault(); use(); } },
    make("label.field", {}, "Key", input), make("p.soft", {}, "It is kept until you close this tab.")),
  () => [make("button.main", { type: "button", onclick: use }, "Use it")]);
}

function newProject(labels = {}) {
  const name = make("input", { type: "text", maxLength: 200, required: true });
  const editor = labelEditor(Object.keys(labels).length ? labels : { "": "" });
  const create = async () => {
    try {
      const made = await api.post("/projects", { name: name.value.trim(), labels: editor.read() });
      document.getElementById("dialog").close();
      shared.choose(made.id, "label");
    } catch (error) { shared.show(error); }
  };
  ask("New project", [make("label.field", {}, "Name", name), make("h3", {}, "Labels"),
    make("p.soft", {}, "One sentence that says what a label covers helps more than anything else."), editor.element],
  () => [make("button.main", { type: "button", onclick: create }, "Create")]);
  name.focus();
}

async function drawChooser(view) {
  const place = document.getElementById("chooser");
  place.replaceChildren();
  if (view === "try") return;
  const projects = await api.get("/projects");
  if (!projects.some((one) => one.id === shared.project)) shared.project = projects.at(-1)?.id ?? null;
  const select = make("select", { "aria-label": "Project", onchange: () => shared.choose(select.value) },
    projects.map((one) => make("option", { value: one.id, selected: one.id === shared.project }, one.name)));
  if (projects.length) place.append(select);
  place.append(make("button", { type: "button", onclick: () => newProject() }, "New project"));
}

async function render() {
  const name = location.hash.slice(1) in views ? location.hash.slice(1) : "try";
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · SetScore`;
  try {
    await drawChooser(name);
    leave = (await views[name](main, shared)) ?? (() => {});
  } catch (error) { shared.show(error); }
}

addEventListener("hashchange", () => render().then(() => main.focus()));
render();
