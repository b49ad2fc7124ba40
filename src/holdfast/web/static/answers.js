// Questions: the answer appears as it is written, its sources beside it; a citation opens its passage.
// Everything that a model or a document says becomes text, never markup.

const HEADERS = { "X-Holdfast-Page": "1", "Content-Type": "application/json" };
const REASONS = {
  nothing_found: "Nothing in the collection matches the question, so no model was asked.",
  weak_matches: "Only weak matches were found, so no model was asked.",
  not_in_sources: "The passages that were found do not hold the answer.",
  cut_off: "The answer was cut off at its output limit.",
  uncited: "The model cited no source; nothing of this answer could be checked.",
  repetitive: "The model repeated itself; repeated sentences were left out.",
};
const SUPPORT = {
  quoted: "Stands word for word in a source that it cites",
  worded: "Its numbers, dates and names are in a source that it cites",
  none: "Not supported by a source that it cites",
};

function element(name, words = "", attributes = {}) {
  const made = document.createElement(name);
  if (words) made.textContent = words;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function dollars(amount) {
  return `$${amount.toFixed(amount >= 1 || amount === 0 ? 2 : amount >= 0.000001 ? 6 : 9)}`;
}

function cost(told) {
  if (told.replayed && !told.cost.tokens) return `Replayed, cost nothing (saved ${dollars(told.cost.saved)})`;
  if (told.refused && !told.cost.tokens) return "Cost nothing";
  return told.cost.paid === null ? "Paid: the price of the model is not known" : `Paid ${dollars(told.cost.paid)}`;
}

// The events of a response, one by one.
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const [event, data] = frame.split("\n");
      yield { name: event.slice(7), data: JSON.parse(data.slice(6)) };
    }
  }
}

class AnswerBox {
  constructor(box) {
    this.box = box;
    for (const name of ["text", "foot", "again", "side", "sources", "problem", "stand-in"]) this[name] = box.querySelector(`#answer-${name}`);
    this.text.addEventListener("click", (click) => {
      const link = click.target.closest("a[data-source]");
      if (link) this.open(link.dataset.source);
    });
    this.again.addEventListener("click", () => this.ask(this.path, { ...this.body, fresh: true }));
  }

  clear() {
    this.box.hidden = false;
    this.problem.hidden = this["stand-in"].hidden = this.again.hidden = this.side.hidden = true;
    this.text.replaceChildren();
    this.sources.replaceChildren();
    this.checked = null;
    this.foot.textContent = "Searching …";
    this.text.setAttribute("aria-busy", "true");
  }

