/** Spectrogram columns: log power spectra of short windows. */

const WINDOW_SECONDS = 0.016;
const PRE_EMPHASIS = 0.97;

/** Computes power spectra in dB at a sample rate; the number of frequencies is `size / 2`. */
export class Spectrum {
  constructor(rate) {
    this.window = Math.round(rate * WINDOW_SECONDS);
    this.size = 2 ** Math.ceil(Math.log2(this.window * 1.5));
    this.bins = this.size / 2;
    this.hann = Float32Array.from({ length: this.window }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / this.window));
    this.cosine = Float32Array.from({ length: this.bins }, (_, i) => Math.cos((2 * Math.PI * i) / this.size));
    this.sine = Float32Array.from({ length: this.bins }, (_, i) => Math.sin((2 * Math.PI * i) / this.size));
    const bits = Math.log2(this.size);
    this.reversed = Uint16Array.from({ length: this.size }, (_, i) => {
      let value = 0;
      for (let bit = 0; bit < bits; bit++) value |= ((i >> bit) & 1) << (bits - 1 - bit);
      return value;
    });
    this.real = new Float32Array(this.size);
    this.imaginary = new Float32Array(this.size);
  }

  /** Fill `out` with the dB values of the window that is centred on sample `centre`. */
  at(data, centre, out) {
    const { real, imaginary, reversed } = this;
    real.fill(0);
    imaginary.fill(0);
    const first = Math.round(centre - this.window / 2);
    for (let i = 0; i < this.window; i++) {
      const at = first + i;
      if (at >= 1 && at < data.length) real[reversed[i]] = (data[at] - PRE_EMPHASIS * data[at - 1]) * this.hann[i];
    }
    this.transform();
    for (let bin = 0; bin < this.bins; bin++) {
      out[bin] = 10 * Math.log10(real[bin] * real[bin] + imaginary[bin] * imaginary[bin] + 1e-12);
    }
  }

  /** Radix-2 FFT in place, of data in bit-reversed order. */
  transform() {
    const { real, imaginary, size } = this;
    for (let half = 1; half < size; half *= 2) {
      const stride = this.bins / half;
      for (let start = 0; start < size; start += 2 * half) {
        for (let k = 0; k < half; k++) {
          const c = this.cosine[k * stride];
          const s = this.sine[k * stride];
          const a = start + k;
          const b = a + half;
          const re = real[b] * c + imaginary[b] * s;
          const im = imaginary[b] * c - real[b] * s;
          real[b] = real[a] - re;
          imaginary[b] = imaginary[a] - im;
          real[a] += re;
          imaginary[a] += im;
        }
      }
    }
  }
}
