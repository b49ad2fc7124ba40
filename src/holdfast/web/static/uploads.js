// Many files at once: a few are sent at a time. Each row tells how far its file is and what became of it, until its
// document is ready or has failed; it can be cancelled, sent again and dismissed.

import { sure } from "./acts.js";
import { call } from "./api.js";
import { count, say } from "./words.js";

const AT_ONCE = 3;
const MANY = 100;
const GONE_AFTER = 6000;
const MOST_WAITS = 5;
const ACCEPTED = "Accepted, waiting to be indexed";
const SAID = {
  unchanged: "Already here: nothing to pay",
  duplicate: "Already being indexed",
};
const UNDER_WAY = new Set(["waiting", "sending", "saving", "accepted"]);
const ENDS = new Set(["publish", "fail", "cancel", "delete"]);

function element(name, attributes, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// The files of a drop. A folder is walked through; what begins with a dot is not meant to be seen.
async function walked(entry, path = "") {
  if (entry.name.startsWith(".")) return [];
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    return [{ file, title: path ? path + entry.name : "" }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return found;
    for (const each of some) found.push(...(await walked(each, `${path}${entry.name}/`)));
  }
}

async function dropped(transfer) {
  // The items are gone after the first wait: they are taken out before it.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, title: "" }));
  const found = [];
  for (const entry of entries) {
    try {
      found.push(...(await walked(entry)));
    } catch {
      say(`“${entry.name}” cannot be read. Check its permissions, then drop it again.`);
    }
  }
  const folders = entries.filter((entry) => entry.isDirectory).map((entry) => `“${entry.name}”`);
  if (!found.length && folders.length) say(`There are no files in ${folders.join(", ")}.`);
  return found;
}

// What is wrong with the metadata for the next files; empty if nothing is.
function metadataProblem(text) {
  if (!text.trim()) return "";
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return "";
    return 'This is not a JSON object. Write it like {"author": "Ann"}.';
  } catch (error) {
    return `This is not valid JSON: ${error.message}.`;
  }
}

const hasFiles = (drag) => [...(drag.dataTransfer?.types || [])].includes("Files");

// Where files cannot be uploaded: otherwise the browser would open a dropped file and leave the web UI.
export function guard() {
  addEventListener("dragover", (drag) => {
    if (hasFiles(drag)) drag.preventDefault();
  });
  addEventListener("drop", (drag) => {
    if (!hasFiles(drag)) return;
    drag.preventDefault();
    say("Open a collection to upload files");
  });
}

