// Buttons and forms that change something. What became of it is told beside them.

import { call } from "./api.js";
import * as places from "./places.js";
import { count, money, say } from "./words.js";

let changed = () => {};
// Of each form whose answer is on its way: the values that were sent, and what was asked for since.
const sending = new WeakMap();
const following = new WeakMap();

export function sure(question, verb = "Delete") {
  const dialog = document.getElementById("sure");
  dialog.querySelector("p").textContent = question;
  document.getElementById("sure-yes").textContent = verb;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}

function beside(button) {
  const home = button.closest("li.doc, .head, .why, li, dialog form") || document.getElementById("main");
  home.querySelector(":scope > .answer")?.remove();
  const made = document.createElement("div");
  made.className = "answer";
  made.dataset.kept = "";
  made.setAttribute("role", "status");
  home.append(made);
  return made;
}

function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

// What is already under way, with its progress and a way to end it.
export function active(place, error) {
  const { active: run, document_id: id } = error;
  const words = element("span", {}, `${error.message.replace(/\.$/, "")}. You are not charged twice.`);
  place.append(words);
  if (run.progress) {
    const bar = element("progress", { max: "1000", value: String(Math.floor(run.progress.share * 1000)), "aria-label": "Progress of the active run" });
    const percent = element("span", { "data-far": "percent" }, String(Math.round(run.progress.share * 100)));
    const far = element("div", { class: "far", "data-run": run.run_id || "" }, bar, element("span", { class: "far-words" }, percent, ` % · version ${run.generation}`));
    place.append(far);
  }
  const address = id ? `/api/v1/documents/${id}/cancel` : `/api/v1/jobs/${run.run_id}/cancel`;
  place.append(element("button", { type: "button", class: "button", "data-call": `POST ${address}`, "data-said": "Cancelled; the published version stays searchable" }, "Cancel run"));
  place.append(element("button", { type: "button", class: "button quiet", "data-dismiss": "" }, "Close"));
}

function refused(place, problem) {
  if (problem.error?.active) {
    active(place, problem.error);
    return;
  }
  place.classList.add("bad");
  place.append(element("span", {}, problem.message), element("button", { type: "button", class: "button quiet", "data-dismiss": "" }, "Close"));
}

async function act(button) {
  if (button.getAttribute("aria-busy") === "true") return;
  if (button.dataset.confirm && !(await sure(button.dataset.confirm, button.textContent.trim()))) return;
  const [method, path] = button.dataset.call.split(" ");
  button.setAttribute("aria-busy", "true");
  try {
    const body = button.dataset.body === undefined ? undefined : JSON.parse(button.dataset.body);
    const { body: told } = await call(method, path, body);
    button.closest(".answer")?.remove();
    button.closest("li.doc, .head, .why")?.querySelector(":scope > .answer")?.remove();
    say(told.disposition === "unchanged" ? "Nothing to do: already done with the same content and options" : button.dataset.said);
    if (button.dataset.goes) {
      const list = document.querySelector("[data-list]");
      if (list) places.willReturn(list.dataset.list);
      location.assign(list ? places.address(list.dataset.list) : button.dataset.goes);
    }
    else changed();
  } catch (problem) {
    refused(beside(button), problem);
  } finally {
    button.removeAttribute("aria-busy");
  }
}

