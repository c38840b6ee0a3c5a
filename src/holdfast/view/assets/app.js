/* The page: what is chosen, filtered and shown, and the fragment of the address that holds it. */
const KEYS = [["j", "next row"], ["k", "previous row"], ["]", "next trouble"], ["[", "previous trouble"], ["/", "filter"], ["Enter", "into the detail"], ["Esc", "range, then zoom, then filter"], ["1", "messages"], ["2", "statistics"], ["3", "call a tool (live)"], ["f", "follow (live)"], ["q", "to a question (live)"], ["w", "calls or wire"], ["← →", "a moment in the lanes, Shift: a range"], ["drag", "a range in the lanes, double click: zoom into it"], ["wheel", "zoom in the lanes"], ["?", "these keys"]];
const FILTERS = [["tool:add", "calls of a tool"], ["status:error", "how calls ended: error, ok, timeout, unknown, late"], ["server:git", "of a server"], ["slow:>2s", "calls that took longer"], ["kind:stderr", "lines of a kind"], ["method:ping", "requests of a method"], ["dir:<", "from the server, > to it"], ["link:2", "of the second connection"], ["id:7", "one request and its answer"], ["-kind:junk", "all but these"], ["\"any words\"", "text in names and messages"]];

const MOST_QUERY = 2000;

class Page {
  constructor(trace) {
    this.trace = trace;
    this.query = "";
    this.filter = new Filter("", trace);
    this.search = null;
    this.range = null;
    this.chosen = null;
    this.tab = "messages";
    this.isWire = false;
    this.theme = "";
    this.isFollowing = trace.isLive;
    this.lanes = new Lanes(this);
    this.list = new List(this);
    this.detail = new Detail(this);
    this.stats = new Stats(this);
    this.strip = new Strip(this);
    this.frame = 0;
    this.listFrame = 0;
    this.decorate();
    this.listen();
  }

  // What is shown

  refresh() {
    this.judge();
    this.strip.draw();
    this.redraw();
    if (this.tab === "stats") this.stats.draw();
    else if (this.tab === "call") this.calls.draw();
    else this.drawList();
    this.drawFooter();
    this.remember();
  }

  /** Show another row as the chosen one: what fits the filter is the same. */
  mark() {
    this.redraw();
    this.drawList();
    this.drawFooter();
    this.remember();
  }

  /** Decide which rows fit the filter. */
  judge() {
    for (const rows of [this.trace.calls, this.trace.marks]) for (const row of rows) row.hit = this.fits(row);
    const rows = this.isWire ? this.trace.rows : this.trace.folded;
    this.list.rows = rows.filter(row => this.trace.isInRange(row, this.range) && (row.kind === "request" ? row.hit : this.fits(row)));
    this.listed = rows.length;
    this.measure();
  }

  /** Give the columns of times and servers the room that the longest of them needs. */
  measure() {
    const { end, facts } = this.trace, longest = facts.servers.reduce((most, server) => Math.max(most, server.name.length), 0);
    $("left").style.setProperty("--time", `${Math.max(7, clock(end).length) * 7.8}px`);
    $("left").style.setProperty("--names", `${longest * 7.6}px`);
    // Where there is one server, its name in every row tells nothing.
    $("left").classList.toggle("single", facts.servers.length === 1);
  }

  fits(row) {
    const hits = this.search?.hits;
    return this.filter.fits(row, each => this.trace.rows[each.of]) && (!hits || hits[row.n] === 1);
  }

  /** Count the lines of the wire that fit, though no call does. */
  fitting() {
    return this.isWire ? 0 : this.trace.rows.filter(row => this.trace.isInRange(row, this.range) && this.fits(row)).length;
  }

