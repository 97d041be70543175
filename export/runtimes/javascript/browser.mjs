// Opens the page in headless Chromium: for the comparison of runtimes and the
// tests, not for a client.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";

import { launch } from "puppeteer-core";

const TYPES = {
  ".html": "text/html",
  ".css": "text/css",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

// Serves a folder on a free port of this machine.
async function serve(folder) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const name = pathname === "/" ? "/index.html" : pathname;
    try {
      const content = await readFile(path.join(folder, path.normalize(name)));
      const type = TYPES[path.extname(name)] ?? "application/octet-stream";
      response.writeHead(200, { "Content-Type": type }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

// Gives `use` the page once its model is loaded. Then the server is gone, and
// so is the network.
export async function withPage(folder, use) {
  const server = await serve(folder);
  const browser = await launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  try {
    const page = await browser.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(
      () => !document.getElementById("status").value.startsWith("Loading"),
      { timeout: 120_000 },
    );
    const status = await page.$eval("#status", (output) => output.value);
    if (status !== "Ready" || problems.length) {
      throw new Error([status, ...problems].join("\n"));
    }
    await page.evaluate(() =>
      Promise.all(["greedy", "sample", "score"].map((name) => translator.session(name))),
    );
    await page.setOfflineMode(true);
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    return await use(page);
  } finally {
    await browser.close();
    server.close();
  }
}
