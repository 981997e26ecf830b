// Two small pictures, drawn as SVG, each with a sentence for those who do not see it.
import { draw, make, percent } from "./dom.js";

const WIDTH = 420, HEIGHT = 230, LEFT = 40, BOTTOM = 28, TOP = 10, RIGHT = 24;

function frame(label, xTicks, yTicks, x, y) {
  const picture = draw("svg", { class: "figure", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const [value, text] of yTicks) {
    picture.append(draw("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      draw("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  for (const [value, text] of xTicks) picture.append(draw("text", { x: x(value), y: HEIGHT - 8, "text-anchor": "middle" }, text));
  return picture;
}

const scale = (low, high, from, to) => (value) => from + ((value - low) / Math.max(1e-9, high - low)) * (to - from);
const shares = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, percent(value)]);

export function learningCurve(curve) {
  const points = curve.map((one) => ({ n: one.documents, ...one.micro_f1 }));
  const first = Math.max(0, points[0].n - 1), last = points.at(-1).n + 1;
  const x = scale(first, last, LEFT, WIDTH - RIGHT), y = scale(0, 1, HEIGHT - BOTTOM, TOP);
  const ticks = [...new Set([points[0].n, points[Math.floor(points.length / 2)].n, points.at(-1).n])].map((n) => [n, String(n)]);
  const now = points.at(-1);
  const picture = frame(`F1 was ${percent(points[0].value)} after ${points[0].n} answers and is ${percent(now.value)} after ${now.n}.`,
    ticks, shares, x, y);
  const edge = [...points.map((one) => `${x(one.n)},${y(one.high)}`), ...points.toReversed().map((one) => `${x(one.n)},${y(one.low)}`)];
  if (points.length > 1) {
    picture.append(draw("polygon", { class: "band", points: edge.join(" ") }),
      draw("polyline", { class: "curve", points: points.map((one) => `${x(one.n)},${y(one.value)}`).join(" ") }));
  } else {
    picture.append(draw("line", { class: "curve", x1: x(now.n), x2: x(now.n), y1: y(now.low), y2: y(now.high) }));
  }
  for (const one of points) picture.append(draw("circle", { class: "dot", cx: x(one.n), cy: y(one.value), r: 3.5 }));
  return make("figure", {}, picture, make("figcaption.soft", {}, "F1 by number of answers, with its 95% interval."));
}

export function reliabilityDiagram({ count, confidence, accuracy }) {
  // The largest dot has a radius of 13: at 0% and 100% it must not cover what the axes say.
  const x = scale(0, 1, LEFT + 14, WIDTH - RIGHT), y = scale(0, 1, HEIGHT - BOTTOM - 10, TOP + 4);
  const total = count.reduce((sum, one) => sum + one, 0);
  const picture = frame("How often a label is right, by the probability it was given.", shares, shares, x, y);
  picture.append(draw("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  count.forEach((one, bin) => {
    if (one > 0) {
      const radius = 3 + 10 * Math.sqrt(one / total);
      picture.append(draw("circle", { class: "dot", opacity: 0.75, cx: x(confidence[bin]), cy: y(accuracy[bin]), r: radius }));
    }
  });
  return make("figure", {}, picture, make("figcaption.soft", {}, "Right are dots on the line; a larger dot stands for more decisions."));
}
