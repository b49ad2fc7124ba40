// The picture of a knowledge graph: a click opens an entity in place, arrow keys go from one to the next.

import { part } from "./api.js";
import { children, parsed } from "./morph.js";
import { times } from "./words.js";

let requests = 0;

// What was asked for last is shown, whatever arrives last.
async function show(main, url) {
  const mine = (requests += 1);
  const html = await part(url);
  if (mine !== requests) return true;
  if (html === null) return false;
  const fresh = parsed(html);
  times(fresh);
  const focused = document.activeElement?.closest("#graph a")?.id;
  children(main, fresh);
  // An element that is moved loses the focus.
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  rove(main);
  return true;
}

// One stop of the tab key for the whole picture; arrow keys go on from there.
function rove(main) {
  const links = [...main.querySelectorAll("#graph a")];
  const first = links.find((link) => link === document.activeElement) || links.find((link) => link.classList.contains("chosen")) || links.at(-1);
  for (const link of links) link.setAttribute("tabindex", link === first ? "0" : "-1");
}

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function centre(link) {
  const circle = link.querySelector("circle");
  return [Number(circle.getAttribute("cx")), Number(circle.getAttribute("cy"))];
}

// The nearest in a direction; what is aside counts as further away.
function next(link, [dx, dy]) {
  const [x, y] = centre(link);
  let best = null;
  let least = Infinity;
  for (const other of link.ownerSVGElement.querySelectorAll("a")) {
    const [ox, oy] = centre(other);
    const ahead = (ox - x) * dx + (oy - y) * dy;
    const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
    if (other !== link && ahead > 0.5 && ahead + 2 * aside < least) {
      least = ahead + 2 * aside;
      best = other;
    }
  }
  return best;
}

export function begin(main) {
  if (!main.querySelector("#graph")) return;
  rove(main);
  main.addEventListener("click", async (click) => {
    const link = click.target.closest("a[data-graph]");
    if (!link || click.ctrlKey || click.metaKey || click.shiftKey || click.altKey || click.button !== 0) return;
    click.preventDefault();
    const url = link.getAttribute("href");
    const isDrawn = link.closest("#graph") !== null;
    // At once, so that Back leads here also before the answer has come.
    history.pushState(null, "", url);
    if (!(await show(main, url))) {
      location.reload();
      return;
    }
    // Keyboard and screen reader go on in the panel, unless the reader walks through the picture.
    if (!isDrawn) document.getElementById("graph-panel")?.focus();
  });
  main.addEventListener("keydown", (key) => {
    const link = key.target.closest?.("#graph a");
    const direction = DIRECTIONS[key.key];
    if (!link || !direction) return;
    key.preventDefault();
    const to = next(link, direction);
    if (!to) return;
    to.focus();
    rove(main);
  });
  addEventListener("popstate", () => show(main, location.pathname + location.search));
}
