/* The page of a run that goes on: fed by events, and with connections of its own by which tools are
   called. Rows carry their numbers, so one that comes twice changes nothing. */
const FRAME = 100, SILENCE = 4000, KEPT_BODIES = 2000;

/* Small bodies come with their rows; a large one is asked for when it is looked at. */
class LiveBodies {
  constructor() {
    this.size = 256;
    this.clear(0);
  }

  clear(epoch) {
    this.epoch = epoch;
    this.small = [];
    this.large = new Map();
  }

  get count() {
    return Math.ceil(this.small.length / this.size);
  }

  async text(number) {
    return JSON.stringify(this.small.slice(number * this.size, (number + 1) * this.size).map(body => body === -1 ? null : body));
  }

  at(row, then) {
    const body = this.small[row.n];
    if (body !== -1) return body;
    const large = this.fetch(row.n);
    if (!(large instanceof Promise)) return large;
    if (then) large.then(then);
    return undefined;
  }

  async get(row) {
    const body = this.small[row.n];
    return body === -1 ? this.fetch(row.n) : body;
  }

  fetch(n) {
    if (!this.large.has(n)) {
      if (this.large.size > KEPT_BODIES) this.large.delete(this.large.keys().next().value);
      const asking = fetch(`body/${this.epoch}/${n}`).then(answer => answer.ok ? answer.text().then(parsed) : { text: "(this message is not kept any more)" }).catch(() => ({ text: "(it could not be had: the feed is lost)" }));
      this.large.set(n, asking.then(body => (this.large.set(n, body), body)));
    }
    return this.large.get(n);
  }
}

class LivePage extends Page {
  constructor() {
    const trace = new Trace({ title: "live", started: "", servers: [], kinds: ["request", "result", "error", "notification", "outcome", "check", "state", "stderr", "http", "junk", "login", "dropped"] }, new LiveBodies());
    trace.isLive = true;
    trace.isFed = false;
    super(trace);
    this.ownServers = null;
    this.calls = new CallPane(this);
    this.questions = new QuestionCards(this);
    this.changed = new Set();
    this.lastEvent = performance.now();
    this.lastDrawn = 0;
    this.lostAt = null;
    this.isSaving = false;
    $("follow").onclick = () => this.startFollowing();
    $("live").hidden = $("save").hidden = false;
    this.post("servers", {}).then(answer => { this.ownServers = answer.servers || []; this.begin(); });
  }

  get tabs() {
    return this.ownServers?.length ? ["messages", "stats", "call"] : ["messages", "stats"];
  }

  first() {
    return null;
  }

  // The feed

  listen() {
    super.listen();
    this.follow();
    $("save").onclick = () => this.save();
    addEventListener("pagehide", () => this.source.close());
    setInterval(() => this.tick(), FRAME);
    // Only what a person does ends the following; a scroll of the page's own does not.
    for (const name of ["wheel", "pointerdown", "keydown", "touchmove"]) $("list").addEventListener(name, () => { this.isByHand = true; });
  }

  follow() {
    const source = this.source = new EventSource(`events?last=${this.place || ""}`);
    const listen = (name, take) => source.addEventListener(name, event => { this.place = event.lastEventId; take(parsed(event.data)); });
    listen("reset", event => this.reset(event));
    listen("rows", event => this.take(event));
    listen("questions", event => this.questions.show(event));
    source.onerror = () => {
      this.lose();
      // A browser comes back by itself where nobody answers, but not where it is refused, as one page too many is.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.follow(), SILENCE);
    };
  }

  reset({ epoch }) {
    this.trace.clear();
    this.trace.bodies.clear(epoch);
    this.chosen = null;
    this.search?.stop();
    this.detail.draw();
  }

  take(event) {
    const { trace } = this;
    this.lastEvent = performance.now();
    if (this.lostAt) this.isStale = true;
    this.lostAt = null;
    trace.isFed = true;
    Object.assign(trace.facts, { title: event.title, started: event.started, dropped: event.dropped, leftOut: event.leftOut, skipped: event.skipped });
    if (event.servers) this.know(event.servers);
    for (const values of event.rows) this.put(values);
    this.clock = { t: event.now, at: performance.now() };
    if (event.rows.length) this.isStale = true;
    // What comes alone is shown at once; what comes in a flood, with the next frame.
    if (this.isStale && document.body.dataset.ready && performance.now() - this.lastDrawn >= FRAME) this.tick();
    if (!event.more) this.isFilled = true;
    this.begin();
  }

  /** Show what the address asks for, once the rows and the tabs are there. */
  begin() {
    if (!this.isFilled || !this.ownServers || document.body.dataset.ready) return;
    this.recall();
    document.body.dataset.ready = "true";
  }

  know(servers) {
    const { trace } = this, names = new Set(servers.map(server => server.name));
    const others = trace.facts.servers.filter(server => !names.has(server.name));
    trace.facts.servers = [...servers, ...others];
    for (const server of servers) trace.know(server.name);
  }

  put([n, t, end, server, link, dir, kind, name, method, id, bytes, of, answer, late, outcome, note, faults, body]) {
    const { trace } = this, values = { n, t, end: end < 0 ? t : end, server, link, dir, kind, name, method, id, bytes, of, answer, late, outcome, note, faults };
    trace.bodies.small[n] = body;
    if (body !== -1) trace.learn(values, body);
    this.changed.add(n);
    if (server && !trace.states.has(server)) { trace.facts.servers.push({ name: server }); trace.know(server); }
    const row = trace.rows[n];
    // A server may have other tools after it said so, and after it came back.
    if (!row && ((kind === "notification" && name === "notifications/tools/list_changed") || (kind === "state" && name === "ready"))) this.calls?.stale.add(server);
    if (!row) return trace.add({ ...values, lateAt: 0, slot: 0, hit: true });
    Object.assign(row, values);
    if (outcome !== "pending") trace.open.delete(row);
    if (late >= 0 && trace.rows[late]) row.lateAt = trace.rows[late].t;
    if (answer >= 0 && trace.rows[answer]) row.total = row.bytes + trace.rows[answer].bytes;
  }

