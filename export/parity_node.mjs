// Answers requests in Node: node parity_node.mjs FOLDER REQUESTS ANSWERS.

import { readFile, writeFile } from "node:fs/promises";

import { load } from "./runtimes/javascript/translate.mjs";
import { answer } from "./runtimes/javascript/answer.mjs";

const [folder, requestsFile, answersFile] = process.argv.slice(2);
const translator = await load(folder);
const answers = [];
for (const request of JSON.parse(await readFile(requestsFile, "utf8"))) {
  answers.push(await answer(translator, request));
}
await writeFile(answersFile, JSON.stringify({ interface: null, answers }));