  drawFooter() {
    if (this.tab !== "messages") return $("shown").replaceChildren(this.tab === "stats" ? counted(this.stats.count, "tool") : "");
    const noun = this.isWire ? "message" : "row", hidden = this.chosen && !this.list.rows.includes(this.chosen);
    const parts = [`${grouped(this.list.rows.length)} of ${counted(this.listed, noun)}${this.search?.isRunning ? ", searching…" : ""}`];
    if (hidden) parts.push(el("span", "hidden-choice", " · the chosen one is hidden by the filter or the range"));
    $("shown").replaceChildren(...parts);
  }

  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.lanes.draw(); });
  }

  redrawList() {
    if (!this.listFrame) this.listFrame = requestAnimationFrame(() => { this.listFrame = 0; if (this.tab === "messages") this.list.draw(); });
  }

  drawList() {
    if (this.isFollowing && !this.chosen) this.list.goToFoot();
    this.list.draw();
  }

  /** What can be done with a call; a page from a file does nothing. */
  actions() {
    return [];
  }

  stopFollowing() {}

  scrolled() {}

  // What a person does

  choose(row, isRevealed) {
    const isListed = this.tab === "messages";
    this.isUnasked = false;
    this.tab = "messages";
    this.chosen = row = this.listedRow(row);
    this.lanes.reveal(row.server);
    if (isListed) this.mark();
    else this.refresh();
    if (isRevealed) { this.list.reveal(); this.list.draw(); }
    this.detail.draw();
  }

  /** The row that stands for another in the list: the call, of what is folded into it. */
  listedRow(row) {
    return !this.isWire && row.of >= 0 && row.kind !== "request" ? this.trace.rows[row.of] : row;
  }

  move(by, test) {
    if (this.tab !== "messages" && !test) return this.tab === "stats" ? this.stats.move(by) : this.calls.move(by);
    const { rows } = this.list;
    let place = rows.indexOf(this.chosen);
    if (place < 0 && this.chosen) place = rows.findIndex(row => row.t >= this.chosen.t) - (by > 0 ? 1 : 0);
    do place += by; while (rows[place] && test && !test(rows[place]));
    if (rows[place]) this.choose(rows[place], true);
  }

  selectRange(range) {
    this.range = range;
    this.refresh();
  }

  setQuery(text) {
    this.query = text;
    if ($("query").value !== text) $("query").value = text;
    this.filter = new Filter(text, this.trace);
    this.search?.stop();
    this.search = this.filter.texts.length ? new Search(this.trace, this.filter.texts, () => this.found()) : null;
    $("list").scrollTop = 0;
    this.refresh();
    if (!text && this.tab === "messages") { this.list.reveal(); this.list.draw(); }
  }

  /** Show what a search has found; an address that names no message begins with the worst that fits. */
  found() {
    const isFirst = this.isUnasked && !this.search.isRunning;
    if (isFirst) this.chosen = this.first();
    this.refresh();
    if (!isFirst || this.tab !== "messages") return;
    this.list.reveal();
    this.list.draw();
    this.detail.draw();
  }

  clear() {
    this.range = null;
    this.setQuery("");
  }

  setWire(isWire) {
    this.isWire = isWire;
    if (this.chosen) this.chosen = this.listedRow(this.chosen);
    this.refresh();
    this.list.reveal();
    this.list.draw();
  }

  show(tab) {
    this.tab = tab;
    this.refresh();
    if (tab === "messages") { this.list.reveal(); this.list.draw(); this.detail.draw(); }
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.style.colorScheme = theme || "";
    this.lanes.readColors();
  }

  // The fragment

  remember() {
    // Before it was read, an address says more than the page.
    if (this.fragment === undefined) return;
    const parts = [];
    if (this.theme) parts.push(this.theme);
    if (this.tab !== "messages") parts.push(this.tab);
    if (this.isWire) parts.push("wire");
    if (this.query) parts.push(`q=${encodeURIComponent(this.query)}`);
    if (this.range) parts.push(`t=${this.range.map(t => t.toFixed(4)).join("-")}`);
    if (this.lanes.isZoomed) parts.push(`z=${this.lanes.from.toFixed(4)}-${this.lanes.to.toFixed(4)}`);
    if (this.chosen) parts.push(`m=${this.chosen.n}`);
    const fragment = `#${parts.join("&")}`;
    if (fragment === this.fragment) return;
    this.fragment = fragment;
    try { history.replaceState(null, "", fragment); } catch { /* A page from disk may not in some browsers. */ }
  }

  recall() {
    const parts = location.hash.slice(1).split("&"), value = name => parts.find(part => part.startsWith(`${name}=`))?.slice(name.length + 1);
    const times = text => { const range = (text || "").split("-").map(Number); return range.length === 2 && range.every(Number.isFinite) && range[0] < range[1] ? range : null; };
    this.fragment = null;
    this.setTheme(parts.includes("dark") ? "dark" : parts.includes("light") ? "light" : "");
    this.tab = this.tabs.find(tab => parts.includes(tab)) || "messages";
    this.isWire = parts.includes("wire");
    this.range = times(value("t"));
    const zoom = times(value("z"));
    this.lanes.zoom(...(zoom || [0, this.lanes.horizon]));
    let query = "";
    try { query = decodeURIComponent(value("q") || "").slice(0, MOST_QUERY); } catch { /* Not one of ours. */ }
    this.filter = new Filter(query, this.trace);
    this.search?.stop();
    this.search = null;
    const chosen = this.trace.rows[Number(value("m"))];
    this.isUnasked = !chosen;
    this.chosen = chosen ? this.listedRow(chosen) : this.first();
    if (this.chosen) this.lanes.reveal(this.chosen.server);
    this.setQuery(query);
    this.list.reveal();
    this.drawList();
    if (this.tab === "messages") this.detail.draw();
  }

  get tabs() {
    return ["messages", "stats"];
  }

  /** The row to begin with: the call whose end leaves most open. */
  first() {
    return this.worst() || this.trace.rows[0] || null;
  }

  worst() {
    const isSeen = call => this.trace.isInRange(call, this.range) && this.fits(call), seen = this.trace.calls.filter(isSeen);
    return (seen.length ? seen : this.trace.calls).reduce((worst, call) => !worst || RANK.indexOf(call.outcome) > RANK.indexOf(worst.outcome) ? call : worst, null);
  }

  // Around it

  decorate() {
    this.drawFacts();
    $("filter").prepend(svg("svg", { "aria-hidden": "true", class: "icon", viewBox: "0 0 14 14", fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round" }, svg("circle", { cx: 6, cy: 6, r: 4 }), svg("path", { d: "M9 9l3.5 3.5" })));
    $("save").append(svg("svg", { "aria-hidden": "true", class: "icon", viewBox: "0 0 14 14", fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round" }, svg("path", { d: "M7 1.500v7M4 5.800l3 3 3-3M1.700 10v2.300h10.600V10" })));
    $("theme").append(svg("svg", { "aria-hidden": "true", class: "icon", viewBox: "0 0 14 14" }, svg("circle", { cx: 7, cy: 7, r: 5.5, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }), svg("path", { d: "M7 1.500a5.500 5.500 0 0 1 0 11z", fill: "currentColor" })));
    $("keys").append(...[["j k", "move"], ["[ ]", "trouble"], ["/", "filter"], ["Esc", "clear"]].map(([keys, word]) => el("span", "", ...keys.split(" ").map(key => el("kbd", "", key)), word)));
    const section = (title, rows) => el("section", "", el("h2", "", title), ...rows.map(([key, words]) => el("p", "", words, el("kbd", "", key))));
    $("dialog").append(section("Keys", KEYS.filter(([, words]) => this.trace.isLive || !words.endsWith("(live)"))), section("Filter words", FILTERS));
    this.warn(this.trace.facts);
  }

  drawFacts() {
    const { facts, rows } = this.trace, started = facts.started ? new Date(facts.started) : null;
    document.title = `${facts.title} · Holdfast`;
    $("brand").replaceChildren(logo(), el("b", "", ...visible(facts.title, 80)));
    const style = this.trace.isLive ? { timeStyle: "medium" } : { dateStyle: "long", timeStyle: "medium" };
    const when = started && !Number.isNaN(started.getTime()) ? [`${this.trace.isLive ? "since " : ""}${started.toLocaleString("en-GB", style)}`] : [];
    $("meta").textContent = [...when, ...(rows.length && !this.trace.isLive ? [duration(this.trace.end)] : []), counted(facts.servers.length, "server"), counted(rows.length, "message")].join(" · ");
  }

  /** Say what the trace does not have. */
  warn(facts) {
    const faults = [];
    if (facts.cut) faults.push(el("b", "", "The end of this trace is missing."), ` The last line was cut at ${clock(this.trace.end)} s, as when a process is killed. Everything before it is whole. `);
    else if (facts.unclosed) faults.push(el("b", "", `This trace ends with ${counted(facts.unclosed, "open connection")}.`), " Its program was killed, still runs, or did not close them: what came last may be missing. ");
    if (facts.dropped) faults.push(el("b", "", `${counted(facts.dropped, "message")} ${facts.dropped === 1 ? "was" : "were"} dropped`), " because they came faster than they could be written. ");
    if (facts.skipped) faults.push(el("b", "", `${counted(facts.skipped, "line")} could not be read`), ...(facts.unreadable?.length ? [`, the first at line ${facts.unreadable[0][0]}: `, ...visible(facts.unreadable[0][1], 200)] : [". "]));
    if (facts.leftOut) faults.push(el("b", "", `${counted(facts.leftOut, this.trace.isLive ? "older message" : "message")} left out`), " to stay within bounds. ");
    $("whole").textContent = faults.length || this.trace.isLive ? "" : "The trace is whole: nothing was dropped, the end is there.";
    if (this.lostAt) faults.push(el("b", "", `Nothing comes since ${this.lostAt.toLocaleTimeString("en-GB")}.`), " The program that feeds this page has ended, or does not answer. What was there stays; when it is back, the page goes on by itself. ");
    $("banner").hidden = !faults.length;
    $("banner").replaceChildren(icon("timeout"), el("div", "", ...faults));
  }

  /** A print is light, whatever the screen is. */
  listenForPrint() {
    const look = theme => { document.documentElement.style.colorScheme = theme; this.lanes.readColors(); this.lanes.draw(); };
    addEventListener("beforeprint", () => look("light"));
    addEventListener("afterprint", () => look(this.theme));
  }

  listen() {
    this.listenForPrint();
    $("help").onclick = () => $("dialog").showModal();
    $("dialog").onclick = () => $("dialog").close();
    $("theme").onclick = () => {
      const isDark = this.theme ? this.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      this.setTheme(isDark ? "light" : "dark");
      this.refresh();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.lanes.readColors(); this.redraw(); });
    addEventListener("resize", () => { this.lanes.label(); this.refresh(); });
    addEventListener("hashchange", () => this.recall());
    addEventListener("keydown", event => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open) return;
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape") return isTyping ? event.target.blur() : this.back();
    if (isTyping) return;
    const isBad = row => isTrouble(row) || (row.kind === "state" && row.name === "backoff");
    const actions = {
      j: () => this.move(1), k: () => this.move(-1), ArrowDown: () => this.move(1), ArrowUp: () => this.move(-1),
      "]": () => this.move(1, isBad), "[": () => this.move(-1, isBad), "/": () => $("query").focus(),
      1: () => this.show("messages"), 2: () => this.show("stats"), 3: () => this.tabs.includes("call") && this.show("call"), f: () => this.trace.isLive && this.startFollowing(), q: () => $("questions").querySelector("input, textarea, select, button")?.focus(), w: () => this.setWire(!this.isWire), "?": () => $("dialog").showModal(),
      Enter: () => ($("detail").querySelector("summary, button") || $("detail")).focus(),
    };
    const action = Object.hasOwn(actions, event.key) && actions[event.key];
    if (!action || (event.key === "Enter" && event.target.closest("button, summary"))) return;
    event.preventDefault();
    action();
  }

  back() {
    if (this.range) this.selectRange(null);
    else if (this.lanes.isZoomed) { this.lanes.zoom(0, this.lanes.horizon); this.refresh(); }
    else if (this.query) this.setQuery("");
  }
}
