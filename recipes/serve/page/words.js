/** Recognised and scored words as text that can be clicked, and how times and confidences are written. */

const MEDIUM = 0.9;
const LOW = 0.6;
const MANY = 150; // words from which on the text is smaller and scrolls
const TIP_WIDTH = 180; // pixels that the times and the confidence need

/** "" for a certain word and for one without confidence, otherwise "medium" or "low". */
export function levelOf(confidence) {
  if (confidence === undefined || confidence === null || confidence > MEDIUM) return "";
  return confidence > LOW ? "medium" : "low";
}

/** Minutes and seconds, such as 1:05.3. */
export function clockTime(seconds, digits = 1) {
  const rounded = Number(seconds.toFixed(digits));
  const rest = (rounded % 60).toFixed(digits);
  return `${Math.floor(rounded / 60)}:${rest.padStart(digits ? digits + 3 : 2, "0")}`;
}

export const percent = (confidence) => `${Math.round(100 * confidence)} %`;

/** Make one element of a group reachable by Tab; the arrow keys, Home and End move within the group. */
export function roving(container, selector) {
  const all = () => [...container.querySelectorAll(selector)];
  container.addEventListener("keydown", (event) => {
    const items = all();
    const at = items.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: items.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    items[Math.max(0, Math.min(items.length - 1, to))].focus();
  });
  container.addEventListener("focusin", (event) => {
    if (all().includes(event.target)) for (const item of all()) item.tabIndex = item === event.target ? 0 : -1;
  });
}

/** The words of a transcript: final ones are buttons, partial ones plain text. */
export class WordView {
  constructor(element, play) {
    this.element = element;
    roving(element, ".word");
    element.addEventListener("click", (event) => {
      const button = event.target.closest(".word");
      if (button?.dataset.start) play(Number(button.dataset.start));
    });
    for (const type of ["pointerover", "focusin"]) {
      element.addEventListener(type, ({ target }) => {
        const left = target.getBoundingClientRect().left;
        target.classList.toggle("at-right", left + TIP_WIDTH > document.documentElement.clientWidth);
      });
    }
  }

  clear() {
    this.element.replaceChildren();
  }

  /** Add final words in place of the partial ones. */
  add(words) {
    this.partial([]);
    for (const word of words) this.element.append(wordButton(word, !this.element.firstChild), " ");
    this.element.classList.toggle("many", this.element.childElementCount > MANY);
  }

  /** Show words that may still change after the final ones. */
  partial(words) {
    this.element.querySelector(".partial")?.remove();
    if (!words.length) return;
    const text = document.createElement("span");
    text.className = "partial";
    for (const { word, confidence } of words) {
      const part = document.createElement("span");
      part.textContent = word;
      part.dataset.level = levelOf(confidence);
      text.append(part, " ");
    }
    this.element.append(text);
    this.element.scrollTop = this.element.scrollHeight;
  }

  /** Mark the word that is played; null for none. */
  mark(seconds) {
    for (const button of this.element.querySelectorAll(".word")) {
      const { start, end } = button.dataset;
      const playing = seconds !== null && Number(start) <= seconds && seconds < Number(end);
      if (playing && !button.classList.contains("playing")) this.bringIntoView(button);
      button.classList.toggle("playing", playing);
    }
  }

  /** Scroll the words, but not the page. */
  bringIntoView(button) {
    const [box, place] = [this.element.getBoundingClientRect(), button.getBoundingClientRect()];
    if (place.top < box.top || place.bottom > box.bottom) this.element.scrollTop += place.top - box.top - box.height / 3;
  }
}

function wordButton({ word, start, end, confidence }, first) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "word";
  button.tabIndex = first ? 0 : -1;
  button.textContent = word;
  const details = [];
  if (start !== undefined) {
    Object.assign(button.dataset, { start, end });
    details.push(`${start.toFixed(2)} – ${end.toFixed(2)} s`);
  }
  if (confidence !== undefined && confidence !== null) {
    button.dataset.confidence = confidence;
    button.dataset.level = levelOf(confidence);
    details.push(percent(confidence));
  }
  button.dataset.detail = details.join(" · ");
  button.setAttribute("aria-label", [word, ...details].join(", "));
  return button;
}

const HIGH = 0.75; // of the best score
const FAIR = 0.5;

const scored = (text, score, most) => {
  const part = document.createElement("span");
  part.textContent = text;
  part.dataset.level = score >= HIGH * most ? "high" : score >= FAIR * most ? "medium" : "low";
  return part;
};

/** Fill an element with words as buttons: each with its score, and with its phones, coloured by theirs. */
export function showScores(element, words, play) {
  element.replaceChildren(
    ...words.map(({ word, start, score, phones }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "scored";
      button.append(`${word} `, scored(score.toFixed(1), score, 10), phoneRow(phones));
      button.addEventListener("click", () => play(start));
      return button;
    }),
  );
}

function phoneRow(phones) {
  const row = document.createElement("span");
  row.className = "phones";
  for (const { phone, score, said } of phones) {
    const part = document.createElement("span");
    part.title = `${score.toFixed(1)} of 2`;
    part.append(scored(phone, score, 2));
    if (said !== undefined) {
      const instead = document.createElement("small");
      instead.textContent = said ? `said ${said}` : "left out";
      part.append(" ", instead);
    }
    row.append(part, " ");
  }
  return row;
}

/** Fill a list with alternatives, in which words that differ from the first one are marked. */
export function showAlternatives(list, texts) {
  const best = (texts[0] ?? "").split(" ");
  list.replaceChildren(
    ...texts.map((text) => {
      const item = document.createElement("li");
      for (const [word, same] of compare(best, text.split(" "))) {
        const part = document.createElement(same ? "span" : "mark");
        part.textContent = word;
        item.append(part, " ");
      }
      return item;
    }),
  );
}

/** Pairs of each word of `other` and whether it is part of a longest common subsequence with `best`. */
function compare(best, other) {
  const length = Array.from({ length: best.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = best.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      length[i][j] = best[i] === other[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  let i = 0;
  return other.map((word, j) => {
    while (i < best.length && best[i] !== word && length[i + 1][j] >= length[i][j + 1] && length[i + 1][j] === length[i][j]) i++;
    const same = best[i] === word;
    if (same) i++;
    return [word, same];
  });
}
