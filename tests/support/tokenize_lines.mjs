// Tokenizes lines of JSON: node tokenize_lines.mjs TOKENIZER_JSON LINES_JSON.
// Prints for each its ids and the text that they give.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(
  new URL("../../export/runtimes/javascript/package.json", import.meta.url),
);
const { Tokenizer } = require("@huggingface/tokenizers");

const [model, lines] = process.argv
  .slice(2)
  .map((name) => JSON.parse(readFileSync(name, "utf8")));
const tokenizer = new Tokenizer(model, {});
const found = lines.map((line) => {
  const { ids } = tokenizer.encode(line, { add_special_tokens: false });
  const text = ids.length
    ? tokenizer.decode(ids, { clean_up_tokenization_spaces: false })
    : "";
  return [ids, text];
});
console.log(JSON.stringify(found));
