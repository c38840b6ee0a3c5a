/* The list: only the rows in sight are in the document. */
const ROW_HEIGHT = 28, MOST_HEIGHT = 15_000_000, MOST_SUMMARY = 300;

class List {
  constructor(page) {
    this.page = page;
    this.trace = page.trace;
    this.rows = [];
    $("list").onscroll = () => { this.draw(); page.scrolled(); };
  }

  /* Browsers cap the height of an element: beyond it the list is scrolled by proportion. */
  get height() {
    return Math.min(MOST_HEIGHT, this.rows.length * ROW_HEIGHT);
  }

  get top() {
    const list = $("list"), room = this.height - list.clientHeight;
    return room > 0 ? list.scrollTop / room * (this.rows.length * ROW_HEIGHT - list.clientHeight) : 0;
  }

  draw() {
    const list = $("list"), space = $("space");
    space.style.height = `${this.height}px`;
    list.setAttribute("aria-activedescendant", this.rows.length && this.page.chosen ? `row-${this.page.chosen.n}` : "");
    if (!this.rows.length) return this.drawEmpty();
    const top = this.top, first = Math.max(0, Math.floor(top / ROW_HEIGHT) - 4), last = Math.min(this.rows.length, first + Math.ceil(list.clientHeight / ROW_HEIGHT) + 9);
    const shift = list.scrollTop - top;
    space.replaceChildren(...this.rows.slice(first, last).map((row, place) => {
      const node = this.row(row);
      node.style.top = `${(first + place) * ROW_HEIGHT + shift}px`;
      return node;
    }));
  }

  drawEmpty() {
    const { page } = this, clear = button("", () => page.clear(), "Clear the filter");
    const where = page.range ? " in this range" : "", isEmpty = !this.trace.rows.length;
    const { wrong } = page.filter, instead = wrong.filter(fault => fault.instead).slice(0, 1).map(fault => button("", () => page.setQuery(mended(page.filter, fault)), "Did you mean ", ...visible(fault.instead, 60), "?"));
    const words = this.trace.isLive ? "Messages appear here as they cross the wire." : "There is no message in this trace.";
    const text = isEmpty ? [words] : page.query ? [`No message fits “`, ...visible(page.query, 200), `”${where}.`] : [`There is no message${where}.`];
    const fitting = isEmpty ? 0 : page.fitting(), wire = button("", () => page.setWire(true), `Show ${counted(fitting, "line")} of the wire`);
    if (fitting) text.push(` Lines that are folded into their calls do.`);
    const title = isEmpty ? this.trace.isLive ? "Nothing yet" : "The trace is empty" : page.search?.isRunning ? "Searching…" : "Nothing matches";
    $("space").style.height = "auto";
    $("space").replaceChildren(el("div", "empty", el("b", "", title), ...text, el("br"), ...instead, ...(page.query || page.range ? [clear] : []), ...(fitting ? [" ", wire] : [])));
  }

  row(row) {
    const isCall = row.kind === "request", isPart = this.page.isWire && row.of >= 0 && !isCall, isChosen = row === this.page.chosen;
    const look = isCall ? (isTrouble(row) ? "trouble" : "") : isPart ? "part" : row.kind === "stderr" || row.kind === "junk" ? "text" : "quiet";
    // What took no time has no use for that column: its words do.
    const what = el("span", `what${isCall ? "" : " wide"}${row.faults ? " marked" : ""}`), summary = this.summary(row);
    if (this.page.isWire && row.dir) what.append(row.dir === ">" ? "→ " : "← ");
    if (isCall) what.append(el("b", "", ...visible(row.name, 120)));
    else if (row.kind === "state") what.append(...visible(`${row.method || "new"} → ${row.name}`, 120));
    else if (row.kind !== "stderr" && row.kind !== "junk") what.append(...visible(row.name, 120));
    if (row.faults) what.append(el("span", "say", "✕ schema"));
    if (summary) what.append(" ", el(look === "text" ? "span" : "i", "", ...visible(inWords(summary).slice(0, MOST_SUMMARY))));
    const span = row.end - row.t, took = el("span", "took num right-align", duration(span));
    if (isCall) took.style.setProperty("--w", `${Math.max(4, Math.min(100, Math.log10(Math.max(1, span * 1000)) / 4 * 100))}%`);
    const bytes = row.total || row.bytes;
    const node = el("div", `row ${look}${isChosen ? " chosen" : ""}`, el("span", "time num right-align", clock(row.t)), el("span", "server", ...visible(row.server, 40)), icon(signOf(row, this.trace)), what, ...(isCall ? [took] : []), el("span", "bytes num right-align", bytes ? size(bytes) : ""));
    node.style.setProperty("--c", colorOf(signOf(row, this.trace)));
    node.id = `row-${row.n}`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", isChosen);
    node.onclick = () => this.page.choose(row);
    return node;
  }

  /** Return what a row is about, from its body; the list is drawn again when a block was opened. */
  summary(row) {
    if (row.kind === "state" || row.kind === "outcome") return row.note;
    const body = this.trace.body(row, () => this.page.redrawList());
    if (body === undefined || body === null) return row.note;
    if (row.kind === "stderr" || row.kind === "junk") return textOf(body);
    if (row.kind === "http") return `${inWords(body.status || "")} ${Object.entries(body.headers || {}).map(([name, value]) => `${name}: ${inWords(value)}`).join(", ")}`;
    if (row.kind === "dropped") return `${inWords(body.count ?? "")} messages were not recorded`;
    if (row.kind === "request") return requestSummary(row, body, this.trace);
    if (row.kind === "result") return row.outcome === "late" ? "late answer" : "answer";
    if (row.kind === "error") return `error ${inWords(body.error?.code ?? "")}: ${inWords(body.error?.message ?? "")}`;
    return noteSummary(body);
  }

  get isAtFoot() {
    const list = $("list");
    return list.scrollTop + list.clientHeight >= this.height - ROW_HEIGHT;
  }

  goToFoot() {
    $("space").style.height = `${this.height}px`;
    $("list").scrollTop = this.height;
  }

  reveal() {
    const list = $("list"), place = this.rows.indexOf(this.page.chosen), y = place * ROW_HEIGHT;
    if (place < 0 || (y >= this.top + ROW_HEIGHT && y <= this.top + list.clientHeight - 3 * ROW_HEIGHT)) return;
    const room = this.rows.length * ROW_HEIGHT - list.clientHeight, wanted = Math.max(0, Math.min(room, y - list.clientHeight * .4));
    list.scrollTop = room > 0 ? wanted / room * (this.height - list.clientHeight) : 0;
  }
}

function requestSummary(row, body, trace) {
  const params = body.params || {};
  const words = row.method === "tools/call" ? asWords(trace.byInterest(row, params.arguments || {})) : inWords(params.uri || params.name || params.message || params.protocolVersion || "");
  return `${words}${row.dir === "<" ? `${words ? " · " : ""}asked by the server` : ""}`;
}

function noteSummary(body) {
  const params = body.params || {};
  if (params.progress !== undefined) return `progress ${inWords(params.progress)}${params.total ? ` of ${inWords(params.total)}` : ""}${params.message ? `: ${inWords(params.message)}` : ""}`;
  return inWords(params.reason || (params.data ?? params.uri ?? ""));
}
