// A dry run of a flow: what each step makes of a document. What models and documents say becomes text, never markup.

import { call } from "./api.js";

function element(name, words = "", attributes = {}) {
  const made = document.createElement(name);
  if (words) made.textContent = words;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function dollars(amount) {
  if (amount === null) return "no known price";
  return `$${amount.toFixed(amount >= 1 || amount === 0 ? 2 : amount >= 0.000001 ? 6 : 9)}`;
}

function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

// A long output is cut: the API and the command have all of it.
const MOST = 1500;

function words(output) {
  if (output === null) return "–";
  const text = typeof output === "string" ? output : JSON.stringify(output, null, 2);
  return text.length > MOST ? `${text.slice(0, MOST)} … (${text.length.toLocaleString("en")} characters)` : text;
}

function about(step) {
  if (step.items === null) return "";
  const parts = [`${step.seconds.toFixed(1)} s`, `${step.paid_calls} paid, ${step.reused_calls} reused`, dollars(step.cost)];
  if (step.left_out) parts.push(`left out for ${step.left_out} by its condition`);
  if (step.failed) parts.push(`failed for ${step.failed}`);
  return parts.join(" · ");
}

function shown(step, pages) {
  const item = element("li", "", { class: "card pad flow-step" });
  const title = element("h3", step.name);
  if (step.kind !== step.name) title.append(" ", element("span", step.kind, { class: "quiet small" }));
  if (step.stand_in) title.append(" ", element("span", "stand-in", { class: "chip plain care", title: "No language model is set up: quoted from the text" }));
  item.append(title);
  const facts = about(step);
  if (facts) item.append(element("p", facts, { class: "quiet small" }));
  for (const error of step.errors) item.append(element("p", error, { class: "health small", "data-level": "bad" }));
  const outputs = element("dl", "", { class: "flow-outputs" });
  step.outputs.forEach((output, at) => {
    const page = pages[at] === null || pages[at] === undefined ? "" : `, page ${pages[at]}`;
    const label = step.per === "document" ? "Document" : `Chunk ${at + 1}${page}`;
    outputs.append(element("dt", label, { class: "quiet small" }), element("dd", words(output), { class: "passage" }));
  });
  item.append(outputs);
  return item;
}

function show(form, told) {
  const of = told.of === null ? "" : ` of ${told.of}`;
  const unpaid = told.unpaid_calls ? ` ${count(told.unpaid_calls, "call")} not paid for, about ${dollars(told.unpaid_cost)}.` : "";
  const all = `${told.chunks.length}${of} ${told.chunks.length === 1 && told.of === null ? "chunk" : "chunks"}`;
  form.querySelector("#dry-run-foot").textContent = `${told.flow}, first ${all}: paid ${dollars(told.cost)}.${unpaid}`;
  const pages = told.chunks.map((chunk) => chunk.page);
  document.getElementById("dry-run-steps").replaceChildren(...told.steps.map((step) => shown(step, pages)));
  document.getElementById("dry-run-result").hidden = false;
}

function complain(form, error) {
  const faults = error.error?.faults || [];
  const lines = faults.map((each) => `Line ${each.line}, column ${each.column}: ${each.message}${each.suggestion ? `; did you mean ${each.suggestion}?` : ""}`);
  const list = (lines.length ? lines : [error.message]).map((line) => element("p", line, { class: "health", "data-level": "bad" }));
  form.querySelector("#dry-run-problem").replaceChildren(...list);
  const source = form.querySelector("#dry-run-source");
  if (!faults.length) return;
  // The cursor stands where the first fault is.
  const before = source.value.split("\n").slice(0, faults[0].line - 1).reduce((size, line) => size + line.length + 1, 0);
  source.focus();
  source.setSelectionRange(before + faults[0].column - 1, before + faults[0].column - 1);
}

export function begin(main) {
  const form = main.querySelector("#dry-run");
  form?.addEventListener("submit", async (submit) => {
    submit.preventDefault();
    const foot = form.querySelector("#dry-run-foot");
    const buttons = [...form.querySelectorAll("button")];
    for (const button of buttons) button.disabled = true;
    form.querySelector("#dry-run-problem").replaceChildren();
    foot.textContent = "Running …";
    try {
      const { body } = await call("POST", `/api/v1/documents/${form.dataset.document}/dry-run`, {
        source: form.querySelector("#dry-run-source").value,
        files: JSON.parse(form.dataset.files),
        chunks: Number(form.querySelector("#dry-run-chunks").value),
        pay: submit.submitter?.value !== "known",
      });
      show(form, body);
    } catch (problem) {
      foot.textContent = "";
      complain(form, problem);
    }
    for (const button of buttons) button.disabled = false;
  });
}
