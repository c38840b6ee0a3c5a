/* The tab "Call": the tools of the servers on the left, the form of the chosen one on the right. */
const HIDDEN = "[redacted]";

/** Return the places of arguments that the trace hides: those of a call that is edited are from there, and must not be sent so. */
function hiddenParts(value, path = "", places = {}) {
  if (typeof value === "string" && value.includes(HIDDEN)) places[path] = "the trace hides it: give it again";
  else if (value !== null && typeof value === "object" && !isRaw(value)) for (const [name, part] of Object.entries(value)) hiddenParts(part, `${path}/${pointerStep(name)}`, places);
  return places;
}

class CallPane {
  constructor(page) {
    this.page = page;
    this.tools = new Map();
    this.stale = new Set();
    this.chosen = null;
    this.forms = new Map();
    this.status = new Map();
    this.words = "";
    this.drawn = "";
  }

  get servers() {
    return this.page.ownServers;
  }

  /** Ask a server for its tools; those that it had stay until the answer is there. */
  load(server) {
    this.stale.delete(server);
    if (!this.tools.get(server)?.tools) this.tools.set(server, { isLoading: true });
    this.page.post("tools", { server }).then(answer => {
      const before = this.tools.get(server).tools;
      if (before && answer.tools) this.forgetForms(server, before, answer.tools);
      this.tools.set(server, before ? { tools: before, ...answer } : answer);
      const [first] = answer.tools || [];
      if (!this.chosen && first) this.chosen = { server, name: first.name };
      this.drawn = "";
      if (this.page.tab === "call") this.draw();
    });
  }

  /** A form is made anew if the tool is another one than it was, or is gone. */
  forgetForms(server, before, after) {
    const written = new Map(after.map(tool => [tool.name, JSON.stringify(tool)]));
    for (const tool of before) {
      if (written.get(tool.name) === JSON.stringify(tool)) continue;
      const key = JSON.stringify({ server, name: tool.name });
      this.forms.delete(key);
      if (key === this.toolKey) $("detail").replaceChildren();
    }
  }

  /** Choose the next tool, or the one before. */
  move(by) {
    const rows = [...$("table").querySelectorAll(".tool-row")], place = rows.findIndex(row => row.classList.contains("chosen")) + by;
    rows[place]?.click();
    $("table").querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  find({ server, name }) {
    return this.tools.get(server)?.tools?.find(tool => tool.name === name);
  }

  /** The page is drawn with each event; a form that somebody fills in must stay as it is. */
  draw() {
    for (const server of this.servers) if (!this.tools.has(server) || this.stale.has(server)) this.load(server);
    const key = JSON.stringify([this.chosen, this.words, this.servers.map(server => [server, Boolean(this.tools.get(server)?.isLoading), this.tools.get(server)?.tools?.length, this.page.trace.stateAt(server, this.page.trace.end)])]);
    const isFormThere = $("detail").firstChild?.dataset.tool === this.toolKey;
    if (key !== this.drawn || !isFormThere) this.drawTools();
    this.drawn = key;
    if (isFormThere) this.drawOutcome();
    else this.drawForm();
  }

  get toolKey() {
    return JSON.stringify(this.chosen);
  }

  drawTools() {
    const search = input("input", "search", { placeholder: "find a tool", value: this.words, className: "find" }), groups = el("div", "tools");
    search.oninput = () => { this.words = search.value; fill(); };
    const fill = () => groups.replaceChildren(...this.servers.map(server => this.group(server)));
    fill();
    const hasFocus = document.activeElement?.className === "find";
    refill($("table"), el("div", "find-tool", search), groups);
    if (hasFocus) search.focus();
  }

  group(server) {
    const list = this.tools.get(server) || { isLoading: true }, words = this.words.toLowerCase();
    const head = el("h3", "", el("span", "state", icon(this.page.trace.stateAt(server, this.page.trace.end)), ...visible(server, 60)), el("span", "", list.tools ? counted(list.tools.length, "tool") : ""));
    const fits = tool => !words || `${tool.name} ${tool.title || ""} ${tool.description || ""}`.toLowerCase().includes(words);
    const rows = (list.tools || []).filter(fits).map(tool => {
      const isChosen = this.chosen?.server === server && this.chosen.name === tool.name;
      const node = button(`tool-row${isChosen ? " chosen" : ""}`, () => { this.chosen = { server, name: tool.name }; this.draw(); }, el("b", "", ...visible(tool.name, 120)), el("span", "", ...visible((tool.description || tool.title || "").split("\n")[0], 200)));
      node.setAttribute("aria-current", isChosen);
      return node;
    });
    if (list.isLoading) rows.push(el("p", "help", "Asking for its tools…"));
    if (list.error) rows.push(el("p", "help", ...visible(list.error, 1000), " ", button("link", () => { this.load(server); this.draw(); }, "Try again")));
    if (list.tools && !list.tools.length) rows.push(el("p", "help", "It has no tools."));
    return el("section", "", head, ...rows);
  }

  form(tool) {
    if (!this.forms.has(this.toolKey)) this.forms.set(this.toolKey, new Form(tool.schema || {}, tool.secret));
    return this.forms.get(this.toolKey);
  }

  drawForm() {
    const place = $("detail"), tool = this.chosen && this.find(this.chosen);
    const isGone = !tool && this.chosen && this.tools.get(this.chosen.server)?.tools;
    if (isGone) return place.replaceChildren(el("div", "empty", el("b", "", ...visible(this.chosen.name, 200)), "The server has no such tool any more."));
    if (!tool) return place.replaceChildren(el("div", "empty", el("b", "", "Choose a tool"), "Its form is made from its schema."));
    const form = this.form(tool);
    if (this.edited?.key === this.toolKey) form.write(this.edited.values);
    this.edited = null;
    const send = button("primary", () => this.send(), "Call"), { server } = this.chosen;
    const head = el("div", "title", el("h2", "", el("div", "", ...visible(tool.name, 200)), el("span", "", ...visible(server, 80))), ...(tool.description ? [el("p", "described", ...visible(tool.description, 4000))] : []));
    head.dataset.tool = this.toolKey;
    const outcome = el("section", "outcome");
    outcome.id = "outcome";
    const body = el("div", "call-form", form.node, el("div", "buttons", send, form.toggle));
    body.onkeydown = event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send(); };
    this.said = el("p", "said");
    this.said.setAttribute("role", "status");
    place.replaceChildren(head, body, this.said, outcome);
    place.scrollTop = 0;
    this.shownOutcome = "";
    this.drawOutcome();
  }

