// What every page does: follow the stream, bring itself up to date, and let the reader act.

import * as acts from "./acts.js";
import * as answers from "./answers.js";
import { part } from "./api.js";
import * as documents from "./documents.js";
import * as flows from "./flows.js";
import * as graph from "./graph.js";
import { calmly, soon } from "./frames.js";
import { children, parsed } from "./morph.js";
import * as places from "./places.js";
import { follow } from "./stream.js";
import * as uploads from "./uploads.js";
import { far, times } from "./words.js";

const AWAY_AFTER = 4000;

const main = document.getElementById("main");
const listElement = document.getElementById("docs");
const documentId = main.querySelector("[data-document]")?.dataset.document;
const list = listElement ? documents.begin(listElement) : null;
let sent = null;

const whole = calmly(documentId ? 300 : 1000, async () => {
  const html = await part(location.pathname + location.search);
  if (html === null) return;
  const fresh = parsed(html);
  times(fresh);
  soon("main", () => {
    children(main, fresh);
    const state = main.querySelector(".why")?.dataset.status;
    if (!["queued", "indexing"].includes(state)) main.querySelector(".head > .answer")?.remove();
  });
});

function refresh() {
  sent?.all();
  if (list) list.all();
  else whole();
}

function event(told) {
  sent?.event(told);
  if (list) list.event(told);
  else if (!documentId) whole();
  else if ((told.subject || "").split("#")[0] === `document:${documentId}`) whole();
}

// A document that is under way may have lost whoever worked on it.
function workers() {
  const status = main.querySelector(".why")?.dataset.status;
  if (!list && (!documentId || ["queued", "indexing"].includes(status))) whole();
}

function progress(told) {
  if (list) {
    list.progress(told);
    return;
  }
  for (const each of main.querySelectorAll(`.far[data-run="${told.run_id}"]`)) soon(`far-${told.run_id}`, () => far(each, told));
}

let away = 0;

function state(word, news) {
  // A short drop is nobody's concern; a longer one is said where it is seen.
  const notice = document.getElementById("away");
  if (word !== "lost") {
    clearTimeout(away);
    away = 0;
    notice.hidden = true;
  } else {
    document.getElementById("last-news").textContent = new Date(news).toLocaleTimeString("en-GB");
    away ||= setTimeout(() => { notice.hidden = false; }, AWAY_AFTER);
  }
  const place = document.getElementById("live");
  place.dataset.state = word;
  document.getElementById("live-word").textContent = { live: "Live", lost: "Reconnecting …", resting: "Paused" }[word];
}

function theme(change) {
  const root = document.documentElement;
  const name = change.target.value;
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  document.cookie = `holdfast_theme=${name}; path=/; max-age=31536000; samesite=strict`;
}

async function moreText(button) {
  const html = await part(button.dataset.more);
  if (html === null) return;
  const fresh = [...parsed(html).children];
  // From here on the reader has more of it than the server would render: it is left as it is.
  button.closest("ol").dataset.kept = "";
  button.closest("li").replaceWith(...fresh);
}

document.getElementById("theme").addEventListener("change", theme);

document.addEventListener("click", (click) => {
  const button = click.target.closest("[data-more]");
  if (button) moreText(button);
});
document.addEventListener("keydown", (key) => {
  if (key.key !== "/" || key.target.closest("input, textarea, select, dialog")) return;
  const field = main.querySelector("input[type=search]");
  if (field) {
    key.preventDefault();
    field.focus();
  }
});
acts.begin(refresh);
answers.begin(main);
flows.begin(main);
graph.begin(main);
// From a document back to the list as it was left.
const home = main.querySelector("[data-list]");
if (home) {
  const collection = home.dataset.list;
  const lead = () => {
    for (const link of main.querySelectorAll("[data-list]")) link.href = places.address(collection);
  };
  lead();
  document.addEventListener("click", (click) => {
    if (!click.target.closest("[data-list]")) return;
    lead();
    places.willReturn(collection);
  }, { capture: true });
}
const zone = document.getElementById("drop");
if (zone) sent = uploads.begin(zone, (id) => list.touch(id));
else uploads.guard();
// On a phone the current tab may be beyond the edge.
main.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
times();
setInterval(() => times(), 20000);
if (document.body.dataset.listens !== undefined) follow({ event, progress, workers, state, returned: refresh });
