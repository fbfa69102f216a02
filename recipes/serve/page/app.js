/** The page: recordings, and what is shown of the chosen one. */

import { decode, needsBrowser, Player, Samples, wavFile } from "./audio.js";
import { LatticeView } from "./lattice.js";
import { Microphone } from "./microphone.js";
import { align, ALIGNED_FORMATS, describeModel, FORMATS, pronounce, ServerError, setToken, token, transcribe } from "./server.js";
import { parseLattice } from "./slf.js";
import { Timeline } from "./timeline.js";
import { clockTime, showAlternatives, showScores, WordView } from "./words.js";

const ALTERNATIVES = 10;
const LEAST_RATE = 16000; // Hz, of samples that the browser decodes
const $ = (id) => document.getElementById(id);

const recordings = []; // {name, file, samples, said, words, partial, state, alternatives, lattice, scores, abort}
let current = null;
let queue = Promise.resolve(); // files are processed one after the other
let microphone = null;
let model = {};
let latticeSummary = "";

const player = new Player(() => showPlayer());
const playFrom = (seconds) => player.play(seconds);
const wordView = new WordView($("words"), playFrom);
const latticeView = new LatticeView(document.querySelector(".lattice-scroll"), playFrom);
const timeline = new Timeline($("timeline"), {
  seek: (seconds) => {
    player.seek(seconds);
    showPlayer();
  },
  play: playFrom,
  toggle: togglePlay,
});

// Files

function addFiles(files) {
  showError("");
  for (const file of files) {
    const recording = addRecording(file.name, { file, state: "waiting" });
    enqueue(recording);
  }
}

function addRecording(name, content) {
  const recording = { name, words: [], partial: [], ...content };
  recordings.push(recording);
  choose(recording);
  return recording;
}

function enqueue(recording) {
  Object.assign(recording, { state: "waiting", percent: undefined });
  queue = queue.then(() => process(recording));
}

/** Recognise a recording, or align it with the text if there is one, and score how it is pronounced. */
async function process(recording) {
  recording.said = $("said").value.trim();
  recording.scores = null;
  recording.error = "";
  recording.state = "busy";
  recording.abort = new AbortController();
  if (recording === current) show();
  recording.samples ??= await decode(recording.file, Math.max(LEAST_RATE, model.sample_rate ?? 0));
  if (recording.samples && needsBrowser(recording.file)) recording.file = wavFile(recording.samples, `${recording.name}.wav`);
  if (recording === current) showSound();
  const options = {
    signal: recording.abort.signal,
    progress: (percent) => {
      recording.percent = percent;
      showState(recording);
    },
  };
  try {
    if (recording.said) takeAligned(recording, await align(recording.file, recording.said, "json", options));
    else takeResult(recording, await transcribe(recording.file, "verbose_json", { alternatives: ALTERNATIVES, ...options }));
    recording.state = "done";
  } catch (fault) {
    recording.state = fault.name === "AbortError" ? "cancelled" : "failed";
    report(fault, recording);
  }
  if (recording === current) show();
  showList();
  if (recording.state === "done" && recording.said && model.pronunciation) await score(recording);
}

/** Score how a recording pronounces the text. */
async function score(recording) {
  try {
    recording.scores = await pronounce(recording.file, recording.said);
    recording.reason = recording.scores.notes?.join("; ") ?? recording.reason;
    announce(`Score ${recording.scores.score.toFixed(1)} of 10`);
  } catch (fault) {
    report(fault, recording);
  }
  if (recording === current) showPronunciation();
  showState(recording);
}

function takeAligned(recording, { utterances, guessed = [] }) {
  recording.words = utterances[0].words;
  recording.reason = guessed.length ? `pronunciation guessed: ${guessed.map((one) => one.word).join(" ")}` : "";
  announce(`${recording.words.length} words aligned`);
}

function takeResult(recording, result) {
  recording.words = result.words ?? [];
  recording.reason = result.reason ?? (result.accepted === false ? "rejected, no sentence of the grammar" : "");
  takeAlternatives(recording, result);
  announce(result.text || "No words");
}

function takeAlternatives(recording, result) {
  const texts = (result.alternatives ?? [result]).map((one) => one.text);
  recording.alternatives = texts.some(Boolean) ? texts : ["No words"];
}

// Microphone