// Another file for a document that is there: its old version answers until the new one is ready.
function replace(button) {
  const field = element("input", { type: "file" });
  field.addEventListener("change", async () => {
    if (!field.files.length || button.getAttribute("aria-busy") === "true") return;
    const form = new FormData();
    form.append("file", field.files[0], field.files[0].name);
    button.setAttribute("aria-busy", "true");
    try {
      const { body: told } = await call("PUT", `/api/v1/documents/${button.dataset.replace}/content`, form);
      button.closest("li.doc, .head, .why")?.querySelector(":scope > .answer")?.remove();
      say(told.disposition === "unchanged" ? "Same file: nothing to do" : `Replaced with ${field.files[0].name}`);
      changed(button.dataset.replace);
    } catch (problem) {
      refused(beside(button), problem);
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  field.click();
}

// An option that has parts is sent whole; null, which is the default, if it has none.
function group(form, name) {
  const parts = [...form.querySelectorAll(`[data-within="${name}"]`)].filter((each) => each.value);
  return parts.length ? Object.fromEntries(parts.map((each) => [each.name, each.value])) : null;
}

function options(form) {
  const found = {};
  for (const field of form.querySelectorAll("[data-was]")) {
    if (field.value === field.dataset.was) continue;
    if (field.dataset.within) found[field.dataset.within] = group(form, field.dataset.within);
    else found[field.name] = field.dataset.number === undefined ? field.value : Number(field.value);
  }
  return found;
}

// Fields that say how it is done, not what: no estimate depends on them.
function manner(form) {
  const found = {};
  for (const field of form.querySelectorAll("[data-manner]")) {
    if (field.value !== "") found[field.name] = Number(field.value);
  }
  return found;
}

function values(form) {
  if (form.dataset.inside) return { [form.dataset.inside]: options(form), ...manner(form) };
  const found = {};
  for (const field of form.elements) {
    if (!field.name || (field.value === "" && (field.dataset.commas === undefined || form.dataset.described === undefined))) continue;
    if (field.type === "checkbox") found[field.name] = field.checked;
    else if (field.dataset.json !== undefined) found[field.name] = parsed(field.value);
    else if (field.dataset.commas !== undefined) found[field.name] = field.value.split(",").map((each) => each.trim()).filter(Boolean);
    else found[field.name] = field.dataset.number === undefined ? field.value : Number(field.value);
  }
  return found;
}

// What is not JSON goes to the server as text, which says what is wrong with it.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function wrong(form, text) {
  const place = form.querySelector(".problem");
  place.textContent = text;
  place.hidden = !text;
}

async function send(form, method, path, body) {
  const button = form.querySelector(".main, .button:not([type=button])");
  const sent = JSON.stringify(values(form));
  if (button.getAttribute("aria-busy") === "true") {
    // The second of two quick clicks asks for nothing; other values are the next request.
    if (sent !== sending.get(form)) following.set(form, [method, path, body]);
    return;
  }
  wrong(form, "");
  button.setAttribute("aria-busy", "true");
  sending.set(form, sent);
  try {
    const estimate = form.dataset.fingerprint;
    // A form that was filled for one version changes no later one.
    const seen = form.dataset.generation ? { "If-Match": `"${form.dataset.generation}"` } : {};
    const { body: told } = await call(method, path, estimate ? { ...body, estimate } : body, seen);
    form.closest("dialog")?.close();
    // What was typed while the answer was on its way belongs to the next request.
    if (!form.dataset.inside && JSON.stringify(values(form)) === sent) form.reset();
    unestimated(form);
    for (const each of form.querySelectorAll("[data-switch]")) chosen(each);
    if (told.secret) secret(form.dataset.secret, told.secret);
    say(told.disposition === "unchanged" && form.dataset.described === undefined ? "Already there, unchanged" : form.dataset.said);
    if (form.dataset.goes) location.assign(form.dataset.goes.replace("{id}", encodeURIComponent(told.id)));
    else if (told.job_id) location.assign(`/jobs/${told.job_id}`);
    else changed();
  } catch (problem) {
    const moved = problem.error?.code === "generation_moved" && form.dataset.generation;
    wrong(form, moved ? "The document has changed since you opened this passage. Nothing was saved: copy your text, close this, and edit the new version." : problem.message);
    if (problem.error?.active) active(beside(button), problem.error);
  } finally {
    button.removeAttribute("aria-busy");
    const next = following.get(form);
    following.delete(form);
    if (next) send(form, ...next);
  }
}

// The passage beside the button, to be written anew.
function edit(button) {
  const form = document.getElementById("edit-passage-form");
  wrong(form, "");
  form.dataset.form = button.dataset.edit;
  form.dataset.generation = button.dataset.generation;
  form.elements.text.value = button.closest("li").querySelector(".passage").textContent;
  form.closest("dialog").showModal();
}

// What is drawn for the reader once, and never shown again.
function secret(id, text) {
  const dialog = document.getElementById(id);
  const field = dialog.querySelector("input");
  field.value = text;
  dialog.addEventListener("close", () => {
    field.value = "";
  }, { once: true });
  dialog.showModal();
  field.select();
}

// A choice that decides which other fields there are: only those are asked for, and sent.
function chosen(choice) {
  for (const each of choice.form.querySelectorAll("[data-kind]")) {
    each.hidden = each.dataset.kind !== choice.value;
    for (const field of each.querySelectorAll("[data-required]")) field.required = !each.hidden;
  }
}

// What a field of a parameter says; undefined where it is left empty.
function parameter(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.value.trim() === "") return undefined;
  if (field.dataset.json !== undefined) return JSON.parse(field.value);
  const between = field.dataset.lines !== undefined ? "\n" : field.dataset.list !== undefined ? "," : undefined;
  if (between) return field.value.split(between).map((each) => each.trim()).filter(Boolean);
  return field.dataset.number === undefined ? field.value : Number(field.value);
}

// A form of a kind with parameters of its own: {kind, params} for a job, {sort, name, params} for an action,
// {type, name, options} for a source.
// Null, and said so, where a parameter is no JSON.
function nestedBody(form) {
  const inside = form.dataset.params || "params";
  const body = { ...values(form), [inside]: {} };
  for (const field of form.querySelectorAll("[data-kind]:not([hidden]) [data-param]")) {
    try {
      const value = parameter(field);
      if (value !== undefined) body[inside][field.dataset.param] = value;
    } catch {
      wrong(form, `${field.labels[0].firstChild.textContent.trim()}: this is not valid JSON.`);
      return null;
    }
  }
  return body;
}

function nested(form) {
  const body = nestedBody(form);
  if (body === null) return;
  const place = form.querySelector("[data-in-path]")?.value;
  send(form, "POST", form.dataset.path.replace("{collection}", encodeURIComponent(place)), body);
}

// What the form would ask for, as an estimate is asked for it; null where it cannot be read.
function estimated(form) {
  const collection = form.dataset.estimate || form.querySelector("[data-in-path]").value;
  if (form.dataset.nested === undefined) return { collection, options: options(form) };
  const body = nestedBody(form);
  if (body === null) return null;
  return body.kind ? { collection, kind: body.kind, params: body.params } : { collection, action: { sort: body.sort, params: body.params } };
}

// An estimate holds for the values that it was made of: whoever changes one has to ask for it again.
function unestimated(form) {
  const apply = form?.querySelector("[data-after-estimate]");
  if (!apply) return;
  apply.disabled = true;
  delete form.dataset.fingerprint;
  form.querySelector("[data-estimated]").hidden = true;
}

function words(form, told) {
  if (form.elements.existing?.value === "skip") return "It runs only on documents that become ready from now on.";
  const documents = `${told.documents.toLocaleString("en")} document${told.documents === 1 ? "" : "s"}`;
  if (!told.documents) return form.dataset.nested === undefined ? "Nothing needs to be indexed again." : "No document is ready yet: nothing to pay now.";
  const about = told.exact ? "" : "About ";
  const runs = form.dataset.nested === "sort" ? `Runs now on ${documents} that ${told.documents === 1 ? "is" : "are"} ready. ` : "";
  const more = told.cost !== null && told.unpriced_calls ? ` + ${told.unpriced_calls.toLocaleString("en")} unpriced call${told.unpriced_calls === 1 ? "" : "s"}` : "";
  const price = told.cost === null ? `unpriced (${told.model} has no known price)` : about + money(told.cost) + more;
  const between = told.calls_between ? ` (${told.calls_between.map((each) => each.toLocaleString("en")).join(" to ")})` : "";
  return `${runs}${price} for ${documents}: ${count(told.calls, "paid call")}${between}, ${told.reused_calls.toLocaleString("en")} reused.`;
}

async function estimate(form) {
  const place = form.querySelector("[data-estimated]");
  wrong(form, "");
  if (!form.reportValidity()) return;
  const request = estimated(form);
  if (request === null) return;
  try {
    const { body: told } = await call("POST", "/api/v1/estimate", request);
    if (JSON.stringify(estimated(form)) !== JSON.stringify(request)) {
      wrong(form, "A value has changed since. Estimate again.");
      return;
    }
    place.textContent = words(form, told);
    place.hidden = false;
    form.dataset.fingerprint = told.fingerprint;
    form.querySelector("[data-after-estimate]").disabled = false;
  } catch (problem) {
    if (problem.error?.code === "no_estimate") {
      place.textContent = "No estimate: this kind does not say what it will cost. Set a cost limit if in doubt.";
      place.hidden = false;
      form.querySelector("[data-after-estimate]").disabled = false;
    } else wrong(form, problem.message);
  }
}

export function begin(whenChanged) {
  changed = whenChanged;
  document.addEventListener("click", (click) => {
    const at = click.target.closest("button");
    if (!at) return;
    if (at.dataset.call) act(at);
    else if (at.dataset.replace) replace(at);
    else if (at.dataset.open) document.getElementById(at.dataset.open).showModal();
    else if (at.dataset.edit) edit(at);
    else if (at.dataset.close !== undefined) at.closest("dialog").close();
    else if (at.dataset.dismiss !== undefined) at.closest(".answer").remove();
    else if (at.dataset.askEstimate !== undefined) estimate(at.form);
  });
  document.addEventListener("submit", (submit) => {
    const form = submit.target;
    if (form.dataset.form) {
      submit.preventDefault();
      const [method, path] = form.dataset.form.split(" ");
      send(form, method, path, values(form));
    } else if (form.dataset.nested !== undefined) {
      submit.preventDefault();
      nested(form);
    }
  });
  // Whoever came here to start a job sees at once what it would cost.
  const opens = document.querySelector("dialog[data-opens]");
  if (opens) {
    history.replaceState(null, "", location.pathname);
    opens.showModal();
    estimate(opens.querySelector("form"));
  }
  document.addEventListener("input", (input) => {
    if (input.target.dataset.manner === undefined) unestimated(input.target.form);
    if (input.target.dataset.switch !== undefined) chosen(input.target);
  });
}
