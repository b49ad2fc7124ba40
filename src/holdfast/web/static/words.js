// How things are said: to eyes, and to those who listen.

export function say(text) {
  if (!text) return;
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("said").append(line);
  setTimeout(() => line.remove(), 6000);
}

export function money(dollars) {
  if (!dollars) return "$0.00";
  const places = dollars >= 1 ? 2 : dollars >= 0.01 ? 4 : dollars >= 0.000001 ? 6 : 9;
  return `$${dollars.toFixed(places)}`;
}

export function span(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toFixed(seconds < 10 * size ? 1 : 0)} ${unit}`;
  }
  return seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}

function ago(when) {
  const seconds = (Date.now() - when) / 1000;
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return null;
}

// Times count on by themselves: nothing is fetched for them.
export function times(inside = document) {
  for (const time of inside.querySelectorAll("time")) {
    const told = ago(Date.parse(time.dateTime));
    if (told && time.textContent !== told) time.textContent = told;
  }
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
  if (progress.total) set("counts", `${progress.done.toLocaleString("en")} of ${progress.total.toLocaleString("en")} ${progress.unit}`);
  const behind = Object.entries(progress.stages).find(([, [done, total]]) => done < total);
  set("stage", behind ? ` · ${behind[0]}` : "");
  const started = Number(element.dataset.started || 0);
  const spent = Date.now() / 1000 - started;
  const left = (spent * (1 - progress.share)) / progress.share;
  set("eta", started && progress.share >= 0.03 && progress.share < 1 && spent > 1 ? ` · ${span(left)} left` : "");
}
