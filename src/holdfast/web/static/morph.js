// Lays newly rendered elements over those that are there, so that focus, scroll and what is open stay.
// An element with data-kept was put there by this browser and is left alone, and so is a form that somebody is
// filling in: wherever the server renders it next, it is the one that is there, with what was typed into it.

const KEPT = new Set(["open", "aria-busy"]);

// What an element is known by among its siblings: a section by its heading, for others come and go before it.
const key = (node) => node.id || node.getAttribute?.("aria-labelledby") || "";
const blank = (node) => node.nodeType === Node.TEXT_NODE && !node.data.trim();

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);
}

function changed(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  // A list without a choice of the server's own begins with its first entry.
  if (field.options) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected));
  return field.defaultValue !== undefined && field.value !== field.defaultValue;
}

function edited(form) {
  return form.contains(document.activeElement) || form.dataset.fingerprint !== undefined || [...form.elements].some(changed);
}

function attributes(now, next) {
  for (const { name, value } of next.attributes) {
    if (!KEPT.has(name) && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (!KEPT.has(name) && !next.hasAttribute(name)) now.removeAttribute(name);
  }
}

const kept = (node) => node.dataset?.kept !== undefined || (node.nodeName === "FORM" && edited(node));

// New elements, in which whatever is kept stands in place of what was rendered for it.
function carrying(fresh) {
  if (fresh.nodeType !== Node.ELEMENT_NODE) return fresh;
  for (const rendered of fresh.querySelectorAll("form[id], dialog[id], ol[id]")) {
    const live = document.getElementById(rendered.id);
    if (live && kept(live)) rendered.replaceWith(live);
  }
  return fresh;
}

export function children(now, next) {
  const keyed = new Map();
  for (const child of now.children) if (key(child)) keyed.set(key(child), child);
  let at = now.firstChild;
  for (const want of [...next.childNodes]) {
    // A blank more or less, as between a whole page and a part of it, must not set everything after it off.
    while (at && (kept(at) || (blank(at) && !blank(want)))) at = at.nextSibling;
    if (blank(want) && !(at && blank(at))) {
      const before = at ? at.previousSibling : now.lastChild;
      if (before && !blank(before)) now.insertBefore(want, at);
      continue;
    }
    const known = key(want) ? keyed.get(key(want)) : undefined;
    if (known && kept(known)) continue;
    if (known) {
      if (known === at) at = at.nextSibling;
      else now.insertBefore(known, at);
      morph(known, want);
    } else if (at && alike(at, want)) {
      const then = at.nextSibling;
      morph(at, want);
      at = then;
    } else {
      now.insertBefore(carrying(want), at);
    }
  }
  while (at) {
    const then = at.nextSibling;
    if (!kept(at)) at.remove();
    at = then;
  }
}

export function morph(now, next) {
  if (!alike(now, next)) {
    now.replaceWith(carrying(next));
  } else if (now.nodeType === Node.TEXT_NODE) {
    if (now.data !== next.data) now.data = next.data;
  } else if (now.nodeType === Node.ELEMENT_NODE) {
    if (now.isEqualNode(next)) return;
    attributes(now, next);
    if (now.nodeName !== "TEXTAREA") children(now, next);
  }
}

export function parsed(html) {
  return new DOMParser().parseFromString(html, "text/html").body;
}
