// Answers requests in Chromium: node parity_browser.mjs PAGE REQUESTS ANSWERS.

import { readFile, writeFile } from "node:fs/promises";

import { withPage } from "./runtimes/javascript/browser.mjs";

const [folder, requestsFile, answersFile] = process.argv.slice(2);
const requests = JSON.parse(await readFile(requestsFile, "utf8"));
const script = await readFile(
  new URL("./runtimes/javascript/answer.mjs", import.meta.url),
  "utf8",
);
const answers = await withPage(folder, async (page) => {
  await page.evaluate(async (code) => {
    const blob = new Blob([code], { type: "text/javascript" });
    window.answer = (await import(URL.createObjectURL(blob))).answer;
  }, script);
  const found = [];
  for (const request of requests) {
    found.push(await page.evaluate((each) => answer(translator, each), request));
  }
  return found;
});
await writeFile(answersFile, JSON.stringify({ interface: null, answers }));
