// Learn: how good the classifier is on documents it was not fitted on, what it still needs, and a file to take away.
import * as api from "./api.js";
import { make, percent } from "./dom.js";
import { learningCurve, reliabilityDiagram } from "./charts.js";

const LOOK = 1500; // milliseconds between two looks while something is being learned

export async function learnView(main, shared) {
  if (!shared.project) {
    main.replaceChildren(make("section.card.empty", {}, make("h1", {}, "Nothing to learn from yet"),
      make("p.soft", {}, "Make a project and label some documents first."),
      make("button.main", { type: "button", onclick: () => shared.newProject() }, "New project")));
    return null;
  }
  const at = `/projects/${shared.project}`;
  const project = await api.get(at);
  let waiting;
  let drawn = "";

  async function look() {
    clearTimeout(waiting);
    try {
      const found = await api.get(`${at}/learning`);
      const content = JSON.stringify(found);
      if (content !== drawn) draw(found);
      drawn = content;
      if (found.state.working) waiting = setTimeout(look, LOOK);
    } catch (error) { shared.show(error); }
  }

  const learn = async () => {
    try {
      await api.post(`${at}/learn`);
      await look();
    } catch (error) { shared.show(error); }
  };
  const take = () => api.download(`${at}/classifier`, `${project.name}.zip`).catch(shared.show);

  function draw({ state, counts, last, curve }) {
    const few = counts.done < state.least;
    main.replaceChildren(make("div.stack", {},
      make("section.card", { "aria-labelledby": "title" },
        make("div.row.spread", {},
          make("div", {}, make("h1", { id: "title" }, project.name), make("p.soft", { role: "status" }, progress(state, counts, last, few))),
          make("div.row", {},
            make("button", { type: "button", disabled: few || state.working, onclick: learn }, "Learn now"),
            make("button.main", { type: "button", disabled: !last, onclick: take }, "Download classifier"))),
        state.error && make("p.warn", {}, state.error)),
      ...(last ? measured(last, curve) : [])));
  }

  function measured(last, curve) {
    const { micro_f1: micro, macro_f1: macro, ece } = last.scores;
    const tile = (title, value, more) => make("section.card", {}, make("h2", {}, title), make("p.big", {}, value), make("p.soft", {}, more));
    const between = (one) => `95% between ${percent(one.low)} and ${percent(one.high)}`;
    return [
      make("div.tiles", {},
        tile("F1 of all decisions", percent(micro.value), between(micro)),
        tile("F1, mean of labels", percent(macro.value), between(macro)),
        tile("Off by", percent(ece), "mean gap between probability and truth"),
        tile("Answers", String(last.documents), `${last.regime}, cross-validated`)),
      make("div.columns", {},
        make("section.card", { "aria-labelledby": "curve" }, make("h2", { id: "curve" }, "Learning curve"), learningCurve(curve)),
        make("section.card", { "aria-labelledby": "reliability" }, make("h2", { id: "reliability" }, "Can its probabilities be believed?"),
          reliabilityDiagram(last.reliability))),
      make("section.card", { "aria-labelledby": "needs" }, make("h2", { id: "needs" }, "What each label still needs"), labelTable(last.labels)),
      make("section.card", { "aria-labelledby": "differ" }, make("h2", { id: "differ" }, "Where you and the model disagree"),
        make("p.soft", {}, "Those first where the model is surest. Either of you may be wrong."), disagreements(last.disagreements)),
      make("p.soft", {}, "All numbers are cross-validated: each document was judged by a classifier that had not seen it."
        + " Documents that were suggested are harder than most, so in use it is often better."),
    ];
  }

  function labelTable(labels) {
    const head = ["Label", "Needs", "Yes", "Predicted", "Precision", "Recall", "F1"];
    return make("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Labels" }, make("table", {},
      make("thead", {}, make("tr", {}, head.map((name, place) => make(place > 1 ? "th.number" : "th", { scope: "col" }, name)))),
      make("tbody", {}, labels.map((one) => make("tr", {},
        make("th", { scope: "row" }, one.label), make("td.needs", {}, one.needs || "nothing"),
        make("td.number", {}, String(one.gold)), make("td.number", {}, String(one.predicted)),
        ...["precision", "recall", "f1"].map((key) => make("td.number", {}, percent(one[key]))))))));
  }

  function disagreements(found) {
    if (!found.length) return make("p", {}, "Nowhere.");
    return make("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Disagreements" }, make("table", {},
      make("thead", {}, make("tr", {}, ["Label", "Open", "You", "Model", "Document"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, found.map((one) => make("tr", {},
        make("th", { scope: "row" }, one.label), make("td", {}, make("button.plain", { type: "button",
          "aria-label": `Look at document ${one.id} again`,
          onclick: () => { shared.jump = one.place; location.hash = "label"; } }, "Look")),
        make("td", {}, one.gold ? "yes" : "no"), make("td", {}, percent(one.probability)),
        make("td.document", { dir: "auto" }, one.text))))));
  }

  await look();
  return () => clearTimeout(waiting);
}

function progress(state, counts, last, few) {
  if (few) return `${counts.done} answers so far; it learns from ${state.least} on.`;
  if (state.working) return "Learning …";
  const since = counts.done - (last?.documents ?? 0);
  return since > 0 ? `${since} answers since it last learned.` : "It has learned from every answer.";
}
