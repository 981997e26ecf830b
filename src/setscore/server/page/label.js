// Label: one document after the other, the most useful first. Every answer is stored before the next one comes.
import * as api from "./api.js";
import { ask, dropzone, fill, make, notice, percent } from "./dom.js";
import { labelEditor } from "./labels.js";

const KEYS = "1234567890qwertzopdfghjklxcvbnm"; // of the labels; a, s and u are taken
const SHOWN = 100000; // characters of a document that are shown

export async function labelView(main, shared) {
  if (!shared.project) return drawNone(main, shared);
  const at = `/projects/${shared.project}`;
  let project = await api.get(at);
  let now = null; // the document at hand
  let chosen = new Set();
  let filter = "";
  let busy = false;

  const bar = make("progress", { max: 1, value: 0, "aria-label": "Documents done" });
  const counted = make("p.soft", { "aria-live": "polite" });
  const place = make("div.columns.wide");

  async function run(work) {
    if (busy) return;
    busy = true;
    try { await work(); } catch (error) { shared.show(error); } finally { busy = false; }
  }

  function drawProgress(counts) {
    const total = counts.open + counts.done + counts.skipped;
    bar.max = Math.max(1, total);
    bar.value = counts.done;
    counted.textContent = `${counts.done} of ${total} done${counts.skipped ? `, ${counts.skipped} skipped` : ""}`;
  }

  async function next(after) {
    const jump = shared.jump;
    shared.jump = null;
    const query = new URLSearchParams({ ...(filter && { label: filter }), ...(after !== undefined && { after }) });
    show(await api.get(jump === null ? `${at}/next?${query}` : `${at}/documents/${jump}`));
  }

  function show(found) {
    now = found;
    drawProgress(found.counts);
    if (!found.document) { drawDone(found.counts); return; }
    const said = found.document.status === "done" || found.document.labels.length;
    chosen = new Set(said ? found.document.labels : found.prediction.labels ?? []);
    drawDocument();
  }

  function drawDocument() {
    const { document: one, prediction, reasons } = now;
    const proposed = new Set(prediction.labels ?? []);
    const choices = project.labels.map(({ name, description }, number) => {
      const share = prediction.probabilities?.[name] ?? 0;
      const choice = make("button.choice", { type: "button", role: "checkbox", "aria-checked": String(chosen.has(name)),
        "data-label": name, onclick: () => flip(name) },
      make("kbd", { "aria-hidden": "true" }, KEYS[number] ?? ""),
      make("span.about", {},
        make("span.name", {}, name, chosen.has(name) !== proposed.has(name) && make("span.flipped", {}, " flipped")),
        description && make("span.meaning", {}, description)),
      make("span.track.small", {}, fill(share)), make("span.share", {}, make("span.unseen", {}, "proposed "), percent(share)));
      return make("li", {}, choice);
    });
    const focused = document.activeElement?.dataset?.label;
    place.replaceChildren(
      make("section.card", { "aria-labelledby": "one" },
        make("div.row.spread", {}, make("h2", { id: "one" }, `Document ${one.id}`),
          make("span.pill", {}, now.prediction.regime)),
        prediction.error && make("p.warn", {}, `The model cannot read it: ${prediction.error}.`),
        make("div.text", { dir: "auto", tabIndex: 0, role: "region", "aria-label": "Text of the document" },
          one.text.slice(0, SHOWN)),
        one.text.length > SHOWN && make("p.soft", {}, `${one.text.length - SHOWN} more characters are not shown.`),
        reasons.length > 0 && make("p.soft", {}, `Why this one: ${reasons.join("; ")}.`)),
      make("section.card", { "aria-labelledby": "proposal" },
        make("h2", { id: "proposal" }, "Labels that apply"),
        make("ul.choices", { "aria-label": "Labels" }, choices),
        make("div.row.answers", {},
          make("button.main", { type: "button", onclick: accept }, "Accept ", make("kbd", { "aria-hidden": "true" }, "Enter")),
          make("button", { type: "button", onclick: skip }, "Skip ", make("kbd", { "aria-hidden": "true" }, "S")),
          make("button", { type: "button", onclick: undo }, "Undo ", make("kbd", { "aria-hidden": "true" }, "U")))));
    if (focused) [...place.querySelectorAll(".choice")].find((choice) => choice.dataset.label === focused)?.focus();
  }

  function drawDone(counts) {
    const nothing = counts.open + counts.done + counts.skipped === 0;
    place.replaceChildren(make("section.card.empty", {},
      make("h2", {}, nothing ? "No documents yet" : "All documents are done"),
      make("p.soft", {}, nothing ? "Load a file: CSV with a column “text”, JSONL with a field “text”, or a document a line."
        : "Look at Learn, or load more."),
      importer(), !nothing && make("button", { type: "button", onclick: undo }, "Undo the last answer")));
  }

  const flip = (name) => {
    if (chosen.has(name)) chosen.delete(name);
    else chosen.add(name);
    drawDocument();
  };
  const answer = (status) => run(async () => {
    if (!now?.document) return;
    const labels = status === "done" ? [...chosen] : now.document.labels;
    const { place: answered } = now.document;
    await api.put(`${at}/documents/${answered}`, { status, labels });
    await next(answered);
  });
  const accept = () => answer("done");
  const skip = () => answer("skipped");
  const undo = () => run(async () => {
    const taken = await api.post(`${at}/undo`);
    if (!taken.document) { notice("There is nothing to undo."); return; }
    shared.jump = taken.document.place;
    await next();
  });

  function importer() {
    const column = make("input", { type: "text", value: "text" });
    const take = (file) => run(async () => {
      const form = (file.name.match(/\.(csv|tsv|jsonl|json|txt)$/i)?.[1] ?? "txt").toLowerCase();
      const query = new URLSearchParams({ format: form, text_column: column.value.trim() || "text" });
      const done = await api.upload(`${at}/documents?${query}`, file);
      notice([`${done.added} documents were added.`, ...done.notes].join(" "));
      document.getElementById("dialog").close();
      await next();
    });
    return make("div.stack", {},
      make("label.field", {}, "Column or field with the text", column),
      dropzone("Drop a .csv, .jsonl or .txt file here, or", ".csv,.tsv,.jsonl,.json,.txt", take));
  }

  const more = () => ask("Add documents", [make("p.soft", {},
    "A column “labels” makes documents done: so an export can be loaded back."), importer()], () => []);

  function editLabels() {
    const editor = labelEditor(Object.fromEntries(project.labels.map((one) => [one.name, one.description])));
    ask("Labels of this project", [make("p.soft", {}, "A new label opens the documents that are done: nobody was asked"
      + " about it yet. What was said before is proposed."), editor.element],
    (close) => [make("button.main", { type: "button", onclick: () => run(async () => {
      const { note } = await api.put(`${at}/labels`, { labels: editor.read() });
      close();
      if (note) notice(note);
      shared.choose(shared.project);
    }) }, "Save")]);
  }

  const removeProject = () => ask(`Delete “${project.name}”?`, make("p", {},
    "Its documents and answers are gone then. Export them first if you may want them."),
  (close) => [make("button", { type: "button", onclick: () => run(async () => {
    await api.remove(at);
    close();
    shared.choose(null);
  }) }, "Delete it")]);

  const filters = make("select", { "aria-label": "Show first the documents of a label", onchange: () => {
    filter = filters.value;
    run(() => next());
  } }, make("option", { value: "" }, "The most useful first"),
  project.labels.map(({ name }) => make("option", { value: name }, `Likely ${name}`)));

  main.replaceChildren(make("div.stack", {},
    make("section.card", { "aria-labelledby": "project-title" },
      make("div.row.spread", {}, make("h1", { id: "project-title" }, project.name), filters,
        make("div.row", {},
          make("button.plain", { type: "button", onclick: more }, "Add documents"),
          make("button.plain", { type: "button", onclick: editLabels }, "Edit labels"),
          make("button.plain", { type: "button", onclick: () => run(() => api.download(`${at}/export?format=csv`, `${project.name}.csv`)) }, "Export CSV"),
          make("button.plain", { type: "button", onclick: () => run(() => api.download(`${at}/export?format=jsonl`, `${project.name}.jsonl`)) }, "Export JSONL"),
          make("button.plain", { type: "button", onclick: removeProject }, "Delete"))),
      bar, counted),
    place));

  const press = (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !now?.document) return;
    const key = event.key.toLowerCase();
    const label = project.labels[KEYS.indexOf(key)];
    if (key === "enter" && !event.target.closest("button, a")) accept();
    else if (key === "a") accept();
    else if (key === "s") skip();
    else if (key === "u") undo();
    else if (label && key.length === 1) flip(label.name);
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", press);
  await next();
  return () => removeEventListener("keydown", press);
}

function drawNone(main, shared) {
  main.replaceChildren(make("section.card.empty", {},
    make("h1", {}, "Label documents"),
    make("p", {}, "Say which labels apply to a few of your documents. The model proposes, you accept or flip."),
    make("p.soft", {}, "A project keeps documents and answers on this server, at once."),
    make("button.main", { type: "button", onclick: () => shared.newProject() }, "New project")));
}
