// The event stream. It goes on after the last entry that was heard; while it is up, nobody asks for anything
// that has not changed. After a drop `returned` is called: progress in between was not told. A server that hangs
// keeps its connections open: a stream without a beat for some seconds is taken as lost, too.

import { call } from "./api.js";

const SHORTEST = 500;
const LONGEST = 10000;
const REST_AFTER = 30000;
// The server beats every four seconds. Seconds are counted and not measured: a computer that slept has missed none.
const TICK = 1000;
const SILENT_TICKS = 12;

export function follow({ event, progress, workers, state, returned }) {
  const verbs = document.body.dataset.verbs.split(" ");
  let last = document.body.dataset.cursor;
  let pause = SHORTEST;
  let dropped = false;
  let source = null;
  let timer = 0;
  let silent = 0;
  let news = Date.now();

  function alive() {
    silent = 0;
    news = Date.now();
  }

  function heard(message) {
    alive();
    if (message.lastEventId) last = message.lastEventId;
    event(JSON.parse(message.data));
  }

  function lost() {
    source.close();
    dropped = true;
    state("lost", news);
    // A stream does not say why it was refused; whoever is signed out is led to sign in again.
    if (pause > SHORTEST) call("GET", "/api/v1/status").catch(() => {});
    clearTimeout(timer);
    timer = setTimeout(open, pause * (0.75 + Math.random() / 2));
    pause = Math.min(LONGEST, pause * 2);
  }

  function open() {
    clearTimeout(timer);
    source = new EventSource(`/api/v1/events/stream?cursor=${last}`);
    silent = 0;
    source.onopen = () => {
      alive();
      pause = SHORTEST;
      state("live", news);
      if (dropped) returned();
      dropped = false;
    };
    source.onerror = lost;
    for (const verb of verbs) source.addEventListener(verb, heard);
    source.addEventListener("progress", (message) => {
      alive();
      progress(JSON.parse(message.data));
    });
    source.addEventListener("workers", () => {
      alive();
      workers();
    });
    source.addEventListener("beat", alive);
  }

  setInterval(() => {
    silent += 1;
    if (silent >= SILENT_TICKS && source.readyState !== EventSource.CLOSED) lost();
  }, TICK);

  function hurry() {
    if (source.readyState === EventSource.CLOSED && !document.hidden) open();
  }

  // A browser opens six connections to a host at most: tabs that nobody looks at must not hold them all.
  let resting = 0;
  function rest() {
    clearTimeout(timer);
    source.close();
    dropped = true;
    state("resting", news);
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
