/** Sends microphone audio to the page in blocks of 16-bit samples. */

const BLOCK_SECONDS = 0.1;

class PcmBlocks extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Int16Array(Math.round(sampleRate * BLOCK_SECONDS));
    this.filled = 0;
    this.stopped = false;
    this.port.onmessage = () => {
      this.send();
      this.stopped = true;
      this.port.postMessage(null); // everything has been sent
    };
  }

  process([input]) {
    if (this.stopped) return false;
    for (const sample of input[0] ?? []) {
      this.block[this.filled++] = Math.max(-1, Math.min(1, sample)) * 32767;
      if (this.filled === this.block.length) this.send();
    }
    return true;
  }

  send() {
    if (this.filled) this.port.postMessage(this.block.slice(0, this.filled));
    this.filled = 0;
  }
}

registerProcessor("pcm-blocks", PcmBlocks);
