// Many files at once: a few are sent at a time, each tells how far it is and what became of it.

import { say } from "./words.js";

const AT_ONCE = 3;
const SAID = {
  accepted: "Accepted",
  superseding: "Accepted as a new generation",
  takeover: "Accepted",
  unchanged: "Here already, nothing to pay",
  duplicate: "Already being indexed",
};

export function begin(zone, changed) {
  const list = document.getElementById("uploads");
  const most = Number(zone.dataset.most);
  const waiting = [];
  let under = 0;

  function row(file) {
    const made = document.createElement("li");
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = file.name;
    const bar = document.createElement("progress");
    bar.max = 1000;
    bar.value = 0;
    bar.setAttribute("aria-label", `Upload of ${file.name}`);
    const state = document.createElement("span");
    state.className = "quiet small";
    state.textContent = "Waiting";
    made.append(name, bar, state);
    list.hidden = false;
    list.append(made);
    return { made, bar, state };
  }

  function ended(shown, text, failed) {
    shown.state.textContent = text;
    shown.state.className = failed ? "bad-text small" : "good small";
    if (!failed) {
      setTimeout(() => {
        shown.made.remove();
        list.hidden = !list.children.length;
      }, 8000);
    }
  }

  function send({ file, shown }) {
    under += 1;
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name);
    request.open("POST", `/api/v1/collections/${zone.dataset.collection}/documents`);
    request.setRequestHeader("X-Holdfast-Page", "1");
    request.upload.onprogress = (told) => {
      if (told.lengthComputable) shown.bar.value = Math.floor((1000 * told.loaded) / told.total);
      shown.state.textContent = told.loaded < told.total ? "Sending" : "Being taken in";
    };
    request.onloadend = () => {
      under -= 1;
      let told = {};
      try {
        told = JSON.parse(request.responseText);
      } catch {
        told = {};
      }
      shown.bar.value = 1000;
      if (request.status >= 200 && request.status < 300) ended(shown, SAID[told.disposition] || "Accepted", false);
      else ended(shown, told.error?.message || "The server cannot be reached; drop it again", true);
      changed(told.document?.id);
      next();
    };
    request.send(form);
  }

  function next() {
    while (waiting.length && under < AT_ONCE) send(waiting.shift());
  }

  function take(files) {
    for (const file of files) {
      const shown = row(file);
      if (file.size > most) ended(shown, `Larger than ${Math.round(most / 1e6)} MB`, true);
      else waiting.push({ file, shown });
    }
    if (files.length) say(files.length === 1 ? "1 file is sent" : `${files.length} files are sent`);
    next();
  }

  let depth = 0;
  const hasFiles = (drag) => [...(drag.dataTransfer?.types || [])].includes("Files");
  addEventListener("dragenter", (drag) => {
    if (!hasFiles(drag)) return;
    depth += 1;
    zone.classList.add("over");
  });
  addEventListener("dragleave", (drag) => {
    if (!hasFiles(drag)) return;
    depth = Math.max(0, depth - 1);
    if (!depth) zone.classList.remove("over");
  });
  addEventListener("dragover", (drag) => {
    if (hasFiles(drag)) drag.preventDefault();
  });
  addEventListener("drop", (drag) => {
    if (!hasFiles(drag)) return;
    drag.preventDefault();
    depth = 0;
    zone.classList.remove("over");
    take([...drag.dataTransfer.files]);
  });
  addEventListener("beforeunload", (leave) => {
    if (under || waiting.length) leave.preventDefault();
  });
  document.getElementById("files").addEventListener("change", (change) => {
    take([...change.target.files]);
    change.target.value = "";
  });
}
