// Where the reader was in a list, so that Back, and the link from a document to its collection, lead there again.
// Filter and order are in the address; the row at the top of the window and how many rows were there are kept
// beside the entry of the history, and per collection for as long as the tab is open.

const name = (collection) => `holdfast.place.${collection}`;
const RETURNS = "holdfast.returns";

function stored(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

function store(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Full, or forbidden: the list then begins at its top.
  }
}

// The address of a list as it was last looked at.
export function address(collection) {
  return `/collections/${collection}${stored(name(collection))?.query || ""}`;
}

// The next page that is opened goes on where the list was left.
export function willReturn(collection) {
  store(RETURNS, collection);
}

// The place to go to now; null for the top.
export function found(collection) {
  const returns = stored(RETURNS) === collection;
  store(RETURNS, null);
  const kept = stored(name(collection));
  if (returns && kept?.query === location.search) return kept.place;
  return history.state?.place || null;
}

export function keep(list) {
  const collection = list.dataset.collection;
  history.scrollRestoration = "manual";
  function save() {
    const rows = [...list.querySelectorAll(":scope > li[data-id]")];
    const first = rows.find((row) => row.getBoundingClientRect().bottom > 0);
    const place = first && scrollY > 0 ? { row: first.id, top: first.getBoundingClientRect().top, rows: rows.indexOf(first) + 1, y: scrollY } : null;
    history.replaceState({ ...history.state, place }, "");
    store(name(collection), { query: location.search, place });
  }
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(save, 150);
  }, { passive: true });
  document.addEventListener("click", (click) => {
    if (click.target.closest("a")) save();
  }, { capture: true });
  addEventListener("pagehide", () => {
    clearTimeout(timer);
    save();
  });
  store(name(collection), { query: location.search, place: history.state?.place || null });
}

// Rows above may still change their height while they come into view: the place is looked up for a few frames.
export function go(place) {
  let frames = 4;
  const step = () => {
    const row = document.getElementById(place.row);
    if (row) scrollBy(0, row.getBoundingClientRect().top - place.top);
    else scrollTo(0, place.y);
    frames -= 1;
    if (frames) requestAnimationFrame(step);
  };
  step();
}
