// Work on the document, a few milliseconds per frame, so that nothing the reader does has to wait for it.

const BUDGET = 8;
const queue = new Map();
let asked = false;

function turn() {
  asked = false;
  const end = performance.now() + BUDGET;
  for (const [key, work] of queue) {
    queue.delete(key);
    work();
    if (performance.now() > end) break;
  }
  if (queue.size) ask();
}

function ask() {
  if (asked) return;
  asked = true;
  // A page that is not seen has no frames; it is brought up to date all the same.
  if (document.hidden) setTimeout(turn, 50);
  else requestAnimationFrame(turn);
}

// Later work under the same key takes the place of what still waits.
export function soon(key, work) {
  queue.delete(key);
  queue.set(key, work);
  ask();
}

// One call at a time, with a pause between two; however often it is asked for meanwhile, one more follows.
export function calmly(pause, work) {
  let busy = false;
  let again = false;
  const run = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    try {
      await work();
    } finally {
      setTimeout(() => {
        busy = false;
        if (again) run();
      }, pause);
    }
  };
  return run;
}
