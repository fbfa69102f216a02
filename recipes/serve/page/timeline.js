/** Waveform and spectrogram with the words below them, on one axis of time. */

import { Spectrum } from "./spectrum.js";
import { clockTime, levelOf } from "./words.js";

const AXIS = 22; // heights in CSS pixels
const WAVE = 72;
const SPECTROGRAM = 150;
const HEIGHT = AXIS + WAVE + SPECTROGRAM;
const TILE = 256; // columns that are kept as one picture
const RANGE = 54; // dB below the loudest value
const SHOWN_HZ = 8000;
const LIVE_SCALE = 120; // pixels per second
const MOST_SCALE = 1200;
const LEVEL_FRAMES = 400; // windows from which the loudest value is taken

export class Timeline {
  /** element: the scrolling box; seek(seconds), play(seconds) and toggle(): what the user asks the player to do. */
  constructor(element, { seek, play, toggle }) {
    this.element = element;
    this.track = element.querySelector(".track");
    this.canvas = element.querySelector("canvas");
    this.wordRow = element.querySelector(".track-words");
    this.playhead = element.querySelector(".playhead");
    this.handlers = { seek, play, toggle };
    this.tiles = new Map();
    this.words = [];
    this.samples = null;
    this.scale = 100;
    this.chosen = false; // whether the user chose the scale
    this.position = 0;
    element.addEventListener("scroll", () => this.redraw());
    element.addEventListener("click", (event) => this.click(event));
    element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restart());
  }

  get width() {
    return this.element.clientWidth;
  }

  /** live: samples will be added. */
  show(samples, words, live) {
    this.samples = samples;
    this.live = live;
    this.chosen = false;
    this.element.scrollLeft = 0;
    this.setWords(words);
    this.setPosition(0);
    this.restart();
  }

  /** Draw samples that were added, and keep the end in view. */
  grown() {
    this.fit();
    this.element.scrollLeft = this.track.scrollWidth;
    this.redraw();
  }

  setWords(words) {
    this.words = words.filter((word) => word.end > word.start);
    this.wordRow.replaceChildren(
      ...this.words.map((word) => {
        const label = document.createElement("span");
        label.textContent = word.word;
        label.dataset.start = word.start;
        const level = levelOf(word.confidence);
        if (level) label.dataset.level = level;
        return label;
      }),
    );
    this.fit();
    this.redraw();
  }

  /** Choose a scale at which most words are readable, unless the user chose one. */
  fit() {
    if (!this.samples) return;
    const whole = this.live ? LIVE_SCALE : this.width / Math.max(this.samples.seconds, 0.5);
    if (this.live && !this.chosen) this.scale = LIVE_SCALE;
    else if (!this.chosen) {
      const needed = this.words.map((word) => (9 * word.word.length + 8) / (word.end - word.start)).sort((a, b) => a - b);
      this.scale = Math.max(whole, Math.min(300, needed[Math.floor(0.9 * needed.length)] ?? 100));
    }
    this.scale = Math.min(MOST_SCALE, Math.max(this.scale, whole));
    this.track.style.width = `${Math.ceil(this.samples.seconds * this.scale)}px`;
    [...this.wordRow.children].forEach((label, i) => {
      label.style.left = `${this.words[i].start * this.scale}px`;
      label.style.width = `${(this.words[i].end - this.words[i].start) * this.scale}px`;
    });
    this.setPosition(this.position);
    this.element.setAttribute("aria-valuemax", this.samples.seconds.toFixed(1));
  }

  zoom(factor) {
    const middle = (this.element.scrollLeft + this.width / 2) / this.scale;
    this.scale *= factor;
    this.chosen = true;
    this.fit();
    this.element.scrollLeft = middle * this.scale - this.width / 2;
    this.redraw();
  }

  resize() {
    this.fit();
    this.redraw();
  }

  /** Forget all pictures, whose colours or samples have changed. */
  restart() {
    this.tiles.clear();
    this.loudest = -Infinity;
    this.resize();
  }

  setPosition(seconds, follow = false) {
    this.position = seconds;
    const x = seconds * this.scale;
    this.playhead.style.left = `${x}px`;
    this.playhead.hidden = !seconds;
    this.element.setAttribute("aria-valuenow", seconds.toFixed(1));
    this.element.setAttribute("aria-valuetext", `${seconds.toFixed(1)} seconds`);
    [...this.wordRow.children].forEach((label, i) => {
      label.classList.toggle("playing", follow && this.words[i].start <= seconds && seconds < this.words[i].end);
    });
    const left = this.element.scrollLeft;
    if (follow && (x < left || x > left + 0.9 * this.width)) this.element.scrollLeft = x - 0.1 * this.width;
  }

  click(event) {
    const clicked = (event.clientX - this.track.getBoundingClientRect().left) / this.scale;
    this.handlers.play(Number(event.target.dataset.start ?? clicked));
  }

  key(event) {
    const moves = { ArrowLeft: -0.1, ArrowDown: -0.1, ArrowRight: 0.1, ArrowUp: 0.1, PageDown: 1, PageUp: -1 };
    if (event.key in moves) this.handlers.seek(this.position + moves[event.key]);
    else if (event.key === "Home") this.handlers.seek(0);
    else if (event.key === "End") this.handlers.seek(this.samples.seconds);
    else if (event.key === " " || event.key === "Enter") this.handlers.toggle();
    else return;
    event.preventDefault();
  }

  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.samples && this.width) this.draw();
    });
  }

  draw() {
    const ratio = devicePixelRatio;
    const [width, left] = [this.width, this.element.scrollLeft];
    this.canvas.width = width * ratio;
    this.canvas.height = HEIGHT * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const style = getComputedStyle(this.element);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    this.drawSpectrogram(pen, left, width);
    this.drawWave(pen, left, width);
    this.drawBounds(pen, left, width);
    this.drawAxis(pen, left, width);
  }

  drawWave(pen, left, width) {
    const { buffer, rate, length } = this.samples;
    const middle = AXIS + WAVE / 2;
    pen.fillStyle = this.colour("accent");
    for (let x = 0; x < width; x++) {
      const first = Math.floor(((left + x) / this.scale) * rate);
      const last = Math.min(length, Math.max(first + 1, Math.floor(((left + x + 1) / this.scale) * rate)));
      if (first >= length) break;
      let [low, high] = [0, 0];
      for (let i = first; i < last; i++) {
        if (buffer[i] < low) low = buffer[i];
        else if (buffer[i] > high) high = buffer[i];
      }
      const gain = (WAVE / 2 - 3) / this.peak();
      pen.fillRect(x, middle - high * gain - 0.5, 1, (high - low) * gain + 1);
    }
  }

  /** The largest amplitude so far; quiet recordings fill the height, silence does not. */
  peak() {
    const { buffer, length } = this.samples;
    if (this.peakOf !== this.samples || this.peakEnd > length) [this.peakOf, this.peakEnd, this.largest] = [this.samples, 0, 0.02];
    for (; this.peakEnd < length; this.peakEnd++) this.largest = Math.max(this.largest, Math.abs(buffer[this.peakEnd]));
    return this.largest;
  }

  drawSpectrogram(pen, left, width) {
    const { rate, data } = this.samples;
    if (this.spectrum?.rate !== rate) this.spectrum = Object.assign(new Spectrum(rate), { rate });
    this.measureLevel(data);
    const shown = Math.min(1, (2 * SHOWN_HZ) / rate);
    const end = Math.ceil(this.samples.seconds * this.scale);
    for (let tile = Math.floor(left / TILE); tile * TILE < Math.min(end, left + width); tile++) {
      const picture = this.tile(tile, Math.min(TILE, end - tile * TILE), data);
      const rows = picture.height * shown;
      pen.drawImage(picture, 0, picture.height - rows, TILE, rows, tile * TILE - left, AXIS + WAVE, TILE, SPECTROGRAM);
    }
  }

  /** Find the loudest value; if it has risen much, all tiles are drawn again. */
  measureLevel(data) {
    if (this.levelEnd === data.length && this.loudest > -Infinity) return;
    const column = new Float32Array(this.spectrum.bins);
    const first = this.loudest > -Infinity ? this.levelEnd : 0;
    const step = Math.max(0.02 * this.samples.rate, (data.length - first) / LEVEL_FRAMES);
    let loudest = Math.max(this.loudest, -45);
    for (let at = first; at < data.length; at += step) {
      this.spectrum.at(data, at, column);
      for (const value of column) if (value > loudest) loudest = value;
    }
    this.levelEnd = data.length;
    if (loudest > this.loudest + 2) {
      this.loudest = loudest;
      this.tiles.clear();
    }
  }

  /** The picture of columns number * TILE and following, of which `columns` exist so far. */
  tile(number, columns, data) {
    const key = `${number} ${this.scale}`;
    let tile = this.tiles.get(key);
    if (!tile) {
      if (this.tiles.size > 64) this.tiles.clear();
      tile = Object.assign(new OffscreenCanvas(TILE, this.spectrum.bins), { columns: 0 });
      this.tiles.set(key, tile);
    }
    if (columns > tile.columns) {
      this.palette = this.makePalette();
      const pen = tile.getContext("2d");
      const picture = pen.createImageData(columns - tile.columns, tile.height);
      const pixels = new Uint32Array(picture.data.buffer);
      const column = new Float32Array(tile.height);
      for (let x = 0; x < picture.width; x++) {
        this.spectrum.at(data, ((number * TILE + tile.columns + x + 0.5) / this.scale) * this.samples.rate, column);
        for (let bin = 0; bin < tile.height; bin++) {
          const shade = Math.max(0, Math.min(1, (column[bin] - this.loudest + RANGE) / RANGE));
          pixels[(tile.height - 1 - bin) * picture.width + x] = this.palette[Math.round(255 * shade)];
        }
      }
      pen.putImageData(picture, tile.columns, 0);
      tile.columns = Math.max(0, columns - (columns < TILE ? 4 : 0)); // the last windows may still be incomplete
    }
    return tile;
  }

  /** 256 colours from the background over the accent colour to the colour of text. */
  makePalette() {
    const stops = ["surface", "accent", "ink"].map((name) => {
      const value = parseInt(this.colour(name).slice(1), 16);
      return [value >> 16, (value >> 8) & 255, value & 255];
    });
    return Uint32Array.from({ length: 256 }, (_, i) => {
      const place = (i / 255) ** 1.4 * 2;
      const [from, to] = place < 1 ? [stops[0], stops[1]] : [stops[1], stops[2]];
      const [r, g, b] = from.map((value, j) => Math.round(value + (to[j] - value) * (place < 1 ? place : place - 1)));
      return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    });
  }

  drawBounds(pen, left, width) {
    pen.fillStyle = this.colour("muted");
    pen.globalAlpha = 0.45;
    for (const word of this.words) {
      for (const time of [word.start, word.end]) {
        const x = Math.round(time * this.scale - left);
        if (x >= 0 && x < width) pen.fillRect(x, AXIS, 1, HEIGHT - AXIS);
      }
    }
    pen.globalAlpha = 1;
  }

  drawAxis(pen, left, width) {
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60].find((seconds) => seconds * this.scale >= 70) ?? 300;
    pen.fillStyle = this.colour("muted");
    pen.font = `11px ${getComputedStyle(this.element).fontFamily}`;
    pen.textBaseline = "middle";
    for (let tick = Math.ceil(left / this.scale / step); tick * step * this.scale < left + width; tick++) {
      const x = tick * step * this.scale - left;
      pen.fillRect(Math.round(x), AXIS - 5, 1, 5);
      pen.fillText(clockTime(tick * step, step < 1 ? 1 : 0), x + 4, AXIS / 2);
    }
  }
}
