// The list of a collection: more rows as one scrolls, rows that move as their documents do, and many at once.

import { sure } from "./acts.js";
import { call, part } from "./api.js";
import { calmly, soon } from "./frames.js";
import { morph, parsed } from "./morph.js";
import * as places from "./places.js";
import { count, far, say, times } from "./words.js";

const BATCH = 100;
const WINDOW = 250;
const SOME = 10;
const MOST_ROWS = 500;
// A row that is looked for may have moved down by so many others before it is taken to be gone.
const SLACK = 500;

export function begin(list) {
  const collection = list.dataset.collection;
  const rows = list.dataset.rows;
  const query = list.dataset.query;
  const stale = new Set();
  let picked = 0;

  const counts = calmly(500, async () => {
    const html = await part(`/collections/${collection}/counts${query}`);
    if (html === null) return;
    const fresh = parsed(html).querySelector("#counts");
    soon("counts", () => morph(document.getElementById("counts"), fresh));
  });

  // Something, or nothing, is in the list; without a filter nothing means that the collection is empty.
  function shown() {
    const some = list.querySelector(":scope > li") !== null;
    document.getElementById("no-docs").hidden = some;
    document.getElementById("listing").hidden = !some && !list.dataset.filtered;
  }

  function lay(row) {
    const known = document.getElementById(row.id);
    if (known) {
      morph(known, row);
      times(known);
      if (!["queued", "indexing"].includes(row.dataset.status)) known.querySelector(":scope > .answer")?.remove();
    } else if (list.dataset.sort === "-updated") {
      list.prepend(row);
      times(row);
      shown();
    }
  }

  function leave(id) {
    const row = document.getElementById(`d-${id}`);
    if (!row) return;
    row.remove();
    tally();
    shown();
  }

  async function fetchSome(ids) {
    const html = await part(`${rows}${query ? `${query}&` : "?"}ids=${ids.join(",")}`);
    if (html === null) {
      for (const id of ids) stale.add(id);
      return false;
    }
    const found = new Set();
    for (const row of [...parsed(html).children]) {
      if (!row.dataset.id) continue;
      found.add(row.dataset.id);
      soon(row.id, () => lay(row));
    }
    for (const id of ids) {
      if (!found.has(id)) soon(`d-${id}`, () => leave(id));
    }
    return true;
  }

  const refresh = calmly(WINDOW, async () => {
    while (stale.size) {
      const ids = [...stale].slice(0, BATCH);
      for (const id of ids) stale.delete(id);
      if (!(await fetchSome(ids))) return;
    }
  });

  function touch(id) {
    if (id) stale.add(id);
    refresh();
    counts();
  }

  // More rows, when the end of the list comes near.
  const watch = new IntersectionObserver((seen) => {
    for (const each of seen) if (each.isIntersecting) more(each.target);
  }, { rootMargin: "1200px" });

  async function more(end) {
    watch.unobserve(end);
    const html = await part(`${rows}${query ? `${query}&` : "?"}cursor=${encodeURIComponent(end.dataset.cursor)}`);
    if (html === null) {
      setTimeout(() => watch.observe(end), 2000);
      return;
    }
    const fresh = [...parsed(html).children];
    // A few rows per turn: a hundred at once would be felt while scrolling.
    for (let at = 0; at < fresh.length; at += SOME) {
      soon(`${end.dataset.cursor}-${at}`, () => {
        const some = fresh.slice(at, at + SOME).filter((row) => !row.id || !document.getElementById(row.id));
        for (const row of some) times(row);
        end.before(...some);
      });
    }
    soon(`${end.dataset.cursor}-end`, () => {
      end.remove();
      const after = list.querySelector(":scope > .more");
      if (after) watch.observe(after);
    });
  }

  // Back to where the reader was: the rows up to there are fetched first.
  async function returned(place) {
    for (;;) {
      const end = list.querySelector(":scope > .more");
      const missing = place.rows - list.querySelectorAll(":scope > li[data-id]").length;
      if (!end || document.getElementById(place.row) || missing < -SLACK) return;
      const html = await part(`${rows}${query ? `${query}&` : "?"}limit=${MOST_ROWS}&cursor=${encodeURIComponent(end.dataset.cursor)}`);
      if (html === null) return;
      end.replaceWith(...parsed(html).children);
    }
  }

  async function start() {
    const place = places.found(collection);
    places.keep(list);
    if (place) {
      await returned(place);
      times(list);
      places.go(place);
    }
    const end = list.querySelector(":scope > .more");
    if (end) watch.observe(end);
  }
  start();

  // Many at once.
  const bulk = document.getElementById("bulk");
  const chosen = () => [...list.querySelectorAll("input[name=pick]:checked")];
  function tally() {
    picked = chosen().length;
    bulk.hidden = !picked;
    document.getElementById("n-chosen").textContent = String(picked);
  }
  list.addEventListener("change", (change) => {
    if (change.target.name === "pick") tally();
  });
  // With Shift, all rows from the last one that was ticked; Escape clears the selection.
  let lately = null;
  list.addEventListener("click", (click) => {
    if (click.target.name !== "pick") return;
    const boxes = [...list.querySelectorAll("input[name=pick]")];
    const [from, to] = [boxes.indexOf(lately), boxes.indexOf(click.target)].sort((a, b) => a - b);
    if (click.shiftKey && from >= 0) for (const box of boxes.slice(from, to + 1)) box.checked = click.target.checked;
    lately = click.target;
  });
  addEventListener("keydown", (key) => {
    if (key.key !== "Escape" || !picked || document.querySelector("dialog[open]")) return;
    for (const box of chosen()) box.checked = false;
    tally();
  });

  async function many(button) {
    const what = button.dataset.many;
    if (what === "all") {
      for (const box of list.querySelectorAll("input[name=pick]")) box.checked = true;
      tally();
      return;
    }
    const ids = chosen().map((box) => box.value);
    for (const box of chosen()) box.checked = false;
    tally();
    if (what === "none") return;
    let done = 0;
    const refusals = [];
    const one = async (id) => {
      try {
        if (what === "delete") await call("DELETE", `/api/v1/documents/${id}`);
        else await call("POST", `/api/v1/documents/${id}/${what}`, what === "index" ? { mode: button.dataset.mode } : undefined);
        done += 1;
      } catch (problem) {
        refusals.push(problem.message);
      }
      touch(id);
    };
    for (let at = 0; at < ids.length; at += 6) await Promise.all(ids.slice(at, at + 6).map(one));
    say(`${done} of ${ids.length} done${refusals.length ? `; ${refusals[0]}` : ""}`);
  }

  bulk.addEventListener("click", async (click) => {
    const button = click.target.closest("[data-many]");
    if (!button) return;
    if (button.dataset.many === "delete" && !(await sure(`Delete ${count(picked, "document")}? They will no longer be found.`))) return;
    many(button);
  });

  // Sorting and finding by title show their result at once.
  const tools = document.getElementById("tools");
  tools.elements.sort.addEventListener("change", () => tools.requestSubmit());

  return {
    touch,
    event(told) {
      if (told.collection !== collection && told.collection !== null) return;
      const [sort, id] = (told.subject || "").split(":");
      if (sort === "document" && told.kind === "index") touch(id);
    },
    progress(told) {
      const id = told.kind === "index" ? told.subject.split(":")[1] : "";
      const row = document.getElementById(`d-${id}`);
      if (!row) return;
      soon(`far-${id}`, () => {
        for (const each of row.querySelectorAll(".far")) far(each, told);
      });
    },
    all() {
      for (const row of list.children) if (row.dataset.id) stale.add(row.dataset.id);
      refresh();
      counts();
    },
  };
}
