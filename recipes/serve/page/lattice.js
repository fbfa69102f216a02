/** Draws a lattice: time from left to right, the best path on a line, other words as arcs above and below it. */

import { percent, roving } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 28;
const LANE = 30; // height
const NODE = 5; // radius
const MOST_WORDS = 1500;
const LEAST_SCALE = 100; // pixels per second
const PROBABLE = 0.001;
const SAME_TIME = 0.05; // seconds between the times of variants of one word

/** Shows one lattice in an element. */
export class LatticeView {
  constructor(element, play) {
    this.element = element;
    this.play = play;
    roving(element, ".link");
    for (const type of ["click", "keydown"]) element.addEventListener(type, (event) => this.choose(event));
  }

  choose(event) {
    const link = event.target.closest?.(".link");
    if (!link || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    this.play(Number(link.dataset.start));
  }

  clear() {
    this.element.replaceChildren();
  }

  /**
   * Draw the lattice; all: with improbable words, and with all variants of a word that differ a little in their times.
   * Returns {shown, total}, numbers of words.
   */
  show(lattice, all) {
    const words = mergeHistories(lattice);
    const chosen = (all ? words : mergeTimes(words.filter((word) => word.best || word.posterior >= PROBABLE))).slice(0, MOST_WORDS);
    this.element.replaceChildren(draw(chosen, this.element.clientWidth));
    return { shown: chosen.length, total: words.length };
  }
}

/** Words with times, in which links that differ only in their histories are one; the best path first, then by posterior. */
function mergeHistories({ times, links }) {
  const merged = new Map();
  for (const link of links) {
    const [start, end] = [times[link.start], times[link.end]];
    if (link.word === "!NULL" || !(end > start)) continue;
    const key = `${start.toFixed(3)} ${end.toFixed(3)} ${link.word}`;
    const word = merged.get(key) ?? { word: link.word, start, end, posterior: 0, best: false };
    word.posterior = Math.min(1, word.posterior + link.posterior);
    word.best ||= link.best;
    merged.set(key, word);
  }
  return [...merged.values()].sort(byImportance);
}

/** Words without those that differ only a little in their times from a more probable one. */
function mergeTimes(words) {
  const kept = new Map();
  for (const word of words) {
    const same = kept.get(word.word) ?? [];
    const near = (other) => Math.abs(other.start - word.start) <= SAME_TIME && Math.abs(other.end - word.end) <= SAME_TIME;
    const other = same.find(near);
    if (other && !word.best) other.posterior = Math.min(1, other.posterior + word.posterior);
    else kept.set(word.word, [...same, { ...word }]);
  }
  return [...kept.values()].flat().sort(byImportance);
}

const byImportance = (a, b) => b.best - a.best || b.posterior - a.posterior;
const isMark = (word) => word.word === "<s>" || word.word === "</s>";
const labelWidth = (word) => 10 * word.word.length + 26;

/** Give each word a lane: 0 for the best path, then 1, -1, 2, -2, ... where its arc and label have room. */
function assignLanes(words, x) {
  const taken = new Map();
  for (const word of words) {
    const middle = (x(word.start) + x(word.end)) / 2;
    const half = Math.max(x(word.end) - x(word.start) - 4, labelWidth(word) - 8) / 2;
    word.middle = middle;
    word.lane = word.best ? 0 : 1;
    const free = (lane) => (taken.get(lane) ?? []).every(([from, to]) => middle + half <= from || middle - half >= to);
    while (word.lane !== 0 && !free(word.lane)) word.lane = word.lane > 0 ? -word.lane : 1 - word.lane;
    taken.set(word.lane, [...(taken.get(word.lane) ?? []), [middle - half, middle + half]]);
  }
}

/** Return the place of a time.  Places are proportional to time, except where words of the path are wider than that. */
function timeAxis(path, first, last, room) {
  const scale = Math.max(room / (last - first), LEAST_SCALE);
  const times = [first];
  const places = [MARGIN];
  const add = (time, width) => {
    const [before, at] = [times.at(-1), places.at(-1)];
    if (time <= before) return;
    times.push(time);
    places.push(at + Math.max((time - before) * scale, width));
  };
  for (const word of [...path].sort((a, b) => a.start - b.start)) {
    add(word.start, 0);
    add(word.end, isMark(word) ? 0 : labelWidth(word));
  }
  add(last, 0);
  return (time) => {
    let i = 1;
    while (i < times.length - 1 && times[i] < time) i++;
    return places[i - 1] + ((time - times[i - 1]) / (times[i] - times[i - 1])) * (places[i] - places[i - 1]);
  };
}

function draw(words, room) {
  const path = words.filter((word) => word.best);
  const first = Math.min(...words.map((word) => word.start));
  const last = Math.max(...words.map((word) => word.end));
  const x = timeAxis(path, first, last, room - 2 * MARGIN - 2);
  assignLanes(words, x);
  const lanes = words.map((word) => word.lane);
  const [above, below] = [-Math.min(0, ...lanes), Math.max(0, ...lanes)];
  const width = Math.ceil(x(last) + MARGIN);
  const height = (above + below) * LANE + 2 * MARGIN;
  const base = above * LANE + MARGIN;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Lattice" });
  for (const time of new Set(path.flatMap((word) => [word.start, word.end]))) {
    svg.append(element("circle", { class: "node", cx: x(time), cy: base, r: NODE - 1 }));
  }
  for (const word of words.sort((a, b) => a.start - b.start || a.lane - b.lane)) svg.append(drawLink(word, x, base));
  svg.querySelector(".link")?.setAttribute("tabindex", 0);
  return svg;
}

function drawLink(word, x, base) {
  const detail = `${word.word}, ${word.start.toFixed(2)} – ${word.end.toFixed(2)} s, ${percent(word.posterior)}`;
  const group = element("g", { class: word.best ? "link best" : "link", role: "button", tabindex: -1, "aria-label": detail });
  group.dataset.start = word.start;
  const y = base + word.lane * LANE;
  const space = word.lane ? 0 : NODE;
  const [from, to] = [x(word.start) + space, Math.max(x(word.start) + space, x(word.end) - space)];
  const foot = base + Math.sign(word.lane) * 2;
  const bend = Math.min(14, (to - from) / 2);
  const d = word.lane
    ? `M${from} ${foot}C${from} ${y} ${from} ${y} ${from + bend} ${y}H${to - bend}C${to} ${y} ${to} ${y} ${to} ${foot}`
    : `M${from} ${base}H${to}`;
  const shape = element("path", { d, "stroke-width": (1 + 3 * Math.sqrt(word.posterior)).toFixed(2) });
  shape.setAttribute("opacity", word.best ? 1 : (0.25 + 0.75 * Math.sqrt(word.posterior)).toFixed(2));
  const label = element("text", { x: word.middle, y });
  if (isMark(word)) label.setAttribute("class", "mark");
  if (!isMark(word) || to - from > labelWidth(word)) label.textContent = word.word;
  group.append(shape, label);
  return group;
}

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
