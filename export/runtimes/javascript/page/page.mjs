// The page: type a sentence, see the beam and where it looked. Everything it
// needs lies in its own folder, so that it works offline once it is loaded.

import { Tokenizer } from "./tokenizers.mjs";
import * as ort from "./ort/ort.wasm.min.mjs";
import { Translator } from "./translator.mjs";

const MODEL = "model";

ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
// More threads need headers of the server that isolate the page.
ort.env.wasm.numThreads = 1;

const element = (id) => document.getElementById(id);

async function read(name) {
  const response = await fetch(`${MODEL}/${name}`);
  if (!response.ok) throw new Error(`${MODEL}/${name}: ${response.status}`);
  return response;
}

async function load() {
  // Read once, for all graphs.
  const weights = new Uint8Array(await (await read("weights.bin")).arrayBuffer());
  const translator = await Translator.load({
    ort,
    Tokenizer,
    readJson: async (name) => (await read(name)).json(),
    openSession: async (name) =>
      ort.InferenceSession.create(
        new Uint8Array(await (await read(name)).arrayBuffer()),
        {
          externalData: [{ path: "weights.bin", data: weights }],
          logSeverityLevel: 3,
        },
      ),
  });
  // Now, not at the first sentence: later there may be no network.
  await Promise.all(["beam", "align"].map((name) => translator.session(name)));
  return translator;
}

async function translate(translator) {
  const text = element("text").value;
  const beam_size = Number(element("beam_size").value);
  const started = performance.now();
  const [found] = await translator.hypotheses([text], {
    beam_size,
    num_hypotheses: beam_size,
  });
  const milliseconds = Math.round(performance.now() - started);
  element("attention").replaceChildren();
  element("status").value = `${found.length} translations in ${milliseconds} ms`;
  element("translations").replaceChildren(
    ...found.map((hypothesis) => listItem(translator, text, hypothesis)),
  );
  element("translations").querySelector("button")?.click();
}

function listItem(translator, text, hypothesis) {
  const choice = create("button", { type: "button" }, [
    create("span", { className: "text" }, [hypothesis.text]),
    create("span", { className: "score" }, [hypothesis.score.toFixed(3)]),
  ]);
  choice.addEventListener("click", async () => {
    for (const other of element("translations").querySelectorAll("button")) {
      other.setAttribute("aria-pressed", String(other === choice));
    }
    try {
      const map = await heatMap(translator, text, hypothesis);
      // Another may have been chosen meanwhile.
      if (choice.getAttribute("aria-pressed") === "true" && choice.isConnected) {
        element("attention").replaceChildren(map);
      }
    } catch (error) {
      element("status").value = error.message;
    }
  });
  return create("li", {}, [choice]);
}

async function heatMap(translator, text, hypothesis) {
  const [source] = translator.tokenize([text]);
  const target = hypothesis.ids;
  const { attention } = await translator.run("align", {
    source_ids: [source],
    target_ids: [target],
  });
  const name = (tokenizer) => (id) => tokenizer.id_to_token(id);
  const columns = source.map(name(translator.source));
  const rows = target.map(name(translator.target));
  const header = columns.map((piece) => create("th", { scope: "col" }, [piece]));
  const body = rows.map((piece, row) => {
    const cells = columns.map((_, column) => {
      const weight = attention.data[row * columns.length + column];
      const cell = create("td", { title: weight.toFixed(3) });
      cell.style.setProperty("--weight", weight);
      return cell;
    });
    return create("tr", {}, [create("th", { scope: "row" }, [piece]), ...cells]);
  });
  return create("table", {}, [
    create("thead", {}, [create("tr", {}, [create("td"), ...header])]),
    create("tbody", {}, body),
  ]);
}

function create(tag, properties = {}, children = []) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function main() {
  const status = element("status");
  try {
    const translator = await load();
    window.translator = translator; // For the console, and for tests.
    element("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      element("translate").disabled = true;
      status.value = "Translating …";
      try {
        await translate(translator);
      } catch (error) {
        status.value = error.message;
      }
      element("translate").disabled = false;
    });
    status.value = "Ready";
    element("translate").disabled = false;
  } catch (error) {
    status.value = `The model cannot be loaded: ${error.message}`;
  }
}

main();
