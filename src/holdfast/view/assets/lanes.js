/* The lanes: a rail for each server, solid while the client holds it; calls grow from it as bars.
   Above them the whole run as an overview. Where there are more calls than pixels, a column of
   pixels shows how many there were, in the colour of the worst. */
const WINDOWS = [10, 20, 30, 60];
const STEPS = [.00001, .00002, .00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const MOST_BINS = 150;
/** Return a round step by which a span of time has no more parts. */
const stepFor = (span, most) => STEPS.find(step => span / step <= most) || Math.ceil(span / most / 86400) * 86400;
const TOP = 52, LANE = 66, NARROW = 720, BELOW = 430;
const COLORS = ["bg", "panel", "sunk", "line", "line2", "text", "muted", "faint", "accent", "ok", "tool", "rpc", "timeout", "cancelled", "unknown", "late", "junk"];
const GROUNDS = { starting: ["late", .07, "."], initializing: ["late", .12, "|"], backoff: ["rpc", .07, "/"], closing: ["cancelled", .1, "|"], closed: ["cancelled", .06, ""] };
/* The room that the sign of an outcome takes behind a bar. */
const SIGN_ROOM = { tool: 11, rpc: 10, failed: 10, timeout: 2 };
const RANK = ["ok", "pending", "cancelled", "tool", "timeout", "rpc", "failed", "unknown"];

class Lanes {
  constructor(page) {
    this.page = page;
    this.trace = page.trace;
    this.canvas = $("canvas");
    this.context = this.canvas.getContext("2d");
    this.from = 0;
    this.to = this.horizon;
    this.isWhole = true;
    this.first = 0;
    this.boxes = [];
    this.pointer = null;
    this.drag = null;
    this.isFollowing = this.trace.isLive;
    this.label();
    this.listen();
    this.readColors();
  }

  get servers() {
    return this.trace.facts.servers;
  }

  get isZoomed() {
    return !this.isFollowing && !this.isWhole && (this.from > 0 || this.to < this.horizon);
  }

  /** The end of the clock, with room behind it: for the sign of the last call, and for what a run that goes on will bring. */
  get horizon() {
    if (!this.trace.isLive) return this.trace.end * 1.012;
    return WINDOWS.find(span => span >= this.trace.end) || this.trace.end * 1.02;
  }

  /** Show the last minute of a run that goes on. */
  follow() {
    const span = WINDOWS.find(span => span >= this.trace.end) || WINDOWS.at(-1);
    this.to = Math.max(span, this.trace.end + span * .04);
    this.from = this.to - span;
    this.isWhole = false;
  }

  /** Lanes without scrolling: as many as leave room for the list. */
  get most() {
    return Math.max(1, Math.min(innerWidth <= NARROW ? 2 : 4, Math.floor((innerHeight - BELOW) / LANE)));
  }

  get shownServers() {
    return this.servers.slice(this.first, this.first + this.most);
  }

  zoom(from, to) {
    const span = Math.min(this.horizon, Math.max(.001, to - from));
    this.from = Math.max(0, Math.min(this.horizon - span, from));
    this.to = this.from + span;
    this.isWhole = span >= this.horizon;
  }

  x(t) {
    return (t - this.from) / (this.to - this.from) * this.width;
  }

  time(x) {
    return this.from + x / this.width * (this.to - this.from);
  }

  label() {
    this.first = Math.max(0, Math.min(this.servers.length - this.most, this.first));
    this.icons = new Map();
    this.drawPager();
    const labels = this.shownServers.map(server => {
      const calls = this.trace.callsOf.get(server.name) || [], trouble = this.troubleOf(server);
      const links = new Set((this.trace.states.get(server.name) || []).filter(row => row.name === "starting").map(row => row.link)).size;
      const place = el("span", "");
      this.icons.set(server.name, place);
      const name = el("b", server.name.length > 14 ? "long" : "", place, el("span", "name", ...visible(server.name, 60)));
      name.title = inWords(server.target || server.name).slice(0, 500);
      return el("div", "label", name, el("span", "num", ...visible(inWords(server.transport || "server"), 20), ` · ${counted(calls.length, "call")}`),
        el("span", "num", ...(links > 1 ? [el("span", "wide", `${links} links, `)] : []), trouble ? `${grouped(trouble)} in trouble` : "no trouble"));
    });
    $("labels").replaceChildren(...labels);
    $("stage").style.height = `${TOP + Math.max(1, this.shownServers.length) * LANE}px`;
  }

  troubleOf(server) {
    return (this.trace.callsOf.get(server.name) || []).filter(isTrouble).length;
  }

  /** Say which servers are out of sight, and whether they are in trouble. */
  drawPager() {
    const above = this.servers.slice(0, this.first), below = this.servers.slice(this.first + this.most);
    const way = (servers, arrow, by, where) => {
      if (!servers.length) return [];
      const trouble = servers.reduce((sum, server) => sum + this.troubleOf(server), 0);
      // Two ways at once have room for numbers alone.
      const isAlone = !above.length || !below.length, words = trouble ? [grouped(trouble), ...(isAlone ? [el("span", "wide", " in trouble"), el("span", "narrow", " ✕")] : [" ✕"])] : [];
      const count = `${grouped(servers.length)}${isAlone ? " more" : ""}${trouble ? " · " : ""}`;
      const node = button(trouble ? "bad" : "", () => this.scroll(by), `${arrow} `, el("span", trouble ? "wide" : "", count), ...words);
      node.title = `${counted(servers.length, "server")} ${where}${trouble ? `, ${counted(trouble, "call")} in trouble` : ""}; the wheel scrolls, too`;
      return [node];
    };
    refill($("pager"), ...way(above, "↑", -1, "above"), ...way(below, "↓", 1, "below"));
    $("pager").hidden = !above.length && !below.length;
  }

  /** Bring the lane of a server into sight. */
  reveal(name) {
    const place = this.servers.findIndex(server => server.name === name);
    if (place < 0) return;
    this.scroll(place < this.first ? place - this.first : Math.max(0, place - this.first - this.most + 1));
  }

  scroll(by) {
    const first = Math.max(0, Math.min(this.servers.length - this.most, this.first + by));
    if (first === this.first) return;
    this.first = first;
    this.label();
    this.page.refresh();
  }

  readColors() {
    const probe = el("i");
    // Where the system has few colours of its own, each token is one of them (page.css).
    probe.style.forcedColorAdjust = "none";
    document.body.append(probe);
    this.color = {};
    for (const name of COLORS) {
      probe.style.color = `var(--${name})`;
      this.color[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    this.patterns = new Map();
  }

  ink(sign, alpha = 1) {
    const color = own(this.color, sign) || this.color[tokenOf(sign)];
    return alpha === 1 ? color : color.replace("rgb(", "rgba(").replace(")", `, ${alpha})`);
  }

  pattern(color, step, shape) {
    const key = color + step + shape;
    if (this.patterns.has(key)) return this.patterns.get(key);
    const scale = devicePixelRatio || 1, tile = document.createElement("canvas");
    tile.width = tile.height = step * scale;
    const g = tile.getContext("2d");
    g.scale(scale, scale);
    g.strokeStyle = g.fillStyle = color;
    g.lineWidth = 1.2;
    g.beginPath();
    if (shape === "|") { g.moveTo(step / 2, 0); g.lineTo(step / 2, step); g.stroke(); }
    else if (shape === ".") { g.arc(step / 2, step / 2, .9, 0, 7); g.fill(); }
    else { for (const k of [-step, 0, step]) { g.moveTo(k, step); g.lineTo(k + step, 0); } g.stroke(); }
    const pattern = this.context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / scale));
    this.patterns.set(key, pattern);
    return pattern;
  }

  draw() {
    if (this.isFollowing) this.follow();
    // The whole of a run that goes on grows.
    else if (this.isWhole) this.to = this.horizon;
    const box = $("stage").getBoundingClientRect(), scale = devicePixelRatio || 1, g = this.context;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = this.width * scale;
    this.canvas.height = this.height * scale;
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    this.font = getComputedStyle(document.body).fontFamily;
    g.font = `11px ${this.font}`;
    g.textBaseline = "middle";
    this.boxes = [];
    this.drawOverview();
    this.drawAxis();
    this.shownServers.forEach((server, place) => this.drawLane(server, TOP + place * LANE));
    this.drawTornEnd();
    this.drawNow();
    this.drawRange();
    this.drawPointer();
    const moment = this.page.chosen ? this.page.chosen.t : this.trace.end;
    for (const [server, place] of this.icons) {
      const state = this.trace.stateAt(server, moment);
      place.replaceChildren(icon(state));
      place.title = `${state} at ${clock(moment)} s`;
    }
  }

  drawOverview() {
    const g = this.context, step = stepFor(this.horizon, MOST_BINS), bins = Math.ceil(this.horizon / step), width = step / this.horizon * this.width, counts = new Float64Array(bins), worst = new Array(bins).fill(-1);
    for (const row of this.trace.rows) counts[Math.min(bins - 1, Math.floor(row.t / step))]++;
    for (const call of this.trace.calls) if (isTrouble(call)) {
      const bin = Math.min(bins - 1, Math.floor(call.end / step));
      worst[bin] = Math.max(worst[bin], RANK.indexOf(call.outcome));
    }
    const most = counts.reduce((a, b) => Math.max(a, b), 1);
    for (let bin = 0; bin < bins; bin++) {
      const height = counts[bin] ? Math.max(1.5, counts[bin] / most * 22) : 0;
      g.fillStyle = this.ink("faint", .45);
      g.fillRect(bin * width + .5, 27 - height, width - 1, height);
      if (worst[bin] >= 0) { g.fillStyle = this.ink(RANK[worst[bin]]); g.fillRect(bin * width + .5, 27, width - 1, 3); }
    }
    $("scale").replaceChildren(...(this.isBlank ? [] : [el("span", "wide", "messages "), `per ${step > 60 ? duration(step) : roundDuration(step)}`]));
    // Where messages were dropped, the overview has a gap.
    for (const row of this.trace.losses) {
      const x = Math.min(this.width - 6, row.t / this.horizon * this.width);
      g.clearRect(x - 3, 0, 6, 30);
      g.fillStyle = this.pattern(this.ink("timeout"), 4, "/");
      g.fillRect(x - 3, 3, 6, 27);
    }
    if (!this.isZoomed) return;
    g.fillStyle = this.ink("bg", .75);
    g.fillRect(0, 0, this.from / this.horizon * this.width, 31);
    g.fillRect(this.to / this.horizon * this.width, 0, this.width, 31);
  }

  /** A trace without a message has no time to show. */
  get isBlank() {
    return !this.trace.isLive && !this.trace.rows.length;
  }

  drawAxis() {
    if (this.isBlank) return;
    const g = this.context, span = this.to - this.from;
    const most = Math.max(2, Math.min(14, this.width / 75)), step = stepFor(span, most);
    // What stands at the torn end of a trace could not be read.
    const edge = this.tornAt ?? this.width;
    // The mark of the moment covers what stands under it.
    const now = this.trace.isLive ? this.x(this.trace.end) : -Infinity;
    const digits = Math.max(0, -Math.floor(Math.log10(step))), words = t => step < 60 || t < 1 ? `${t.toFixed(digits)} s` : longDuration(Math.round(t));
    g.strokeStyle = this.ink("line");
    g.fillStyle = this.ink("faint");
    g.lineWidth = 1;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to + 1e-6; t += step) {
      const x = Math.round(this.x(t)) + .5, isLeft = x < 12, isRight = x > edge - 24;
      // At the left edge stands the border already.
      if (x > 1) { g.beginPath(); g.moveTo(x, TOP - 6); g.lineTo(x, this.height); g.stroke(); }
      g.textAlign = isLeft ? "left" : isRight ? "right" : "center";
      if (Math.abs(x - now) > 24) g.fillText(words(t), isLeft ? 4 : isRight ? edge - 8 : x, 40);
    }
  }

  drawLane(server, y) {
    const g = this.context, states = this.trace.states.get(server.name) || [], rail = y + LANE - 12;
    g.fillStyle = this.ink("line");
    g.fillRect(0, y, this.width, 1);
    this.drawStates(states, y, rail);
    this.drawOutages(states, y);
    this.drawMarks(server, rail);
    const calls = (this.trace.callsOf.get(server.name) || []).filter(call => call.t <= this.to && Math.max(call.end, call.lateAt) >= this.from);
    const trouble = calls.filter(isTrouble), isDense = calls.length > this.width * 1.5;
    if (isDense) this.drawDensity(calls, y);
    else for (const call of calls) if (!isTrouble(call)) this.drawCall(call, y);
    // Trouble is drawn last, so that nothing covers it.
    if (!isDense || trouble.length < this.width / 40) for (const call of trouble) this.drawCall(call, y);
    else if (calls.includes(this.page.chosen)) this.drawCall(this.page.chosen, y);
  }

  /** Draw the states of a server; of many within a pixel those that reach beyond it. */
  drawStates(states, y, rail) {
    let drawn = -9, lost = -9;
    states.forEach((row, place) => {
      const after = states[place + 1], x = this.x(row.t), end = this.x(after ? after.t : this.trace.end), isLoss = row.name === "backoff" && states[place - 1]?.name === "ready" && x - lost >= 2;
      if (end - drawn < .5 && !isLoss) return;
      drawn = Math.max(drawn, end);
      if (isLoss) lost = x;
      this.drawState(row, isLoss, after, y, rail);
    });
  }

  drawState(row, isLoss, after, y, rail) {
    const g = this.context, x = Math.max(-8, this.x(row.t)), end = Math.min(this.width + 8, this.x(after ? after.t : this.trace.end)), width = end - x;
    if (width <= 0 || x > this.width) return;
    const ground = own(GROUNDS, row.name);
    if (ground) {
      const [token, alpha, shape] = ground;
      g.fillStyle = this.ink(token, alpha);
      g.fillRect(x, y + 1, width, LANE - 1);
      if (shape) { g.fillStyle = this.pattern(this.ink(token, shape === "." ? .6 : .33), { "/": 7, ".": 5, "|": 4 }[shape], shape); g.fillRect(x, y + 1, width, LANE - 1); }
    }
    if (row.name === "ready") { g.fillStyle = this.ink("accent"); g.beginPath(); g.roundRect(x, rail + .5, width, 3, 1.5); g.fill(); }
    else if (ground && row.name !== "backoff" && row.name !== "closed") {
      g.fillStyle = this.ink(ground[0]);
      for (let dash = x + 1; dash < end - 2; dash += 6) g.fillRect(dash, rail + 1, 3, 2);
    }
    if (isLoss) { g.fillStyle = this.ink("rpc"); g.fillRect(Math.round(x), y + 1, 2, LANE - 1); }
  }

  /** Write beside each loss how the server ended, and for how long it was gone. */
  drawOutages(states, y) {
    const g = this.context;
    let next = null;
    for (let place = states.length - 1; place > 0; place--) {
      const row = states[place], back = next;
      if (row.name === "ready") next = row;
      if (row.name !== "backoff" || states[place - 1].name !== "ready") continue;
      const end = back ? back.t : this.trace.end, x = this.x(row.t);
      if (this.x(end) - x < 70 || x > this.width || this.x(end) < 0) continue;
      const code = /code (-?\d+)|(SIG[A-Z0-9]+)/.exec(row.note), words = [code ? code[1] ? `exit ${code[1]}` : code[2] : "lost", `down ${back ? "" : "for "}${duration(end - row.t)}`];
      words.forEach((text, line) => {
        g.font = `${line ? "" : "600 "}11px ${this.font}`;
        g.textAlign = "left";
        const left = Math.max(4, x + 7);
        if (left + g.measureText(text).width + 14 > this.width) return;
        g.fillStyle = this.ink("panel", .88);
        g.beginPath(); g.roundRect(left, y + 6 + line * 17, g.measureText(text).width + 8, 16, 3); g.fill();
        g.fillStyle = this.ink(line ? "muted" : "rpc");
        g.fillText(text, left + 4, y + 14.5 + line * 17);
      });
      g.font = `11px ${this.font}`;
    }
  }

  /** Draw stderr and junk; what fits the filter last, so that nothing covers it. */
  drawMarks(server, rail) {
    const marks = this.trace.marks.filter(row => row.server === server.name && row.t >= this.from && row.t <= this.to);
    this.context.globalAlpha = .16;
    this.drawMarksOf(marks.filter(row => !row.hit), rail);
    this.context.globalAlpha = 1;
    this.drawMarksOf(marks.filter(row => row.hit), rail);
  }

  drawMarksOf(marks, rail) {
    const g = this.context, last = { stderr: -9, junk: -9 };
    let box = null;
    g.fillStyle = this.ink("faint");
    g.beginPath();
    for (const row of marks) {
      const x = this.x(row.t), isJunk = row.kind === "junk";
      if (x - last[row.kind] < (isJunk ? 4 : 1)) { if (isJunk) box.count++; continue; }
      last[row.kind] = x;
      if (!isJunk) { g.fillRect(x, rail + 6, 1, 4); continue; }
      g.moveTo(x, rail - 4); g.lineTo(x + 6, rail + 2); g.lineTo(x, rail + 8); g.lineTo(x - 6, rail + 2); g.closePath();
      box = { row, x: x - 6, y: rail - 4, width: 12, height: 12, count: 1 };
      this.boxes.push(box);
    }
    // Outlines first: those of a flood would cover one diamond by the next.
    g.strokeStyle = this.ink("panel");
    g.lineWidth = 1.5;
    g.stroke();
    g.fillStyle = this.ink("junk");
    g.fill();
  }

  drawDensity(calls, y) {
    const g = this.context, columns = Math.ceil(this.width), counts = new Uint32Array(columns), hits = new Uint32Array(columns), worst = new Int8Array(columns).fill(-1), first = new Array(columns), isBad = column => worst[column] > RANK.indexOf("pending");
    for (const call of calls) {
      const column = Math.max(0, Math.min(columns - 1, Math.floor(this.x(call.t))));
      counts[column]++;
      if (!call.hit) continue;
      hits[column]++;
      const rank = RANK.indexOf(call.outcome);
      if (rank > worst[column]) { worst[column] = rank; first[column] = call; }
    }
    const most = counts.reduce((a, b) => Math.max(a, b), 1), room = LANE - 34;
    for (let column = 0; column < columns; column++) {
      if (!counts[column]) continue;
      const full = Math.max(2, counts[column] / most * room), height = Math.max(hits[column] ? 2 : 0, hits[column] / most * room), foot = y + LANE - 16;
      g.fillStyle = this.ink("ok", .16);
      g.fillRect(column, foot - full, 1, full);
      if (!hits[column]) continue;
      g.fillStyle = this.ink("ok", .8);
      g.fillRect(column, foot - height, 1, height);
      // Trouble has a line of its own above, where nothing covers it.
      if (isBad(column)) { g.fillStyle = this.ink(RANK[worst[column]]); g.fillRect(column - .5, y + 5, 2, 9); }
      const top = isBad(column) ? y + 5 : foot - height;
      this.boxes.push({ row: first[column], x: column, y: top, width: 1, height: foot - top, count: counts[column] });
    }
  }

  drawCall(call, y) {
    const g = this.context, height = 8, x = this.x(call.t), width = Math.max(2.5, this.x(call.end) - x), top = y + LANE - 25 - call.slot * 11, outcome = call.outcome, ink = this.ink(outcome), whole = width + (own(SIGN_ROOM, outcome) || 0);
    if (x > this.width + 20) return;
    this.boxes.push({ row: call, x, y: top, width: whole, height });
    g.globalAlpha = call.hit ? 1 : .16;
    const path = () => { g.beginPath(); g.roundRect(x, top, width, height, Math.min(2, width / 2)); };
    if (outcome === "cancelled") { path(); g.fillStyle = this.pattern(ink, 4, "/"); g.fill(); g.strokeStyle = ink; g.lineWidth = 1; g.stroke(); }
    else if (outcome === "unknown") {
      g.beginPath(); g.moveTo(x + width, top); g.lineTo(x, top); g.lineTo(x, top + height); g.lineTo(x + width, top + height);
      g.fillStyle = this.ink(outcome, .25); g.fill(); g.strokeStyle = ink; g.lineWidth = 1.5; g.setLineDash([3, 2]); g.stroke(); g.setLineDash([]);
      g.beginPath(); g.moveTo(x + width, top - 2); g.lineTo(x + width - 3, top + 2); g.lineTo(x + width + 1, top + 4); g.lineTo(x + width - 3, top + 7); g.lineTo(x + width, top + height + 2); g.stroke();
    } else if (outcome === "pending") { path(); g.fillStyle = this.ink(outcome, .25); g.fill(); g.strokeStyle = ink; g.lineWidth = 1.2; g.stroke(); }
    else { path(); g.fillStyle = outcome === "ok" ? this.ink("ok", .8) : ink; g.fill(); }
    this.drawProgress(call, top, height);
    this.drawEnd(call, x + width, top, height);
    g.globalAlpha = 1;
    if (this.page.chosen === call) { g.strokeStyle = this.ink("text"); g.lineWidth = 2; const left = Math.max(1, x - 4), right = Math.min(this.width - 1, x + whole + 4); g.beginPath(); g.roundRect(left, top - 4, Math.max(6, right - left), height + 8, 5); g.stroke(); }
  }

  drawProgress(call, top, height) {
    const ticks = this.trace.ticks.get(call.n), isHatched = call.outcome === "cancelled";
    if (!ticks) return;
    this.context.fillStyle = this.ink(isHatched ? "cancelled" : "panel");
    let last = -9;
    for (const t of ticks) {
      const x = this.x(t);
      if (x - last < 3) continue;
      last = x;
      this.context.fillRect(x, isHatched ? top - 2 : top + 1.5, 1.5, isHatched ? 4 : height - 3);
    }
  }

  /** Show by a shape at its end how a call ended, and the answer that came too late. */
  drawEnd(call, x, top, height) {
    const g = this.context;
    g.fillStyle = this.ink(call.outcome);
    if (call.outcome === "tool") { g.beginPath(); g.moveTo(x + 5, top - 2); g.lineTo(x + 11, top + height + 1); g.lineTo(x - 1, top + height + 1); g.fill(); }
    if (call.outcome === "rpc" || call.outcome === "failed") {
      g.fillRect(x, top - 1, 10, 10);
      g.strokeStyle = this.ink("panel"); g.lineWidth = 1.6;
      g.beginPath(); g.moveTo(x + 2.5, top + 1.5); g.lineTo(x + 7.5, top + 6.5); g.moveTo(x + 7.5, top + 1.5); g.lineTo(x + 2.5, top + 6.5); g.stroke();
    }
    if (call.outcome === "timeout") g.fillRect(x - 1, top - 3, 3, height + 6);
    if (call.late < 0) return;
    const late = this.x(this.trace.rows[call.late].t);
    g.strokeStyle = this.ink("late"); g.lineWidth = 1.5; g.setLineDash([2, 3]);
    g.beginPath(); g.moveTo(x + 4, top + 4); g.lineTo(late - 5, top + 4); g.stroke(); g.setLineDash([]);
    g.beginPath(); g.arc(late, top + 4, 4, 0, 7); g.fillStyle = this.ink("panel"); g.fill(); g.stroke();
  }

  /** Where the trace of a writer that was killed ends; nothing if that is out of sight. */
  get tornAt() {
    const { end, facts } = this.trace, x = this.x(end);
    return (facts.cut || facts.unclosed) && x <= this.width ? Math.min(x, this.width - 6) : null;
  }

  drawTornEnd() {
    const g = this.context, x = this.tornAt;
    if (x === null) return;
    g.fillStyle = this.pattern(this.ink("timeout", .4), 7, "/");
    g.fillRect(x, 0, this.width, this.height);
    g.strokeStyle = this.ink("timeout"); g.lineWidth = 2; g.beginPath();
    for (let y = 0, k = 0; y <= this.height; y += 8, k++) g.lineTo(x + (k % 2 ? 4 : -1), y);
    g.stroke();
  }

  /** The moment at which a run is that goes on. */
  drawNow() {
    if (!this.trace.isLive) return;
    const g = this.context, x = Math.round(this.x(this.trace.end));
    if (x < 0 || x > this.width) return;
    g.fillStyle = this.ink(this.trace.isFed ? "accent" : "faint");
    g.fillRect(x - 1, 32, 2, this.height);
    g.beginPath(); g.moveTo(x - 5, 32); g.lineTo(x + 5, 32); g.lineTo(x, 38); g.fill();
  }

  drawRange() {
    if (!this.page.range) return;
    const g = this.context, [from, to] = this.page.range.map(t => this.x(t));
    g.fillStyle = this.ink("bg", .7); g.fillRect(0, 32, from, this.height); g.fillRect(to, 32, this.width - to, this.height);
    g.fillStyle = this.ink("accent"); g.fillRect(from - 1, 32, 2, this.height); g.fillRect(to - 1, 32, 2, this.height); g.fillRect(from, 32, to - from, 2);
  }

  drawPointer() {
    if (this.pointer === null) return;
    const g = this.context, x = Math.round(this.pointer) + .5, text = `${this.time(this.pointer).toFixed(3)} s`, width = g.measureText(text).width + 10;
    g.strokeStyle = this.ink("text", .45); g.lineWidth = 1; g.beginPath(); g.moveTo(x, 32); g.lineTo(x, this.height); g.stroke();
    const left = Math.max(0, Math.min(x - width / 2, this.width - width));
    g.fillStyle = this.ink("text"); g.beginPath(); g.roundRect(left, 33, width, 15, 3); g.fill();
    g.fillStyle = this.ink("bg"); g.textAlign = "center"; g.fillText(text, left + width / 2, 41);
  }

  at(x, y) {
    return this.boxes.findLast(box => x >= box.x - 4 && x <= box.x + box.width + 6 && y >= box.y - 2 && y <= box.y + box.height + 2);
  }

  listen() {
    const stage = $("stage"), place = event => { const box = stage.getBoundingClientRect(); return [Math.max(0, Math.min(this.width, event.clientX - box.left)), event.clientY - box.top]; };
    stage.onpointerdown = event => {
      const [x, y] = place(event);
      this.drag = { x, y, box: this.at(x, y) };
      stage.setPointerCapture(event.pointerId);
    };
    stage.onpointermove = event => {
      const [x, y] = place(event), isAbove = y < 31;
      if (this.drag && Math.abs(x - this.drag.x) > 4) {
        const time = this.drag.y < 31 ? at => at / this.width * this.horizon : at => this.time(at);
        this.pointer = null;
        return this.page.selectRange([time(Math.min(x, this.drag.x)), time(Math.max(x, this.drag.x))]);
      }
      this.pointer = isAbove ? null : x;
      this.showTip(this.at(x, y), event);
      this.page.redraw();
    };
    stage.onpointerup = event => {
      if (this.drag?.box && Math.abs(place(event)[0] - this.drag.x) < 5) this.page.choose(this.drag.box.row, true);
      this.drag = null;
    };
    stage.onpointerleave = () => { this.pointer = null; $("tip").hidden = true; this.page.redraw(); };
    stage.ondblclick = () => {
      if (this.page.range && !this.isZoomed) this.zoom(...this.page.range); else this.zoom(0, this.horizon);
      this.page.selectRange(null);
    };
    stage.addEventListener("wheel", event => {
      event.preventDefault();
      this.zoomAt(place(event)[0], Math.exp(event.deltaY * .0015));
    }, { passive: false });
    stage.onkeydown = event => this.key(event);
    $("gutter").addEventListener("wheel", event => { event.preventDefault(); this.scroll(Math.sign(event.deltaY)); }, { passive: false });
  }

  /** Arrows move a moment over the lanes, with Shift they select; what is there is said. */
  key(event) {
    const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }, step = own(keys, event.key), at = this.pointer ?? this.width / 2;
    if (step !== undefined && !event.ctrlKey && !event.altKey && !event.metaKey) {
      const x = Math.max(0, Math.min(this.width, at + step * this.width / 100));
      if (event.shiftKey) {
        this.anchor ??= this.time(at);
        const range = [this.anchor, this.time(x)].sort((a, b) => a - b);
        this.page.selectRange(range[0] < range[1] ? range : null);
      } else this.anchor = null;
      this.pointer = x;
      this.page.redraw();
    } else if (event.key === "+" || event.key === "-") this.zoomAt(at, event.key === "+" ? .5 : 2);
    else if (event.key === "Enter" && this.nearest(at)) this.page.choose(this.nearest(at).row, true);
    else return;
    event.preventDefault();
    event.stopPropagation();
    const box = this.nearest(at), t = this.time(this.pointer ?? at);
    const near = box ? `; ${box.row.name.slice(0, 80)}, ${sign(box.row.outcome || box.row.kind).words}, at ${clock(box.row.t)} s` : "";
    const facts = { valuemin: 0, valuemax: this.trace.end.toFixed(3), valuenow: t.toFixed(3), valuetext: `${clock(t)} s${near}` };
    for (const [name, value] of Object.entries(facts)) $("stage").setAttribute(`aria-${name}`, value);
  }

  /** The call or mark that is nearest to a place, in any lane. */
  nearest(x) {
    const away = box => Math.max(box.x - x, x - box.x - box.width, 0);
    return this.boxes.reduce((best, box) => !best || away(box) < away(best) ? box : best, null);
  }

  zoomAt(x, factor) {
    this.isFollowing = false;
    const t = this.time(x), span = (this.to - this.from) * factor;
    this.zoom(t - (t - this.from) * factor, t - (t - this.from) * factor + span);
    this.page.stopFollowing();
    this.page.redraw();
    this.page.remember();
  }

  showTip(box, event) {
    const tip = $("tip");
    tip.hidden = !box;
    if (!box) return;
    const { row } = box, facts = row.kind === "request"
      ? [sign(row.outcome).words, duration(row.end - row.t), ...(this.trace.ticks.has(row.n) ? [`${this.trace.ticks.get(row.n).length} progress`] : []), ...(row.late >= 0 ? [`late answer after ${duration(this.trace.rows[row.late].t - row.t)}`] : [])]
      : [sign(row.kind).words];
    if (box.count > 1) facts.push(`one of ${box.count} here`);
    tip.replaceChildren(el("b", "", ...visible(row.name, 120)), facts.join(" · "));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 260)}px`;
    tip.style.top = `${event.clientY + 16}px`;
  }
}