  async ask(path, body) {
    this.path = path;
    this.body = body;
    const mine = (this.turn = (this.turn || 0) + 1);
    this.clear();
    try {
      const answer = await fetch(path, { method: "POST", headers: HEADERS, body: JSON.stringify({ ...body, stream: true }) });
      if (answer.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
      if (!answer.ok) throw new Error((await answer.json()).error?.message || `The server returned HTTP ${answer.status}.`);
      let ended = false;
      for await (const each of events(answer)) {
        if (mine !== this.turn) return;
        ended = this.hear(each.name, each.data) || ended;
      }
      if (!ended) throw new Error("The connection broke off. The answer is not lost: ask again, it is not paid for twice.");
    } catch (problem) {
      if (mine === this.turn) this.fail(problem.message);
    }
    if (mine === this.turn) this.text.setAttribute("aria-busy", "false");
  }

  // True for the event that ends an answer.
  hear(name, told) {
    if (name === "sources") this.show(told.sources);
    if (name === "delta") this.write(told);
    if (name === "sentence") this.sentence(told);
    if (name === "error") this.fail(told.message, told.code === "answer_in_doubt");
    if (name === "done" || name === "refused") this.end(name, told);
    return ["done", "refused", "error"].includes(name);
  }

  show(sources) {
    this.side.hidden = !sources.length;
    this.foot.textContent = sources.length ? "Writing …" : "";
    this.sources.replaceChildren(...sources.map((each) => this.source(each)));
  }

  source(told) {
    const item = element("li", "", { id: `source-${told.n}`, value: told.n });
    const at = told.chunk.split("@")[1];
    const link = element("a", told.title, { href: `/documents/${told.document_id}?at=${at}#c-${at.replace(".", "-")}` });
    const viewer = element("details", "", { class: "viewer" });
    viewer.append(element("summary", told.page === null ? "Show the passage" : `Show page ${told.page}`));
    viewer.addEventListener("toggle", () => this.view(viewer, told, at), { once: true });
    // A report of the knowledge graph rests on several passages: each is a link of its own.
    if (told.node) link.href = `/collections/${told.collection}/graph?community=${told.node}`;
    item.append(element("span", `[${told.n}] `, { class: "quiet" }), link, element("p", told.quote, { class: "snippet small" }), ...(told.passages || []).map((one) => this.passage(one)), viewer);
    return item;
  }

  passage(one) {
    const at = one.chunk.split("@")[1];
    const line = element("p", "From ", { class: "small quiet" });
    line.append(element("a", one.page === null ? one.title : `${one.title}, page ${one.page}`, { href: `/documents/${one.document_id}?at=${at}#c-${at.replace(".", "-")}` }));
    return line;
  }

  // The page with the passage marked; of a document without pages, the passage.
  view(viewer, told, at) {
    const words = element("p", told.quote, { class: "passage" });
    if (told.page === null) {
      viewer.append(words);
      return;
    }
    const picture = element("img", "", { alt: `Page ${told.page} of ${told.title} with this passage marked` });
    picture.addEventListener("error", () => picture.replaceWith(words));
    picture.src = `/api/v1/documents/${told.document_id}/pages/${told.page}?chunk=${at}`;
    viewer.append(picture);
  }

  open(number) {
    const item = this.sources.querySelector(`#source-${number}`);
    if (item) item.querySelector("details").open = true;
  }

  write(told) {
    if (told.at === 0) this.text.replaceChildren(element("p"));
    this.text.firstChild.append(told.text);
  }

  sentence(told) {
    if (!this.checked) this.text.replaceChildren((this.checked = element("p")));
    const span = element("span", told.text, { "data-support": told.support, title: SUPPORT[told.support] });
    this.checked.append(span);
    for (const number of told.cites) this.checked.append(element("a", `[${number}]`, { href: `#source-${number}`, "data-source": number, class: "cite" }));
    if (told.support === "none") this.checked.append(element("span", "not supported", { class: "chip plain care" }));
    this.checked.append(" ");
  }

  end(name, told) {
    if (name === "refused") this.text.replaceChildren();
    this["stand-in"].hidden = !told.stand_in || name === "refused";
    this.again.hidden = !told.replayed;
    const words = [cost(told)];
    if (told.unknown_citations) words.push(`${told.unknown_citations} unknown ${told.unknown_citations === 1 ? "citation" : "citations"} removed`);
    for (const notice of told.notices || []) words.push(notice.message);
    this.foot.textContent = words.join(" · ");
    if (told.reason) this.warn(REASONS[told.reason] || told.reason);
  }

  warn(words) {
    this.problem.textContent = words;
    this.problem.hidden = false;
  }

  fail(words, mayAskAnew = false) {
    this.warn(words);
    this.foot.textContent = "";
    this.again.hidden = !mayAskAnew;
  }
}

// Forms that ask one collection, and the button of the search form, which asks those that it would search.
export function begin(main) {
  const box = main.querySelector("#answer");
  if (!box) return;
  const answer = new AnswerBox(box);
  main.addEventListener("submit", (submit) => {
    const form = submit.target.closest("form[data-asks]");
    if (!form) return;
    submit.preventDefault();
    const question = form.elements.question.value.trim();
    if (question) answer.ask(`/api/v1/collections/${form.dataset.asks}/ask`, { question });
  });
  main.addEventListener("click", (click) => {
    const button = click.target.closest("[data-ask-here]");
    if (!button) return;
    const form = button.form;
    const question = form.elements.q.value.trim();
    if (!question) {
      form.elements.q.focus();
      return;
    }
    const body = { question, collections: form.elements.collection.value === "*" ? button.dataset.askHere.split(" ") : [form.elements.collection.value] };
    if (form.elements.mode.value !== "hybrid") body.mode = form.elements.mode.value;
    const filter = form.elements.filter.value.trim();
    try {
      if (filter) body.filter = JSON.parse(filter);
    } catch {
      answer.clear();
      answer.fail("The filter is not JSON.");
      return;
    }
    answer.ask("/api/v1/ask", body);
  });
}
