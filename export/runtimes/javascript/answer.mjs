// What a translator answers, as plain values: for the comparison of runtimes.

// JSON has no infinities: null stands for minus infinity, the score of nothing.
function plain(value) {
  if (value === -Infinity) return null;
  if (!Number.isFinite(value)) throw new RangeError(`a score of ${value}`);
  return value;
}

// The nested arrays of a tensor.
function nested(data, dims) {
  if (dims.length === 0) return data[0];
  const size = dims.slice(1).reduce((product, axis) => product * axis, 1);
  return Array.from({ length: dims[0] }, (_, i) =>
    nested(data.slice(i * size, (i + 1) * size), dims.slice(1)),
  );
}

export async function answer(translator, { signature, inputs }) {
  if (signature === "translate") return answerText(translator, inputs);
  const outputs = await translator.run(signature, inputs);
  const values = {};
  for (const [name, tensor] of Object.entries(outputs)) {
    const data = Array.from(tensor.data, (value) =>
      tensor.type === "bool" ? Boolean(value) : plain(value),
    );
    values[name] = { value: nested(data, tensor.dims) };
  }
  return values;
}

async function answerText(translator, { text, ...options }) {
  const found = await translator.hypotheses(text, options);
  const slots = options.num_hypotheses ?? 1;
  const rows = (pick, empty) => ({
    value: found.map((best) =>
      Array.from({ length: slots }, (_, i) => (best[i] ? pick(best[i]) : empty)),
    ),
  });
  return {
    text: rows((each) => each.text, ""),
    scores: rows((each) => each.score, null),
  };
}