export function begin(zone, changed) {
  const panel = document.getElementById("uploads");
  const list = document.getElementById("uploads-list");
  const most = Number(zone.dataset.most);
  const rows = new Set();
  const waiting = [];
  // Documents that ended lately: the news may come before the answer to the upload does.
  const ended = new Set();
  let under = 0;
  let batch = 0;

  function summary() {
    const states = [...rows].map((row) => row.state);
    const open = states.filter((state) => UNDER_WAY.has(state) && state !== "accepted").length;
    const failed = states.filter((state) => state === "failed").length;
    const indexing = states.filter((state) => state === "accepted").length;
    const words = [];
    if (open) words.push(`Uploading ${(batch - open + 1).toLocaleString("en")} of ${batch.toLocaleString("en")}`);
    if (indexing) words.push(`${indexing.toLocaleString("en")} being indexed`);
    if (failed) words.push(`${failed.toLocaleString("en")} failed`);
    document.getElementById("uploads-sum").textContent = words.join(" · ") || "Uploaded";
    document.getElementById("uploads-cancel").hidden = !open;
    document.getElementById("uploads-dismiss").hidden = !(states.length - open) || states.length < 2;
    panel.hidden = !rows.size;
    if (!open) batch = 0;
  }

  function forget(row) {
    row.made.remove();
    rows.delete(row);
    summary();
  }

  // What a row says, and what can be done about it.
  function show(row, state, text) {
    row.state = state;
    row.made.dataset.state = state;
    row.bar.hidden = !["waiting", "sending", "saving"].includes(state);
    if (row.words.textContent !== text) row.words.textContent = text;
    row.words.className = { failed: "bad-text small", ready: "good small" }[state] || "quiet small";
    row.again.hidden = !(state === "failed" && row.canTryAgain);
    row.end.textContent = row.bar.hidden ? "Dismiss" : "Cancel";
    if (state === "ready") setTimeout(() => forget(row), GONE_AFTER);
    summary();
  }

  function add({ file, title }, about) {
    const name = title || file.name;
    const row = { file, title, name, about, waits: 0, canTryAgain: true };
    row.made = element("li", {});
    row.bar = element("progress", { max: "1000", value: "0", "aria-label": `Upload of ${name}` });
    row.words = element("span", {});
    row.again = element("button", { type: "button", class: "button quiet", "data-upload": "again" }, "Retry");
    row.end = element("button", { type: "button", class: "button quiet", "data-upload": "end" }, "Cancel");
    const acts = element("span", { class: "row end" });
    acts.append(row.again, row.end);
    row.label = element("span", { class: "name", title: name }, name);
    row.made.append(row.label, row.bar, row.words, acts);
    row.made.row = row;
    rows.add(row);
    list.append(row.made);
    if (file.size > most) {
      row.canTryAgain = false;
      show(row, "failed", `Larger than ${Math.round(most / 1e6)} MB: split it, or ask your administrator for a higher limit`);
    } else {
      batch += 1;
      queue(row);
    }
  }

  function queue(row) {
    row.bar.value = 0;
    waiting.push(row);
    show(row, "waiting", "Waiting");
  }

  // From here on the row follows its document.
  async function follow(row) {
    let told;
    try {
      ({ body: told } = await call("GET", `/api/v1/documents/${row.document}`));
    } catch (problem) {
      if (problem.status === 404) forget(row);
      return;
    }
    if (told.index_status === "success") show(row, "ready", "Ready");
    else if (told.index_status === "failed") {
      row.canTryAgain = false;
      show(row, "failed", `Failed: ${told.error?.message || "open the document to see why"}`);
    } else if (told.index_status === "not_indexed") show(row, "cancelled", "Cancelled");
  }

  function taken(row, told) {
    row.document = told.document?.id;
    if (row.document) {
      const link = element("a", { href: `/documents/${row.document}` }, row.name);
      row.label.replaceChildren(link);
    }
    if (told.disposition === "unchanged") show(row, "ready", SAID.unchanged);
    else {
      show(row, "accepted", SAID[told.disposition] || ACCEPTED);
      if (ended.has(row.document)) follow(row);
    }
    changed(row.document);
  }

  function refused(row, status, told, later) {
    // The server asks to be left alone for a moment: nobody has to click for that.
    if ([429, 503].includes(status) && row.waits < MOST_WAITS) {
      row.waits += 1;
      show(row, "waiting", "The server is busy; retrying in a moment");
      row.timer = setTimeout(() => {
        waiting.push(row);
        next();
      }, 1000 * Math.min(30, Number(later) || 2));
      return;
    }
    row.canTryAgain = !status || status >= 500 || status === 429;
    const message = told.error?.message;
    show(row, "failed", message ? message[0].toUpperCase() + message.slice(1) : "The server cannot be reached");
    if (status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
  }

  function send(row) {
    under += 1;
    const request = new XMLHttpRequest();
    const form = new FormData();
    if (row.title) form.append("title", row.title);
    if (row.about.password) form.append("password", row.about.password);
    if (row.about.metadata) form.append("metadata", row.about.metadata);
    if (row.about.labels.length) form.append("labels", JSON.stringify(row.about.labels));
    form.append("file", row.file, row.file.name);
    row.request = request;
    request.open("POST", `/api/v1/collections/${zone.dataset.collection}/documents`);
    request.setRequestHeader("X-Holdfast-Page", "1");
    request.upload.onprogress = (told) => {
      if (told.lengthComputable) row.bar.value = Math.floor((1000 * told.loaded) / told.total);
      if (row.state === "sending" && told.loaded === told.total) show(row, "saving", "Processing");
    };
    request.onloadend = () => {
      under -= 1;
      row.request = null;
      if (rows.has(row)) {
        let told = {};
        try {
          told = JSON.parse(request.responseText);
        } catch {
          told = {};
        }
        if (request.status >= 200 && request.status < 300) taken(row, told);
        else refused(row, request.status, told, request.getResponseHeader("Retry-After"));
      }
      next();
    };
    show(row, "sending", "Uploading");
    request.send(form);
  }

  function next() {
    while (waiting.length && under < AT_ONCE) send(waiting.shift());
  }

  function end(row) {
    const at = waiting.indexOf(row);
    if (at >= 0) waiting.splice(at, 1);
    clearTimeout(row.timer);
    forget(row);
    row.request?.abort();
  }

  const metadata = document.getElementById("upload-metadata");
  const problem = document.getElementById("upload-metadata-problem");

  function check() {
    problem.textContent = metadataProblem(metadata.value);
    problem.hidden = !problem.textContent;
    metadata.setAttribute("aria-invalid", String(!problem.hidden));
    return problem.hidden;
  }
  metadata.addEventListener("change", check);
  metadata.addEventListener("input", () => {
    if (!problem.hidden) check();
  });

  async function take(files) {
    if (!check()) {
      document.getElementById("upload-about").open = true;
      metadata.focus();
      say("Nothing was uploaded: correct the metadata first.");
      return;
    }
    const labels = document.getElementById("upload-labels").value.split(",");
    const about = {
      metadata: metadata.value.trim(),
      labels: labels.map((each) => each.trim()).filter(Boolean),
      password: document.getElementById("upload-password").value,
    };
    if (files.length > MANY && !(await sure(`Upload ${count(files.length, "file")}?`, "Upload"))) return;
    for (const each of files) add(each, about);
    next();
  }

  list.addEventListener("click", (click) => {
    const button = click.target.closest("[data-upload]");
    const row = button?.closest("li").row;
    if (!row) return;
    if (button.dataset.upload === "end") {
      const near = row.made.nextElementSibling || row.made.previousElementSibling;
      end(row);
      near?.row.end.focus();
    } else {
      batch += 1;
      queue(row);
      next();
    }
  });
  document.getElementById("uploads-cancel").addEventListener("click", () => {
    for (const row of [...rows]) if (["waiting", "sending", "saving"].includes(row.state)) end(row);
  });
  document.getElementById("uploads-dismiss").addEventListener("click", () => {
    for (const row of [...rows]) if (!["waiting", "sending", "saving"].includes(row.state)) forget(row);
  });

  let depth = 0;
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
  addEventListener("drop", async (drag) => {
    if (!hasFiles(drag)) return;
    drag.preventDefault();
    depth = 0;
    zone.classList.remove("over");
    take(await dropped(drag.dataTransfer));
  });
  addEventListener("beforeunload", (leave) => {
    if (under || waiting.length) leave.preventDefault();
  });
  for (const name of ["files", "folder"]) {
    document.getElementById(name).addEventListener("change", (change) => {
      const chosen = [...change.target.files].filter((file) => !/(^|\/)\./.test(file.webkitRelativePath));
      take(chosen.map((file) => ({ file, title: file.webkitRelativePath })));
      change.target.value = "";
    });
  }

  return {
    // Something happened to a document.
    event(told) {
      const [sort, id] = (told.subject || "").split(":");
      if (sort !== "document" || told.kind !== "index" || !ENDS.has(told.verb)) return;
      ended.add(id);
      for (const row of rows) if (row.document === id && row.state === "accepted") follow(row);
    },
    // The stream was down: what it would have told is asked for.
    all() {
      for (const row of rows) if (row.state === "accepted") follow(row);
    },
  };
}
