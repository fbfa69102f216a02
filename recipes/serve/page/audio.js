/** Samples of a recording, their WAV file, and playing them. */

const ONLY_BROWSERS = /\.(m4a|m4b|mp4|aac|webm|mov|mkv|3gp|wma|amr)$/i;

/** Whether a file has a format that the server cannot read, so that its samples are sent. */
export const needsBrowser = (file) => ONLY_BROWSERS.test(file.name) || file.type.startsWith("video/");

/** Samples of one channel, from -1 to 1, to which more can be added. */
export class Samples {
  constructor(rate, data = new Float32Array(0)) {
    this.rate = rate;
    this.buffer = data;
    this.length = data.length;
  }

  get seconds() {
    return this.length / this.rate;
  }

  append(pcm) {
    if (this.length + pcm.length > this.buffer.length) {
      const larger = new Float32Array(Math.max(2 * this.buffer.length, this.length + pcm.length, 1 << 16));
      larger.set(this.buffer.subarray(0, this.length));
      this.buffer = larger;
    }
    for (let i = 0; i < pcm.length; i++) this.buffer[this.length + i] = pcm[i] / 32768;
    this.length += pcm.length;
  }

  get data() {
    return this.buffer.subarray(0, this.length);
  }
}

/** Decode an audio file to samples at a rate; null for a format that is not known here.  Channels are averaged. */
export async function decode(file, rate) {
  try {
    const sphere = decodeSphere(await file.arrayBuffer());
    if (sphere) return sphere;
    const context = new OfflineAudioContext(1, 1, rate);
    const decoded = await context.decodeAudioData(await file.arrayBuffer());
    const mixed = new Float32Array(decoded.length);
    for (let channel = 0; channel < decoded.numberOfChannels; channel++) {
      const data = decoded.getChannelData(channel);
      for (let i = 0; i < mixed.length; i++) mixed[i] += data[i] / decoded.numberOfChannels;
    }
    return new Samples(rate, mixed);
  } catch {
    return null;
  }
}

/** Decode a NIST SPHERE file of 16-bit samples, which browsers do not know; null for other files. */
export function decodeSphere(buffer) {
  const [magic, size] = new TextDecoder("latin1").decode(buffer.slice(0, 16)).split("\n");
  if (magic !== "NIST_1A" || !(Number(size) > 16)) return null;
  const header = new TextDecoder("latin1").decode(buffer.slice(16, Number(size)));
  const field = (name) => header.match(new RegExp(`^${name} -\\w+ (.*)$`, "m"))?.[1].trim();
  const channels = Number(field("channel_count") ?? 1);
  const rate = Number(field("sample_rate"));
  if ((field("sample_coding") ?? "pcm") !== "pcm" || field("sample_n_bytes") !== "2" || !(rate > 0) || !(channels > 0)) return null;
  const view = new DataView(buffer, Number(size));
  const littleEndian = field("sample_byte_format") !== "10";
  const mixed = new Float32Array(Math.floor(view.byteLength / 2 / channels));
  for (let i = 0; i < mixed.length * channels; i++) {
    mixed[Math.floor(i / channels)] += view.getInt16(2 * i, littleEndian) / 32768 / channels;
  }
  return new Samples(rate, mixed);
}

/** A WAV file of 16-bit samples. */
export function wavFile(samples, name) {
  const header = new DataView(new ArrayBuffer(44));
  const bytes = 2 * samples.length;
  const text = (offset, value) => [...value].forEach((c, i) => header.setUint8(offset + i, c.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true); // PCM
  header.setUint16(22, 1, true); // channels
  header.setUint32(24, samples.rate, true);
  header.setUint32(28, 2 * samples.rate, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, bytes, true);
  const pcm = Int16Array.from(samples.data, (value) => Math.max(-32768, Math.min(32767, Math.round(value * 32768))));
  return new File([header, pcm], name, { type: "audio/wav" });
}

/** Plays samples; `changed` is called when playing begins and ends. */
export class Player {
  constructor(changed) {
    this.changed = changed;
    this.samples = null;
    this.source = null;
    this.offset = 0;
  }

  load(samples) {
    this.stop();
    this.samples = samples;
    this.buffer = null;
    this.offset = 0;
  }

  get playing() {
    return this.source !== null;
  }

  /** Seconds from the start of the recording. */
  get position() {
    if (!this.source) return this.offset;
    return Math.min(this.samples.seconds, this.offset + Math.max(0, this.context.currentTime - this.began));
  }

  seek(seconds) {
    if (!this.samples) return;
    const playing = this.playing;
    this.stop();
    this.offset = Math.max(0, Math.min(this.samples.seconds, seconds));
    if (playing) this.play(this.offset);
  }

  play(from) {
    if (!this.samples?.length) return;
    this.stop();
    this.context ??= new AudioContext();
    this.context.resume();
    if (!this.buffer) {
      this.buffer = this.context.createBuffer(1, this.samples.length, this.samples.rate);
      this.buffer.copyToChannel(this.samples.data, 0);
    }
    const source = this.context.createBufferSource();
    source.buffer = this.buffer;
    source.connect(this.context.destination);
    source.onended = () => {
      if (this.source !== source) return;
      this.source = null;
      this.offset = 0;
      this.changed();
    };
    this.offset = Math.max(0, Math.min(this.samples.seconds, from));
    this.began = this.context.currentTime;
    this.source = source;
    source.start(0, this.offset);
    this.changed();
  }

  stop() {
    if (!this.source) return;
    this.offset = this.position;
    const source = this.source;
    this.source = null;
    source.stop();
    this.changed();
  }
}