  async send() {
    const key = this.toolKey, { server, name } = this.chosen, form = this.forms.get(key);
    let values;
    try { values = form.read(); } catch (error) { return form.show({ [error.path ?? ""]: error.message }); }
    const hidden = hiddenParts(values);
    form.show(hidden);
    if (Object.keys(hidden).length) return;
    const begun = { isUnderWay: true, after: this.page.trace.rows.length };
    this.status.set(key, begun);
    this.drawOutcome();
    const answer = await this.page.post("call", { server, tool: name, arguments: values });
    // Another call of the same tool may have begun meanwhile: its outcome is the one to show.
    if (this.status.get(key) !== begun) return;
    this.status.set(key, { ...answer, isUnderWay: false, after: begun.after });
    if (this.toolKey === key) form.show(answer.faults || {});
    this.drawOutcome();
  }

  /** The request of the last call, once it is in the trace. */
  row(status) {
    const { rows } = this.page.trace;
    for (let n = rows.length - 1; n >= (status.after || 0); n--) {
      const row = rows[n];
      if (row.kind === "request" && row.method === "tools/call" && row.dir === ">" && row.server === this.chosen.server && (status.id ? row.id === status.id : row.name === this.chosen.name)) return row;
    }
    return null;
  }

  drawOutcome() {
    const status = this.status.get(this.toolKey), place = $("outcome");
    if (!place || !status) return;
    const row = this.row(status), progress = row && status.isUnderWay && this.page.trace.progress.get(row.n), key = JSON.stringify([status.isUnderWay, status.error, row?.n, row?.outcome, row?.answer, progress?.n]);
    if (key === this.shownOutcome) return;
    this.shownOutcome = key;
    const hasFaults = Object.keys(status.faults || {}).length > 0;
    if (!row) {
      this.said.textContent = status.isUnderWay ? "Under way" : "";
      const words = status.isUnderWay ? "Under way…" : hasFaults ? "Nothing was sent: see the fields above." : status.error || "";
      return place.replaceChildren(...(words ? [el("div", `none${status.error ? " bad" : ""}`, ...visible(words, 4000))] : []));
    }
    const words = status.isUnderWay ? "Under way" : `${sign(row.outcome).words} · ${duration(row.end - row.t)}`;
    if (this.said.textContent !== words) this.said.textContent = words;
    const open = button("link", () => this.page.choose(row, true), "Show it in the trace");
    const head = el("h3", "", el("span", "state", icon(status.isUnderWay ? "pending" : row.outcome), words), el("span", "", ...this.page.actions(row, status.isUnderWay), open));
    const answer = row.answer >= 0 ? this.page.trace.rows[row.answer] : null, inside = el("div", "");
    if (answer && !status.isUnderWay) Promise.resolve(this.page.trace.bodyOf(answer)).then(body => inside.replaceChildren(treeOf(body, row.faults)));
    else if (progress) Promise.resolve(this.page.trace.bodyOf(progress)).then(body => inside.replaceChildren(el("div", "none", ...visible(noteSummary(body || {}), 1000))));
    else if (row.note) inside.append(el("div", "none", ...visible(sentence(withoutSubject(row)), 4000)));
    refill(place, head, inside);
  }

  /** Open the form of a call with the arguments that it had; what was hidden is to be given again. */
  edit(row, values) {
    this.chosen = { server: row.server, name: row.name };
    // Its form may not be there yet: the tools are asked for when the tab is looked at.
    this.edited = { key: this.toolKey, values };
    $("detail").replaceChildren();
    this.drawn = "";
    this.page.show("call");
  }
}
