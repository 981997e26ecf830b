// Try: a document, labels, and what the model says while you type.
import * as api from "./api.js";
import { ask, calmly, dropzone, fill, make, notice, percent } from "./dom.js";
import { labelEditor } from "./labels.js";

const EXAMPLE = {
  text: "I was charged twice for the same order. The parcel came a week late, but your support was very kind about it.",
  labels: { "billing problem": "a wrong charge or an invoice", "delivery": "when and how an order arrives",
    "praise": "the writer is happy about something", "login trouble": "the writer cannot sign in" },
};
const SHOWN = 20000; // characters of a document that are shown again with marks
const MOST = 50; // documents of a file

const kept = () => { try { return JSON.parse(localStorage.getItem("try")) ?? EXAMPLE; } catch { return EXAMPLE; } };

export async function tryView(main, shared) {
  const state = { threshold: 0.5, chosen: 0, label: null, prediction: null, ...kept() };
  let asking;
  const results = make("ul.bars", { "aria-label": "Labels by probability" });
  const told = make("p.soft", { "aria-live": "polite" });
  const evidence = make("section.card", { hidden: true, "aria-labelledby": "evidence-title" });
  const several = make("div.row", { role: "group", "aria-label": "Documents" });
  const input = make("textarea", { value: state.text, spellcheck: false, rows: 10, oninput: () => {
    state.text = input.value;
    changed();
  } });
  const editor = labelEditor(state.labels, (labels) => { state.labels = labels; changed(); }, wordings);
  const slider = make("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "Threshold", oninput: () => {
    state.threshold = slider.value / 100;
    shown.textContent = percent(state.threshold);
    drawBars();
  } });
  const shown = make("output", {}, "50%");

  const documents = () => state.text.split(/^\s*---\s*$/m).map((one) => one.trim()).filter(Boolean);
  const current = () => documents()[Math.min(state.chosen, documents().length - 1)] ?? "";

  const keep = () => {
    try { localStorage.setItem("try", JSON.stringify({ text: state.text, labels: state.labels })); }
    catch { localStorage.removeItem("try"); } // a text too long for the browser to keep
  };
  const classify = calmly(async () => {
    keep();
    asking?.abort();
    drawDocuments();
    if (!current() || !Object.keys(state.labels).length) return clear("Write a document and at least one label.");
    asking = new AbortController();
    try {
      const asked = { documents: [current()], labels: state.labels };
      const { predictions: [found] } = await api.post("/classify", asked, asking.signal);
      if (found.error) return clear(found.error);
      state.prediction = found;
      drawBars();
      told.textContent = found.truncated ? "Only the beginning of this long document was read." : "";
      if (state.label) explain(state.label);
    } catch (error) { shared.show(error); }
  }, 140);
  const changed = () => classify();

  function clear(message) {
    state.prediction = null;
    results.replaceChildren();
    evidence.hidden = true;
    told.textContent = message;
  }

  function drawDocuments() {
    const count = Math.min(documents().length, MOST);
    state.chosen = Math.min(state.chosen, Math.max(0, count - 1));
    several.hidden = count < 2;
    several.replaceChildren(...Array.from({ length: count }, (_, place) => make("button", {
      type: "button", "aria-pressed": String(place === state.chosen), "aria-label": `Document ${place + 1}`,
      onclick: () => { state.chosen = place; changed(); } }, String(place + 1))));
  }

  function drawBars() {
    if (!state.prediction) return;
    const ranked = Object.entries(state.prediction.probabilities).sort((a, b) => b[1] - a[1]);
    const focused = document.activeElement?.dataset?.label;
    results.replaceChildren(...ranked.map(([name, share]) => {
      const cut = make("span.cut");
      cut.style.left = `${100 * state.threshold}%`;
      return make("li", {}, make(`button.bar${share >= state.threshold ? ".applies" : ""}`, {
        type: "button", "data-label": name, "aria-pressed": String(state.label === name),
        onclick: () => { state.label = state.label === name ? null : name; drawBars(); explain(state.label); } },
      make("span.name", {}, name), make("span.track", {}, fill(share), cut),
      make("span.share", {}, percent(share), share >= state.threshold && make("span.unseen", {}, " applies"))));
    }));
    if (focused) [...results.querySelectorAll("button")].find((one) => one.dataset.label === focused)?.focus();
  }

  async function explain(name) {
    if (!name || !(name in state.labels)) { evidence.hidden = true; return; }
    const text = current();
    try {
      const found = await api.post("/explain", { text, labels: state.labels });
      if (text === current() && state.label === name) drawEvidence(name, text, found.sentences);
    } catch (error) { shared.show(error); }
  }

  function drawEvidence(name, text, sentences) {
    const most = Math.max(1, ...sentences.map((one) => Math.abs(one.weights[name] ?? 0)));
    const parts = sentences.map((one) => {
      const weight = one.weights[name] ?? 0;
      const mark = make(`mark.${weight > 0 ? "for" : "against"}`, { title: `${weight > 0 ? "for" : "against"}: ${Math.abs(weight).toFixed(1)} log-odds` },
        text.slice(one.start, one.end));
      const strength = Math.min(0.5, 0.5 * Math.abs(weight) / most);
      mark.style.backgroundColor = `rgb(var(--${weight > 0 ? "for" : "against"}) / ${strength.toFixed(2)})`;
      return mark;
    });
    const end = sentences.at(-1)?.end ?? 0;
    evidence.hidden = false;
    evidence.replaceChildren(
      make("h2", { id: "evidence-title" }, `For and against “${name}”`),
      make("p.soft.legend", {}, make("span.for", {}, "for"), make("span.against", {}, "against"),
        sentences.length ? "The document was asked with and without each sentence."
          : "This is one sentence: there is nothing to leave out."),
      make("div.text", { dir: "auto", tabIndex: 0, role: "region", "aria-label": "The document with its sentences marked" },
        ...parts, text.slice(end, SHOWN)));
  }

  // A wording is asked as it would be as the description: by name and description, as everywhere.
  function wordings(name, description, use) {
    if (!name) { notice("Give the label a name first."); return; }
    const lines = make("textarea.short", { rows: 4, value: description ? `${description}\n` : "" });
    const found = make("ul.bars.wordings", { "aria-label": "Wordings by line", "aria-live": "polite" });
    let latest = 0;
    const compare = calmly(async () => {
      const texts = [...new Set(["", ...lines.value.split("\n").map((one) => one.trim())])];
      const number = latest += 1;
      if (!current()) { found.replaceChildren(make("li.soft", {}, "Write a document first.")); return; }
      try {
        const shares = await Promise.all(texts.map((text) => worded(name, text)));
        if (number !== latest) return;
        found.replaceChildren(...texts.map((text, place) => make("li", {}, make("button.bar", { type: "button",
          title: "Use this wording", onclick: () => { use(text); document.getElementById("dialog").close(); } },
        make("span.name", {}, text || make("em", {}, "the name alone")), make("span.track", {}, fill(shares[place])),
        make("span.share", {}, percent(shares[place]))))));
      } catch (error) { shared.show(error); }
    }, 200);
    lines.addEventListener("input", compare);
    ask(`Other wordings of “${name}”`, [
      make("label.field", {}, "What it means, one wording a line", lines),
      make("p.soft", {}, "Each is asked about this document for itself, without the other labels. Choose one to use it."),
      found], () => []);
    compare();
  }

  async function worded(name, text) {
    const { predictions: [found] } = await api.post("/classify",
      { documents: [current()], labels: { [name]: text || null }, competition: 0 });
    if (found.error) throw new Error(found.error);
    return found.probabilities[name];
  }

  async function take(file) {
    const text = await file.text();
    const texts = /\.(csv|jsonl?|tsv)$/i.test(file.name) ? rows(file.name, text) : [text];
    if (texts.length > MOST) notice(`The first ${MOST} of ${texts.length} documents are here. Label takes all of them.`);
    state.text = input.value = texts.slice(0, MOST).join("\n---\n");
    state.chosen = 0;
    changed();
  }

  main.replaceChildren(make("div.columns.trying", {},
    make("div.stack", {},
      make("section.card", { "aria-labelledby": "document-title" },
        make("h1", { id: "document-title" }, "A document"),
        make("label.field", {}, make("span.soft", {}, "Several are parted by a line with ---"), input),
        several,
        dropzone("Drop a .txt, .csv or .jsonl file here, or", ".txt,.csv,.tsv,.jsonl,.json,.md", take)),
      make("section.card.labels", { "aria-labelledby": "labels-title" },
        make("h2", { id: "labels-title" }, "Labels"), editor.element)),
    make("div.stack", {},
      make("section.card", { "aria-labelledby": "results-title" },
        make("h2", { id: "results-title" }, "What applies"),
        results, told,
        make("label.field", {}, make("span.row.spread", {}, "Threshold ", shown), slider),
        make("p.soft", {}, "Choose a label to see which sentences speak for and against it."),
        make("button.main", { type: "button", onclick: () => shared.newProject(state.labels) },
          "Label documents with these")),
      evidence)));
  classify();
  return () => asking?.abort();
}

// The texts of a file: a column or field named text, or the first one.
function rows(name, content) {
  if (!/\.csv$|\.tsv$/i.test(name)) {
    const values = /\.json$/i.test(name) ? JSON.parse(content) : content.split("\n").filter((line) => line.trim()).map(JSON.parse);
    return values.map((one) => (typeof one === "string" ? one : one.text ?? Object.values(one)[0])).filter(Boolean).map(String);
  }
  const table = cells(content, /\.tsv$/i.test(name) ? "\t" : ",");
  const column = Math.max(0, table[0].indexOf("text"));
  return table.slice(1).map((row) => row[column]).filter(Boolean);
}

function cells(content, sign) {
  const table = [[""]];
  let quoted = false;
  for (let place = 0; place < content.length; place += 1) {
    const one = content[place];
    const row = table.at(-1);
    if (quoted ? one === '"' && content[place + 1] === '"' : false) { row[row.length - 1] += '"'; place += 1; }
    else if (one === '"') quoted = !quoted;
    else if (!quoted && one === sign) row.push("");
    else if (!quoted && one === "\n") table.push([""]);
    else if (quoted || one !== "\r") row[row.length - 1] += one;
  }
  return table;
}
