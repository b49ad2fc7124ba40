// How things are said: to eyes, and to those who listen.

export function say(text) {
  if (!text) return;
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("said").append(line);
  setTimeout(() => line.remove(), 6000);
}

export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function money(dollars) {
  if (dollars > 0 && dollars < 0.0001) return "<$0.0001";
  return `$${dollars.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: dollars < 1 ? 4 : 2 })}`;
}

export function span(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toFixed(seconds < 10 * size ? 1 : 0)} ${unit}`;
  }
  if (seconds < 0.95) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 9.95 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}

function ago(when) {
  const seconds = (Date.now() - when) / 1000;
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return null;
}

// What happened today is told by the clock of whoever looks, anything older with its day.
function clock(when) {
  const date = new Date(when);
  const time = date.toLocaleTimeString("en-GB");
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

// Times count on by themselves: nothing is fetched for them.
export function times(inside = document) {
  for (const time of inside.querySelectorAll("time")) {
    const when = Date.parse(time.dateTime);
    const told = time.dataset.time === "clock" ? clock(when) : ago(when);
    if (told && time.textContent !== told) time.textContent = told;
  }
}

// How much of a run is done, in counts that fit its percentage; the same as `counted` of the server.
function counted({ phase, ...counts }) {
  return `${phase > 1 ? `phase ${phase} · ` : ""}${countedInPhase(counts)}`;
}

function countedInPhase({ done, total, unit, parts_done: partsDone, parts }) {
  const number = (count) => count.toLocaleString("en");
  if (parts > 1) {
    if (partsDone === parts) return "publishing";
    return `${number(partsDone)} of ${number(parts)} parts${done ? ` · ${number(done)} ${unit} so far` : ""}`;
  }
  if (!total) return "preparing";
  return done >= total ? `publishing ${number(total)} ${unit}` : `${number(done)} of ${number(total)} ${unit}`;
}

// How far a run is, into an element like the server's `far`.
export function far(element, told) {
  const { progress } = told;
  const set = (name, text) => {
    const place = element.querySelector(`[data-far="${name}"]`);
    if (place && place.textContent !== text) place.textContent = text;
  };
  element.querySelector("progress").value = Math.floor(progress.share * 1000);
  set("percent", String(progress.share >= 1 ? 100 : Math.min(99, Math.round(progress.share * 100))));
  set("counts", counted(progress));
  const behind = Object.entries(progress.stages).find(([, [done, total]]) => done < total);
  set("stage", behind ? ` · ${behind[0]}` : "");
  const started = Number(element.dataset.started || 0);
  const spent = Date.now() / 1000 - started;
  const left = (spent * (1 - progress.share)) / progress.share;
  set("eta", started && progress.share >= 0.03 && progress.share < 1 && spent > 1 ? ` · ${span(left)} left` : "");
}
