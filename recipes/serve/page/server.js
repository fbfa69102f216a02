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

/** Formats that can be downloaded: name of `response_format`, label, file extension. */
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

async function request(path, options = {}) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new ServerError("The server cannot be reached, or the file cannot be read.");
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

/** Name, language and sample rate of the model. */
export async function describeModel() {
  const [model] = (await (await request("v1/models")).json()).data;
  const rate = model.sample_rate && `${model.sample_rate / 1000} kHz`;
  return [model.id, model.language, rate].filter(Boolean).join(" · ");
}

/** Recognise a file: an object for verbose_json, otherwise text. */
export async function transcribe(file, format, { alternatives = 0, signal } = {}) {
  const form = new FormData();
  form.append("file", file, file.name);
  form.append("response_format", format);
  if (format === "verbose_json") form.append("timestamp_granularities[]", "word");
  if (alternatives) form.append("max_alternatives", alternatives);
  const response = await request("v1/audio/transcriptions", { method: "POST", body: form, signal });
  return format === "verbose_json" ? response.json() : response.text();
}
