/** The microphone, recognised while it is recorded over a WebSocket that speaks vosk's protocol. */

import { connectionFault, token } from "./server.js";

const MOST_WAITING = 1 << 20; // bytes that may wait for the network
const MESSAGES = {
  NotAllowedError: "The browser does not allow the microphone.",
  NotFoundError: "There is no microphone.",
};
const UNPROCESSED = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };

/**
 * One recording.  Handlers: begin(sampleRate), samples(Int16Array), partial(words), final(words), end(), error(message);
 * words: [{word, start, end, confidence}], of which only `word` is always there.
 */
export class Microphone {
  constructor(handlers) {
    this.handlers = handlers;
    this.ended = false;
  }

  async start() {
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ audio: UNPROCESSED });
      this.stream.getTracks()[0].onended = () => this.stop();
      this.context = new AudioContext();
      await this.context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
      if (!this.ended) this.socket = await this.connect();
      if (!this.ended) this.capture();
    } catch (fault) {
      this.fail(MESSAGES[fault.name] ?? (await connectionFault()));
    }
    if (this.ended) this.release();
  }

  connect() {
    const address = new URL("asr", document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    if (token()) address.searchParams.set("token", token());
    const socket = new WebSocket(address);
    socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
    socket.onclose = ({ code, reason }) => this.closed(code, reason);
    return new Promise((resolve, reject) => {
      socket.onopen = () => resolve(socket);
      socket.onerror = reject;
    });
  }

  capture() {
    const rate = this.context.sampleRate;
    this.socket.send(JSON.stringify({ config: { sample_rate: rate, words: true, partial_words: true } }));
    this.handlers.begin(rate);
    this.node = new AudioWorkletNode(this.context, "pcm-blocks", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    this.node.port.onmessage = ({ data }) => (data ? this.deliver(data) : this.finish());
    this.context.createMediaStreamSource(this.stream).connect(this.node);
    this.context.resume();
  }

  deliver(samples) {
    if (this.ended || this.finishing || this.socket.readyState !== WebSocket.OPEN) return;
    if (this.socket.bufferedAmount > MOST_WAITING) {
      this.fail("The server is too slow for this microphone; the recording was stopped.");
      return;
    }
    this.socket.send(samples);
    this.handlers.samples(samples);
  }

  /** End the recording; the last words follow. */
  stop() {
    if (!this.node) {
      this.end();
      return;
    }
    this.stream.getTracks().forEach((track) => track.stop());
    this.node.port.postMessage("stop");
  }

  finish() {
    this.finishing = true; // the server answers the end with the last words and closes the connection
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send('{"eof": 1}');
  }

  receive(message) {
    if (message.error) this.fail(message.error.message ?? message.error);
    else if ("partial" in message) this.handlers.partial(wordsOf(message.partial_result, message.partial));
    else if ("text" in message) this.handlers.final(wordsOf(message.result, message.text));
  }

  async closed(code, reason) {
    if (this.finishing || this.ended) this.end();
    else this.fail(reason || (await connectionFault()));
  }

  fail(message) {
    if (!this.ended) this.handlers.error(message);
    this.end();
  }

  end() {
    if (this.ended) return;
    this.ended = true;
    this.release();
    this.handlers.end();
  }

  release() {
    this.stream?.getTracks().forEach((track) => track.stop());
    if (this.context && this.context.state !== "closed") this.context.close();
    this.socket?.close();
  }
}

/** Words with `confidence` in place of vosk's `conf`; from the text, if there is nothing else. */
function wordsOf(result, text) {
  if (!result) return text.split(" ").filter(Boolean).map((word) => ({ word }));
  return result.map(({ conf, ...word }) => ({ ...word, confidence: conf }));
}
