/** The HTTP interface of the server. */

const TOKEN = "argonaut-token";

/** An answer of the server that is not a result. */
export class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(TOKEN) ?? "";
export const setToken = (value) => sessionStorage.setItem(TOKEN, value);

/** Formats of transcripts that can be downloaded: name of `response_format`, label, file extension. */
export const FORMATS = [
  ["text", "Text", "txt"],
  ["verbose_json", "JSON", "json"],
  ["srt", "SRT", "srt"],
  ["vtt", "WebVTT", "vtt"],
  ["ctm", "CTM", "ctm"],
  ["textgrid", "TextGrid", "TextGrid"],
  ["mlf", "MLF", "mlf"],
  ["slf", "SLF lattice", "slf"],
];
/** The same of alignments. */
export const ALIGNED_FORMATS = [
  ["json", "JSON", "json"],
  ["textgrid", "TextGrid", "TextGrid"],
];

async function request(path, options = {}) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new ServerError("The server has stopped or cannot be reached, or the file cannot be read.");
  }
  if (!response.ok) throw new ServerError(await messageOf(response), response.status);
  return response;
}

async function messageOf(response) {
  const text = await response.text();
  try {
    const content = JSON.parse(text);
    return content.error?.message ?? content.detail ?? content.error ?? text;
  } catch {
    return text || `The server answered ${response.status} ${response.statusText}.`;
  }
}

/** The model: id, language, sample_rate in Hz, num_words, examples, and whether it aligns and scores pronunciation. */
export async function describeModel() {
  return (await (await request("v1/models")).json()).data[0];
}

/** Why a connection has failed. */
export async function connectionFault() {
  try {
    const { status } = await (await fetch("healthz")).json();
    return status === "ok" ? "The server refuses the connection." : "The server is stopping.";
  } catch {
    return "The server has stopped or cannot be reached.";
  }
}

/** Call told(percent) every second until the body has ended. */
async function watched(id, told, body) {
  const timer = setInterval(async () => {
    const response = await request(`v1/audio/progress/${id}`).catch(() => null);
    const { done, total } = response ? await response.json() : {};
    if (total) told(Math.min(99, Math.floor((100 * done) / total)));
  }, 1000);
  try {
    return await body();
  } finally {
    clearInterval(timer);
  }
}

/** Send a file with other fields: an object for an answer in JSON, otherwise text. */
async function sendFile(path, file, fields, { signal, progress } = {}) {
  const form = new FormData();
  form.append("file", file, file.name);
  const id = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  for (const [name, value] of Object.entries({ ...fields, progress_id: id })) form.append(name, value);
  const send = () => request(path, { method: "POST", body: form, signal });
  const response = progress ? await watched(id, progress, send) : await send();
  return response.headers.get("Content-Type").startsWith("application/json") ? response.json() : response.text();
}

/** Recognise a file. */
export function transcribe(file, format, { alternatives = 0, ...options } = {}) {
  const fields = { response_format: format };
  if (format === "verbose_json") fields["timestamp_granularities[]"] = "word";
  if (alternatives) fields.max_alternatives = alternatives;
  return sendFile("v1/audio/transcriptions", file, fields, options);
}

/** Align a file with a text: in JSON, utterances, of which the only one has words and phones. */
export function align(file, text, format, options) {
  return sendFile("v1/align", file, { text, response_format: format }, options);
}

/** Score how a file pronounces a text: score and words, each with word, start, end, score and phones. */
export function pronounce(file, text) {
  return sendFile("v1/audio/pronunciations", file, { text });
}