  lose() {
    if (this.lostAt) return;
    this.lostAt = new Date();
    this.trace.isFed = false;
    this.drawPill();
    this.warn(this.trace.facts);
    this.redraw();
  }

  // At most ten frames a second

  tick() {
    if (performance.now() - this.lastEvent > SILENCE) this.lose();
    if (this.trace.isFed && this.clock) this.trace.end = Math.max(this.trace.end, this.clock.t + (performance.now() - this.clock.at) / 1000);
    for (const call of this.trace.open) call.end = this.trace.end;
    if (document.hidden) return;
    // A button that is pressed stays until it is let go, or nothing would have been pressed.
    if (this.isStale && document.querySelector("button:active")) return;
    if (this.isStale) this.update();
    else if (this.trace.isFed) { this.redraw(); if (this.trace.open.size && this.tab === "messages") this.redrawList(); }
    this.drawPill();
  }

  update() {
    this.isStale = false;
    this.lastDrawn = performance.now();
    const { changed } = this;
    this.changed = new Set();
    // What fitted nothing may fit what has come.
    if (this.filter.wrong.length) this.filter = new Filter(this.query, this.trace);
    if (this.search && !this.search.isRunning) this.search = new Search(this.trace, this.filter.texts, () => this.refresh());
    this.lanes.label();
    this.refresh();
    this.drawFacts();
    this.warn(this.trace.facts);
    if (this.sought) this.chooseSought();
    const { chosen } = this, isOfChosen = n => n === chosen.n || this.trace.rows[n]?.of === chosen.n;
    if (chosen && this.tab === "messages" && [...changed].some(isOfChosen)) this.detail.draw();
  }

  drawPill() {
    const words = this.lostAt ? `no feed since ${this.lostAt.toLocaleTimeString("en-GB")}` : this.trace.isFed ? "live" : "connecting";
    if (words !== this.pillWords) $("live").replaceChildren(el("span", `pill${this.trace.isFed ? "" : " lost"}`, words));
    this.pillWords = words;
    $("save").disabled = Boolean(this.lostAt) || this.isSaving;
    // What is answered now reaches nobody; what was filled in stays.
    $("questions").inert = Boolean(this.lostAt);
    $("follow").hidden = this.isFollowing || this.tab !== "messages";
    if (!$("follow").textContent) $("follow").textContent = "follow ↓";
  }

  /** Keep the run as a page that opens from disk. */
  async save() {
    this.isSaving = true;
    this.drawPill();
    try {
      const answer = await fetch("save"), link = el("a");
      if (!answer.ok) return;
      link.href = URL.createObjectURL(await answer.blob());
      link.download = `${this.trace.facts.title}.html`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), SILENCE);
    } catch { /* The feed is lost, too, which the page says. */ }
    finally { this.isSaving = false; this.drawPill(); }
  }

  // Following

  startFollowing() {
    this.isFollowing = this.lanes.isFollowing = true;
    this.chosen = null;
    this.range = null;
    this.refresh();
    this.detail.draw();
  }

  stopFollowing() {
    this.isFollowing = this.lanes.isFollowing = false;
    this.drawPill();
  }

  scrolled() {
    if (this.isByHand && this.isFollowing && !this.list.isAtFoot) this.stopFollowing();
  }

  choose(row, isRevealed) {
    this.stopFollowing();
    super.choose(row, isRevealed);
  }

  selectRange(range) {
    if (range) this.stopFollowing();
    super.selectRange(range);
  }

  // Calls

  async post(action, fields) {
    try {
      const answer = await fetch(action, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) });
      const text = await answer.text();
      return answer.ok ? parsed(text) : { error: text };
    } catch (error) {
      return { error: `The page's own server does not answer: ${error.message}` };
    }
  }

  /** What can be done with a call; one that the server asks back for is under way though it was answered. */
  actions(row, isUnderWay = row.outcome === "pending") {
    if (row.kind !== "request" || row.method !== "tools/call" || row.dir !== ">" || !this.ownServers?.includes(row.server)) return [];
    const told = el("span", "told"), tell = answer => told.replaceChildren(...visible(answer.error || "", 400));
    const call = { server: row.server, id: row.id };
    const buttons = isUnderWay
      ? [button("", async () => tell(await this.post("cancel", call)), "Cancel")]
      : [button("", async () => tell(await this.sendAgain(row, call)), "Send again"), button("", () => this.editCall(row), "Edit")];
    return [el("div", "take acts", ...buttons, told)];
  }

  /** Send a call again, and choose the new one as soon as it is there. */
  sendAgain(row, call) {
    this.sought = { server: row.server, name: row.name, after: this.trace.rows.length };
    return this.post("again", call);
  }

  chooseSought() {
    const { server, name, after } = this.sought;
    const row = this.trace.rows.slice(after).find(row => row.kind === "request" && row.dir === ">" && row.server === server && row.name === name);
    if (!row) return;
    this.sought = null;
    this.choose(row, true);
  }

  async editCall(row) {
    const body = await this.trace.bodyOf(row);
    this.calls.edit(row, body?.params?.arguments || {});
  }
}

const page = new LivePage();
requestAnimationFrame(() => page.refresh());
