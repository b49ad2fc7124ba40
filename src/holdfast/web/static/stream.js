// The event stream. It goes on after the last entry that was heard; while it is up, nobody asks for anything
// that has not changed. After a drop `returned` is called: progress in between was not told.

import { call } from "./api.js";

const SHORTEST = 500;
const LONGEST = 10000;
const REST_AFTER = 30000;

export function follow({ event, progress, workers, state, returned }) {
  const verbs = document.body.dataset.verbs.split(" ");
  let last = document.body.dataset.cursor;
  let pause = SHORTEST;
  let dropped = false;
  let source = null;
  let timer = 0;

  function heard(message) {
    if (message.lastEventId) last = message.lastEventId;
    event(JSON.parse(message.data));
  }

  function open() {
    clearTimeout(timer);
    source = new EventSource(`/api/v1/events/stream?cursor=${last}`);
    source.onopen = () => {
      pause = SHORTEST;
      state("live");
      if (dropped) returned();
      dropped = false;
    };
    source.onerror = () => {
      source.close();
      dropped = true;
      state("lost");
      // A stream does not say why it was refused; whoever is signed out is led to sign in again.
      if (pause > SHORTEST) call("GET", "/api/v1/status").catch(() => {});
      timer = setTimeout(open, pause * (0.75 + Math.random() / 2));
      pause = Math.min(LONGEST, pause * 2);
    };
    for (const verb of verbs) source.addEventListener(verb, heard);
    source.addEventListener("progress", (message) => progress(JSON.parse(message.data)));
    source.addEventListener("workers", () => workers());
  }

  function hurry() {
    if (source.readyState === EventSource.CLOSED && !document.hidden) open();
  }

  // A browser opens six connections to a host at most: tabs that nobody looks at must not hold them all.
  let resting = 0;
  function rest() {
    clearTimeout(timer);
    source.close();
    dropped = true;
    state("resting");
  }

  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(resting);
    if (document.hidden) resting = setTimeout(rest, REST_AFTER);
    else hurry();
  });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (shown) => {
    if (shown.persisted) {
      dropped = true;
      open();
    }
  });
  open();
}
