/** The microphone, recognised while it is recorded over a WebSocket that speaks vosk's protocol. */

import { token } from "./server.js";

const MOST_WAITING = 1 << 20; // bytes that may wait for the network
const UNPROCESSED = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };

/**
 * One recording.  Handlers: begin(sampleRate), samples(Int16Array), partial(words), final(words), end(), error(message);
 * words as in vosk's results: word, start, end, conf.
 */
export class Microphone {
  constructor(handlers) {
    this.handlers = handlers;
    this.ended = false;
  }

  async start() {
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ audio: UNPROCESSED });
      this.context = new AudioContext();
      await this.context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
      this.socket = await this.connect();
      this.capture();
    } catch (fault) {
      this.fail(fault.name === "NotAllowedError" ? "The browser does not allow the microphone." : fault.message);
    }
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
      socket.onerror = () => reject(new Error("The server refuses the connection."));
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
    if (this.ended || this.socket.readyState !== WebSocket.OPEN) return;
    if (this.socket.bufferedAmount > MOST_WAITING) {
      this.fail("The server is too slow for this microphone; the recording was stopped.");
      return;
    }
    this.socket.send(samples);
    this.handlers.samples(samples);
  }

  /** End the recording; the last words follow. */
  stop() {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.node?.port.postMessage("stop");
  }

  finish() {
    this.context.close();
    this.finishing = true;
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send('{"eof": 1}');
  }

  receive(message) {
    if (message.error) this.fail(message.error.message ?? message.error);
    else if ("partial" in message) this.handlers.partial(message.partial_result ?? plainWords(message.partial));
    else if ("text" in message) this.handlers.final(message.result ?? plainWords(message.text));
    if ("text" in message && this.finishing) this.socket.close();
  }

  closed(code, reason) {
    if (this.ended) return;
    if (!this.finishing) {
      this.fail(reason || `The server closed the connection (${code}).`);
      return;
    }
    this.ended = true;
    this.handlers.end();
  }

  fail(message) {
    if (this.ended) return;
    this.ended = true;
    this.stream?.getTracks().forEach((track) => track.stop());
    if (this.context && this.context.state !== "closed") this.context.close();
    this.socket?.close();
    this.handlers.error(message);
    this.handlers.end();
  }
}

const plainWords = (text) => text.split(" ").filter(Boolean).map((word) => ({ word }));
