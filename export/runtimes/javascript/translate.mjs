// Translates lines with ONNX Runtime: node translate.mjs FOLDER < LINES.
//
// A client to copy. FOLDER is what `export_onnx` wrote. It needs the packages
// of package.json: npm install --ignore-scripts

import { realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Tokenizer } from "@huggingface/tokenizers";
import * as ort from "onnxruntime-node";

import { Translator } from "./translator.mjs";

const BATCH_SIZE = 32;

export function load(folder) {
  return Translator.load({
    ort,
    Tokenizer,
    readJson: async (name) =>
      JSON.parse(await readFile(path.join(folder, name), "utf8")),
    openSession: (name) =>
      ort.InferenceSession.create(path.join(folder, name), {
        logSeverityLevel: 3,
      }),
  });
}

async function main(folder, beamSize = "4") {
  if (folder === undefined) {
    console.error("usage: node translate.mjs FOLDER [BEAM_SIZE] < LINES");
    process.exitCode = 2;
    return;
  }
  const translator = await load(folder);
  const lines = (await readFile("/dev/stdin", "utf8")).split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (let start = 0; start < lines.length; start += BATCH_SIZE) {
    const texts = lines.slice(start, start + BATCH_SIZE);
    const options = { beam_size: Number(beamSize) };
    for (const text of await translator.translate(texts, options)) {
      // One line each, whatever the model writes.
      console.log(text.replaceAll("\n", " "));
    }
  }
}

// Not where another module imports this one.
if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(...process.argv.slice(2));
}
