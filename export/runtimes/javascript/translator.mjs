// Text to text over `beam.explicit.onnx`; a module to copy. Node and browsers
// alike: what they do not share (the runtime, how files are read) is given.

// The inputs that are not options.
const GIVEN = new Set(["source_ids", "seed", "target_ids"]);

export class Translator {
  // ort: the module of ONNX Runtime. Tokenizer: of @huggingface/tokenizers.
  // readJson(name) and openSession(name) promise what a file of the exported
  // folder holds.
  static async load({ ort, Tokenizer, readJson, openSession }) {
    const translator = new Translator();
    const [metadata, source, target] = await Promise.all([
      readJson("metadata.json"),
      readJson("source_tokenizer.json"),
      readJson("target_tokenizer.json"),
    ]);
    translator.ort = ort;
    translator.metadata = metadata;
    translator.ids = metadata.special_ids;
    translator.source = new Tokenizer(source, {});
    translator.target = new Tokenizer(target, {});
    translator.openSession = openSession;
    translator.sessions = new Map();
    return translator;
  }

  // The ids of each text and eos.
  tokenize(texts) {
    return texts.map((text) => [
      ...this.source.encode(text, { add_special_tokens: false }).ids,
      this.ids.eos,
    ]);
  }

  // The text of ids; without them there is none.
  detokenize(ids) {
    const options = { clean_up_tokenization_spaces: false };
    return ids.length ? this.target.decode(ids, options) : "";
  }

  // Rows of ids as a rectangle.
  pad(rows) {
    const width = Math.max(0, ...rows.map((row) => row.length));
    return rows.map((row) => [
      ...row,
      ...Array(width - row.length).fill(this.ids.pad),
    ]);
  }

  // Runs a graph. Inputs are numbers or nested arrays of them; an option that
  // is not given has its default. Outputs are tensors.
  async run(signature, inputs) {
    const expected = this.metadata.signatures[signature].inputs;
    const names = new Set(expected.map((each) => each.name));
    for (const name of Object.keys(inputs)) {
      if (!names.has(name)) {
        throw new RangeError(
          `${signature} has the inputs ${[...names].join(", ")}, not ${name}`,
        );
      }
    }
    const feeds = {};
    for (const { name, dtype, shape, default: value } of expected) {
      const given = inputs[name] ?? value;
      if (given === null) throw new RangeError(`${signature} needs ${name}`);
      feeds[name] = this.tensor(given, dtype, shape.length);
    }
    const session = await this.session(signature);
    return session.run(feeds);
  }

  // Promises the graph of a signature, which is opened once.
  session(signature) {
    if (!this.sessions.has(signature)) {
      const { inputs } = this.metadata.signatures[signature];
      const options = inputs.some((each) => !GIVEN.has(each.name));
      const name = options ? `${signature}.explicit` : signature;
      this.sessions.set(signature, this.openSession(`${name}.onnx`));
    }
    return this.sessions.get(signature);
  }

  tensor(value, dtype, rank) {
    const shape = [];
    let inner = value;
    for (let axis = 0; axis < rank; axis += 1) {
      shape.push(inner?.length ?? 0);
      inner = inner?.[0];
    }
    const numbers = rank ? value.flat(rank - 1) : [value];
    const data = dtype === "int32" ? Int32Array.from(numbers) : Float32Array.from(numbers);
    return new this.ort.Tensor(dtype, data, shape);
  }

  // The best translations of each text: [{ text, score, ids }], best first.
  // Options are those of `beam`: { beam_size: 4, num_hypotheses: 4, ... }.
  async hypotheses(texts, options = {}) {
    const source_ids = this.pad(this.tokenize(texts));
    const found = await this.run("beam", { source_ids, ...options });
    const [rows, slots, width] = found.token_ids.dims;
    const ids = found.token_ids.data;
    const results = [];
    for (let row = 0; row < rows; row += 1) {
      const best = [];
      for (let slot = row * slots; slot < (row + 1) * slots; slot += 1) {
        const score = found.scores.data[slot];
        if (score === -Infinity) continue; // There is no such hypothesis.
        const start = slot * width;
        const end = start + found.lengths.data[slot];
        const all = Array.from(ids.slice(start, end));
        const pieces = found.finished.data[slot] ? all.slice(0, -1) : all;
        best.push({ text: this.detokenize(pieces), score, ids: all });
      }
      results.push(best);
    }
    return results;
  }

  // The best translation of each text.
  async translate(texts, options = {}) {
    if (texts.length === 0) return [];
    const found = await this.hypotheses(texts, options);
    return found.map(([best]) => best?.text ?? "");
  }
}
