// Lays newly rendered elements over those that are there, so that focus, scroll and what is open stay.
// An element with data-kept was put there by this browser and is left alone.

const KEPT = new Set(["open", "aria-busy"]);

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
}

function attributes(now, next) {
  for (const { name, value } of next.attributes) {
    if (!KEPT.has(name) && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (!KEPT.has(name) && !next.hasAttribute(name)) now.removeAttribute(name);
  }
}

const kept = (node) => node.dataset?.kept !== undefined;

export function children(now, next) {
  const keyed = new Map();
  for (const child of now.children) if (child.id) keyed.set(child.id, child);
  let at = now.firstChild;
  for (const want of [...next.childNodes]) {
    while (at && kept(at)) at = at.nextSibling;
    const known = want.id ? keyed.get(want.id) : undefined;
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
      now.insertBefore(want, at);
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
    now.replaceWith(next);
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
