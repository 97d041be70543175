// Uses the page as a person would: node click_page.mjs PAGE TEXT SCREENSHOT.
// Prints what is to be seen, as JSON.

import { withPage } from "../../export/runtimes/javascript/browser.mjs";

const [folder, text, screenshot] = process.argv.slice(2);

const seen = await withPage(folder, async (page) => {
  await page.setViewport({ width: 900, height: 900 });
  await page.type("#text", text);
  await page.click("#translate");
  await page.waitForSelector("#attention td");
  const first = await look(page);
  // The last of them, and its own heat map.
  const rows = first.rows.join();
  const choices = await page.$$("#translations button");
  await choices.at(-1).click();
  await page.waitForFunction(
    (before) =>
      [...document.querySelectorAll("#attention tbody th")]
        .map((cell) => cell.textContent)
        .join() !== before,
    {},
    rows,
  );
  const last = await look(page);
  await choices[0].click();
  await page.waitForFunction(
    (before) =>
      [...document.querySelectorAll("#attention tbody th")]
        .map((cell) => cell.textContent)
        .join() === before,
    {},
    rows,
  );
  await page.screenshot({ path: screenshot });
  return { first, last };
});
console.log(JSON.stringify(seen));

function look(page) {
  return page.evaluate(() => {
    const texts = (selector) =>
      [...document.querySelectorAll(selector)].map((found) => found.textContent);
    return {
      status: document.getElementById("status").value,
      translations: texts("#translations .text"),
      scores: texts("#translations .score").map(Number),
      pressed: [...document.querySelectorAll("#translations button")].map(
        (button) => button.getAttribute("aria-pressed"),
      ),
      columns: texts("#attention thead th"),
      rows: texts("#attention tbody th"),
      weights: [...document.querySelectorAll("#attention tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].map((cell) => Number(cell.title)),
      ),
    };
  });
}