function toggleMicrophone() {
  showError("");
  if (microphone) {
    $("record").disabled = true;
    microphone.stop();
    return;
  }
  let recording = null;
  microphone = new Microphone({
    begin: (rate) => {
      const number = recordings.filter((one) => one.live).length + 1;
      recording = addRecording(`Recording ${number}`, { live: true, state: "live", samples: new Samples(rate) });
      showSound();
    },
    samples: (pcm) => {
      recording.samples.append(pcm);
      if (recording !== current) return;
      timeline.grown();
      $("clock").textContent = clockTime(recording.samples.seconds);
    },
    partial: (words) => {
      recording.partial = words;
      if (recording === current) wordView.partial(words);
    },
    final: (words) => addFinal(recording, words),
    error: (message) => report(new Error(message), recording),
    end: () => endMicrophone(recording),
  });
  $("record").classList.add("recording");
  $("record-label").textContent = "Stop";
  microphone.start();
}

function addFinal(recording, words) {
  recording.words.push(...words);
  recording.partial = [];
  if (words.length) announce(words.map((word) => word.word).join(" "));
  if (recording !== current) return;
  wordView.add(words);
  timeline.setWords(recording.words);
  showLegend();
}

function endMicrophone(recording) {
  microphone = null;
  $("record").disabled = false;
  $("record").classList.remove("recording");
  $("record-label").textContent = "Record";
  if (!recording) return;
  recording.state = "done";
  recording.partial = [];
  if (recording.samples.length) recording.file = wavFile(recording.samples, `${recording.name}.wav`);
  if (recording.file && $("said").value.trim()) enqueue(recording);
  else if (recording === current) show();
}

// What is shown

function choose(recording) {
  player.stop();
  current = recording;
  show();
  showList();
}

function show() {
  $("result").hidden = false;
  $("about").hidden = true;
  $("title").textContent = current.name;
  wordView.clear();
  wordView.add(current.words);
  wordView.partial(current.partial);
  showError(current.error ?? "");
  showState(current);
  showSound();
  showLegend();
  showPronunciation();
  for (const id of ["alternatives", "lattice"]) {
    $(id).open = false;
    $(id).hidden = Boolean(current.said);
  }
  for (const button of $("formats").children) button.hidden = (button.dataset.of === "text") !== Boolean(current.said);
  latticeView.clear();
  $("details").hidden = !(current.state === "done" && current.file);
}

function showState(recording) {
  if (recording !== current) return;
  const words = `${recording.words.length} ${recording.words.length === 1 ? "word" : "words"}`;
  $("status").textContent = {
    waiting: "Waiting",
    busy: `${recording.said ? "Aligning" : "Recognising"}${recording.percent === undefined ? "" : `, ${recording.percent} %`}`,
    live: "Listening",
    done: recording.reason ? `${words}; ${recording.reason}` : recording.words.length ? words : "No words recognised",
    cancelled: "Cancelled",
    failed: recording.said ? "Not aligned" : "Not recognised",
  }[recording.state];
  $("status").classList.toggle("busy", recording.state === "busy");
  $("cancel").hidden = recording.state !== "busy";
}

