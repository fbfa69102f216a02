/** Lattices in HTK's format (SLF): parsing, posterior probabilities, best path. */

const FIELD = /([A-Za-z]\w*)=("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)/g;
const LONG_NAMES = { NODES: "N", LINKS: "L", START: "S", END: "E", WORD: "W", time: "t", acoustic: "a", language: "l" };

/**
 * Read a lattice.  Returns {times: seconds of each node, links: [{start, end, word, posterior, best}]}; links are in
 * topological order.  Throws an Error for text that is no lattice.
 */
export function parseLattice(text) {
  const header = {};
  const times = [];
  const links = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const fields = fieldsOf(line);
    if ("I" in fields) times[Number(fields.I)] = Number(fields.t ?? NaN);
    else if ("J" in fields) links.push(fields);
    else Object.assign(header, fields);
  }
  if (times.length !== Number(header.N) || links.length !== Number(header.L)) throw new Error("The lattice is incomplete.");
  const number = (value, otherwise = 0) => (value === undefined ? otherwise : Number(value));
  const scored = links.map((fields) => ({
    start: Number(fields.S),
    end: Number(fields.E),
    word: fields.W ?? "!NULL",
    score:
      number(fields.a) * number(header.acscale, 1) +
      number(fields.l) * number(header.lmscale, 1) +
      (fields.W && fields.W !== "!NULL" ? number(header.wdpenalty) : 0),
  }));
  return { times, links: weigh(inOrder(scored, times.length), times.length) };
}

function fieldsOf(line) {
  const fields = {};
  for (const [, name, value] of line.matchAll(FIELD)) {
    const quoted = /^["']/.test(value) ? value.slice(1, -1) : value;
    fields[LONG_NAMES[name] ?? name] = unescape(quoted);
  }
  return fields;
}

/** Replace \ooo by the byte with that octal code, and \c by c. */
function unescape(text) {
  if (!text.includes("\\")) return text;
  const bytes = [];
  for (const [, octal, other, plain] of text.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gu)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else bytes.push(...new TextEncoder().encode(other ?? plain));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** Sort links so that each one follows all links that enter its start. */
function inOrder(links, numNodes) {
  const entering = new Uint32Array(numNodes);
  const leaving = Array.from({ length: numNodes }, () => []);
  for (const link of links) {
    entering[link.end]++;
    leaving[link.start].push(link);
  }
  const ready = [...entering.keys()].filter((node) => !entering[node]);
  const sorted = [];
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    for (const link of leaving[node]) {
      sorted.push(link);
      if (--entering[link.end] === 0) ready.push(link.end);
    }
  }
  if (sorted.length !== links.length) throw new Error("The lattice has a loop.");
  return sorted;
}

const logAdd = (a, b) => (a === -Infinity ? b : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));

/** Add to each link its posterior probability, and whether it is on the best path (forward-backward, Viterbi). */
function weigh(links, numNodes) {
  const isEnd = new Set(links.map((link) => link.end));
  const isStart = new Set(links.map((link) => link.start));
  const forward = new Float64Array(numNodes).fill(-Infinity);
  const backward = new Float64Array(numNodes).fill(-Infinity);
  const best = new Float64Array(numNodes).fill(-Infinity);
  const last = new Array(numNodes);
  for (let node = 0; node < numNodes; node++) {
    if (!isEnd.has(node)) forward[node] = best[node] = 0;
    if (!isStart.has(node)) backward[node] = 0;
  }
  for (const link of links) {
    forward[link.end] = logAdd(forward[link.start] + link.score, forward[link.end]);
    if (best[link.start] + link.score > best[link.end]) {
      best[link.end] = best[link.start] + link.score;
      last[link.end] = link;
    }
  }
  for (const link of [...links].reverse()) {
    backward[link.start] = logAdd(backward[link.end] + link.score, backward[link.start]);
  }
  const finals = [...Array(numNodes).keys()].filter((node) => !isStart.has(node) && isEnd.has(node));
  const total = finals.reduce((sum, node) => logAdd(forward[node], sum), -Infinity);
  const end = finals.reduce((a, b) => (best[b] > best[a] ? b : a), finals[0]);
  const onPath = new Set();
  for (let link = last[end]; link; link = last[link.start]) onPath.add(link);
  return links.map((link) => ({
    ...link,
    posterior: Math.min(1, Math.exp(forward[link.start] + link.score + backward[link.end] - total)),
    best: onPath.has(link),
  }));
}