function showList() {
  $("recordings").hidden = recordings.length < 2;
  $("recordings").firstElementChild.replaceChildren(
    ...recordings.map((recording) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = recording.state === "failed" ? `${recording.name} (failed)` : recording.name;
      button.setAttribute("aria-current", recording === current);
      button.addEventListener("click", () => {
        choose(recording);
        $("recordings").querySelector("[aria-current=true]").focus();
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

function showSound() {
  const { samples, words, state } = current;
  const live = state === "live";
  player.load(live ? null : samples);
  $("sound").hidden = !samples;
  $("play").disabled = live;
  if (samples) timeline.show(samples, words, live);
  showPlayer();
}

function showLegend() {
  $("legend").hidden = !current.words.some((word) => Number.isFinite(word.confidence));
}

function showPronunciation() {
  const { scores } = current;
  $("scores").hidden = !scores;
  if (!scores) return;
  $("sentence-score").textContent = `${scores.text}: ${scores.score.toFixed(1)} of 10`;
  showScores($("scored-words"), scores.words, playFrom);
}

function togglePlay() {
  if (player.playing) player.stop();
  else if (current.state !== "live") player.play(player.position);
}

function showPlayer() {
  if (!current?.samples || current.state === "live") return;
  const { position, playing } = player;
  $("play").textContent = playing ? "Pause" : "Play";
  $("clock").textContent = `${clockTime(position)} / ${clockTime(current.samples.seconds)}`;
  timeline.setPosition(position, playing);
  wordView.mark(playing ? position : null);
  if (playing) requestAnimationFrame(showPlayer);
}

function showError(message) {
  $("error").textContent = message;
  $("error").hidden = !message;
}

function announce(text) {
  $("announcement").textContent = text;
}

function report(fault, recording) {
  if (fault.name === "AbortError") return;
  let message = fault.message;
  if (fault instanceof ServerError && fault.status === 401) {
    message = token() ? "The server does not accept this access token." : "";
    $("access").hidden = false;
    $("token").focus();
  }
  if (recording) recording.error = message;
  if (!recording || recording === current) showError(message);
}

// Alternatives, lattice, downloads: what the result does not contain is asked for when it is needed

async function openAlternatives() {
  const recording = current;
  if (!$("alternatives").open) return;
  const list = $("alternatives").querySelector("ol");
  list.replaceChildren();
  try {
    if (!recording.alternatives) takeAlternatives(recording, await transcribe(recording.file, "verbose_json", { alternatives: ALTERNATIVES }));
    if (recording === current) showAlternatives(list, recording.alternatives);
  } catch (fault) {
    report(fault, recording);
  }
}

async function openLattice(all) {
  const recording = current;
  if (!$("lattice").open) return;
  const button = $("lattice").querySelector("button");
  latticeSummary = "Recognising";
  showLink(null);
  button.hidden = true;
  try {
    recording.lattice ??= parseLattice(await transcribe(recording.file, "slf"));
    if (recording !== current) return;
    const { shown, total } = latticeView.show(recording.lattice, all);
    latticeSummary = shown < total ? `${shown} of ${total} words` : `${total} words`;
    showLink(null);
    button.hidden = !all && shown === total;
    button.setAttribute("aria-pressed", all);
  } catch (fault) {
    if (recording !== current) return;
    latticeSummary = fault.message;
    showLink(null);
  }
}

/** Describe the word of a lattice to which the pointer or the focus points. */
function showLink(link) {
  $("lattice").querySelector("p").textContent = link ? link.getAttribute("aria-label") : latticeSummary;
}

async function download(format, extension) {
  const { file, name, said } = current;
  try {
    const result = said
      ? await align(file, said, format)
      : await transcribe(file, format, { alternatives: format === "verbose_json" ? ALTERNATIVES : 0 });
    const text = typeof result === "string" ? result : `${JSON.stringify(result, null, 2)}\n`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `${name.replace(/\.[^.]*$/, "")}.${extension}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (fault) {
    report(fault, current);
  }
}

// Wiring

/** What a model knows, as sentences. */
function aboutModel({ num_words, language, sample_rate, examples }) {
  const name = language && new Intl.DisplayNames("en", { type: "language", fallback: "none" }).of(language);
  const knows = `This recogniser knows ${num_words} words${name ? ` of ${name}` : ""}, from audio of ${sample_rate / 1000} kHz or more.`;
  return examples?.length ? `${knows} Record, for example: ${examples.join(" ")}` : knows;
}

function showModel() {
  describeModel().then(
    (described) => {
      model = described;
      const rate = model.sample_rate && `${model.sample_rate / 1000} kHz`;
      $("model").textContent = [model.id, model.language, rate].filter(Boolean).join(" · ");
      $("access").hidden = true;
      $("known").hidden = !model.alignment;
      $("about").textContent = aboutModel(model);
      $("about").hidden = current !== null;
    },
    (fault) => report(fault),
  );
}

$("record").addEventListener("click", toggleMicrophone);
$("choose").addEventListener("click", () => $("files").click());
$("files").addEventListener("change", () => {
  addFiles([...$("files").files]);
  $("files").value = "";
});
$("cancel").addEventListener("click", () => current.abort?.abort());
$("play").addEventListener("click", togglePlay);
$("zoom-in").addEventListener("click", () => timeline.zoom(1.5));
$("zoom-out").addEventListener("click", () => timeline.zoom(1 / 1.5));
$("alternatives").addEventListener("toggle", openAlternatives);
$("lattice").addEventListener("toggle", () => openLattice(false));
for (const type of ["pointerover", "focusin", "pointerout", "focusout"]) {
  $("lattice").addEventListener(type, ({ target }) => showLink(type.endsWith("out") ? null : target.closest(".link")));
}
const showAll = $("lattice").querySelector("button");
showAll.addEventListener("click", () => openLattice(showAll.getAttribute("aria-pressed") !== "true"));
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken($("token").value);
  showError("");
  showModel();
});
$("known").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!current?.file) showError("Record it, or choose a file.");
  else if (current.state !== "busy" && current.state !== "waiting") enqueue(current);
});
for (const [of, formats] of [["recognition", FORMATS], ["text", ALIGNED_FORMATS]]) {
  for (const [format, label, extension] of formats) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    Object.assign(button.dataset, { of, extension });
    button.addEventListener("click", () => download(format, extension));
    $("formats").append(button);
  }
}

document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  addFiles([...event.dataTransfer.files]);
});

if (!navigator.mediaDevices) {
  $("record").disabled = true;
  $("record-label").textContent = "Microphone needs HTTPS";
}
showModel();
