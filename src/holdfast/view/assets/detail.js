/* The right side: one row in full. */
const VERDICTS = { unknown: "May have run", timeout: "Timeout", cancelled: "Cancelled", tool: "Tool error", rpc: "RPC error", failed: "Not sent", pending: "Waiting" };
const PARTS = { stderr: "Text, as it came", junk: "Text, as it came", http: "Status and headers" };
const NO_ANSWER = {
  pending: "No answer yet.", open: "No answer came before the trace ended.",
  unknown: "No answer came before the link was lost.", timeout: "No answer came in time.", failed: "It was never sent.",
};
const BEFORE = 1.2, AFTER = 1.8, MOST_STDERR = 40, LONGEST_VERDICT = 500, LONGEST_FACT = 60, STREAM = "subscriptions/listen";

class Detail {
  constructor(page) {
    this.page = page;
    this.trace = page.trace;
    this.turn = 0;
  }

  async draw() {
    const { chosen } = this.page, turn = ++this.turn, place = $("detail");
    if (!chosen) return place.replaceChildren(...(this.trace.rows.length || this.trace.isLive ? [el("div", "empty", el("b", "", "Choose a message"), "Click a bar or a row, or press j.")] : []));
    const call = chosen.kind !== "request" && chosen.of >= 0 ? this.trace.rows[chosen.of] : chosen;
    const parts = call.kind === "request" ? [call, call.answer >= 0 ? call.answer : call.late].map(n => typeof n === "number" ? this.trace.rows[n] : n).filter(Boolean) : [call];
    // The row's own facts are there at once; grey lines stand for bodies that take longer.
    const waiting = setTimeout(() => { if (turn === this.turn) this.show(call, parts.map(() => undefined), []); }, 150);
    const bodies = await Promise.all(parts.map(row => this.trace.bodyOf(row)));
    const stderr = await this.stderrNear(call);
    clearTimeout(waiting);
    if (turn !== this.turn) return;
    const isAnew = this.drawn !== chosen, at = place.scrollTop;
    this.drawn = chosen;
    this.show(call, bodies, stderr);
    // What is drawn anew because something came stays where somebody reads it.
    place.scrollTop = isAnew ? 0 : at;
  }

  show(row, bodies, stderr) {
    const parts = row.kind === "request" ? this.call(row, bodies) : this.other(row, bodies[0]);
    refill($("detail"), ...parts, this.stderr(row, stderr));
  }

  call(row, [body, answer]) {
    const title = el("h2", "", el("div", "", ...visible(row.name, 160)));
    if (row.name !== row.method) title.append(el("span", "", row.method));
    title.append(...this.page.actions(row), ...(body ? [this.copies(row, body)] : []));
    const answered = row.answer >= 0 ? this.trace.rows[row.answer] : row.late >= 0 ? this.trace.rows[row.late] : null;
    const facts = el("div", "facts", fact("server", row.server), fact("link", row.link), ...(row.id ? [fact("id", row.id)] : []), fact("took", duration(row.end - row.t)), fact("sent", size(row.bytes)), fact("got", answered ? size(answered.bytes) : "nothing"));
    const head = el("div", "title", title, facts);
    const verdict = this.verdict(row, answer);
    if (verdict) head.append(verdict);
    head.append(smallLane(row, this.trace));
    const request = el("section", "", el("h3", "", row.dir === "<" ? "The server asked" : "Request", el("span", "num", row.t.toFixed(6))), body === undefined ? loading() : messageOf(row, body));
    const reply = el("section", "", el("h3", "", row.answer < 0 && row.late >= 0 ? "Late answer" : "Answer", el("span", "num", answered ? answered.t.toFixed(6) : "")));
    if (answered) reply.append(answer === undefined ? loading() : messageOf(answered, answer, row.faults));
    else reply.append(el("div", "none", this.noAnswer(row) || "No answer."));
    if (row.outcome === "unknown") this.whatNext(row, reply);
    return [head, el("div", "pair", request, reply)];
  }

  verdict(row, answer) {
    const { faults } = row;
    if (row.outcome === "ok" && !faults && !row.note) return null;
    const name = faults ? "rpc" : row.outcome, words = faults ? "Does not fit the schema" : name === "ok" ? row.method === STREAM ? "A stream" : this.trace.rows[row.answer]?.kind === "error" ? "An older server" : "Asks back" : name === "pending" && !this.trace.isLive ? "No answer" : own(VERDICTS, name) || sign(name).words;
    const text = faults ? `${counted(Object.keys(faults).length, "field")} of the answer ${Object.keys(faults).length === 1 ? "is" : "are"} not what the tool's output schema promises.` : withoutSubject(row) || answerWords(answer) || (name === "pending" && !this.trace.isLive ? "It was waited for when the trace ended" : name === "cancelled" ? "The server was told to stop" : this.noAnswer(row)) || "";
    const node = el("div", "verdict", icon(name), el("div", "", el("b", "", words), ". ", ...visible(sentence(text), LONGEST_VERDICT)));
    node.style.setProperty("--c", colorOf(name));
    return node;
  }

  /** Why there is no answer; a trace that has ended waits for none. */
  noAnswer(row) {
    if (row.method === STREAM) return "A stream: what it brings are notifications.";
    return own(NO_ANSWER, row.outcome === "pending" && !this.trace.isLive ? "open" : row.outcome);
  }

  /** The states of the server until it was ready again. */
  whatNext(row, place) {
    const states = (this.trace.states.get(row.server) || []).filter(state => state.t >= row.end - 1e-6);
    const back = states.findIndex(state => state.name === "ready"), steps = back < 0 ? states : states.slice(0, back + 1);
    if (!steps.length) return;
    place.append(el("h3", "next", "What happened next"), ...steps.slice(0, 20).map(state =>
      button("step num", () => this.page.choose(state, true), icon(state.name), el("span", "", clock(state.t)), el("span", "", el("b", "", state.name), " ", ...visible(state.note, 300)))));
  }

  other(row, body) {
    const titles = { junk: "Junk on stdout", stderr: "stderr", state: `${row.method || "new"} → ${row.name}`, http: "HTTP response", dropped: "Dropped", login: "Login" };
    const head = el("div", "title", el("h2", "", ...visible(own(titles, row.kind) || row.name, 400)), el("div", "facts", fact("server", row.server || "–"), fact("link", row.link), fact("at", `${row.t.toFixed(6)} s`), ...(row.bytes ? [fact("bytes", size(row.bytes))] : [])));
    if (row.note) {
      const node = el("div", "verdict", icon(signOf(row)), el("div", "", el("b", "", sign(signOf(row)).words), ". ", ...visible(sentence(row.note), LONGEST_VERDICT)));
      node.style.setProperty("--c", colorOf(signOf(row)));
      head.append(node);
    }
    if (body === null && !MESSAGES.has(row.kind)) return [head];
    return [head, el("div", "pair single", el("section", "", el("h3", "", own(PARTS, row.kind) || "Body"), body === undefined ? loading() : messageOf(row, body)))];
  }

  async stderrNear(row) {
    const { rows } = this.trace, from = row.t - BEFORE, to = row.end + AFTER, lines = [];
    for (let n = lowerBound(rows, from); n < rows.length && rows[n].t <= to && lines.length < MOST_STDERR; n++)
      if (rows[n].kind === "stderr" && rows[n].server === row.server) lines.push([rows[n], textOf(await this.trace.bodyOf(rows[n]))]);
    return lines;
  }

  stderr(row, lines) {
    const section = el("section", "log", el("h3", "", el("div", "", "stderr of ", ...visible(row.server, 80), `, ${Math.max(0, row.t - BEFORE).toFixed(1)} to ${(row.end + AFTER).toFixed(1)} s`), el("span", "", lines.length === MOST_STDERR ? `the first ${MOST_STDERR} lines` : counted(lines.length, "line"))));
    for (const [line, text] of lines) section.append(el("p", line === this.page.chosen ? "hot here" : /fatal|error|panic|cannot|exception|traceback/i.test(text) ? "hot" : "", el("span", "num", clock(line.t)), el("span", "", ...visible(text, 4000))));
    if (!lines.length) section.append(el("div", "help", "Nothing was written in these seconds."));
    return section;
  }

  copies(row, body) {
    const values = body.params?.arguments || {}, copies = el("div", "take", "Copy as");
    if (row.method === "tools/call" && row.dir === ">") {
      const command = values => asCommand(row.server, this.trace.facts.servers.find(server => server.name === row.server), row.name, values);
      copies.append(...(command({}) ? [copier("command", () => command(values))] : []), copier("Python", () => `await client.call_tool(${asPython(row.name)}, ${asPython(values)})`));
    }
    copies.append(copier("JSON", () => JSON.stringify(body, null, 2)));
    return copies;
  }
}

/** The reason of an outcome, without what stands above it: the server, the call, and that it may have run. */
function withoutSubject(row) {
  const subject = `${row.server}: ${row.method}`;
  return row.note.startsWith(subject) ? row.note.slice(subject.length).replace(/^[^:]*: /, "").replace(/; it had been sent, so it may have run$/, " after the call had been sent") : row.note;
}
const sentence = text => text.charAt(0).toUpperCase() + text.slice(1) + (/[\p{L}\d)]$/u.test(text) ? "." : "");
function fact(name, value) {
  const node = el("div", "num", el("span", "", name), ...visible(value, LONGEST_FACT));
  if (inWords(value).length > LONGEST_FACT) node.title = inWords(value).slice(0, 500);
  return node;
}
const loading = () => el("div", "loading", el("i"), el("i"), el("i"));

function answerWords(answer) {
  if (!answer) return "";
  if (answer.error) return [answer.error.code, answer.error.message].filter(part => part !== undefined).map(inWords).join(": ") || inWords(answer.error);
  const content = answer.result?.content;
  return (Array.isArray(content) ? content : []).filter(part => part?.type === "text").map(part => inWords(part.text)).join("\n").slice(0, 4000);
}

function copier(label, get) {
  const node = button("", async () => {
    try { await navigator.clipboard.writeText(get()); node.textContent = "copied"; }
    catch { copyBySelection(get()); node.textContent = "copied"; }
    setTimeout(() => { node.textContent = label; }, 1200);
  }, label);
  return node;
}

/* A page from disk is no secure context in every browser: there the clipboard has the old way only. */
function copyBySelection(text) {
  const area = el("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function lowerBound(rows, t) {
  let low = 0, high = rows.length;
  while (low < high) { const middle = (low + high) >> 1; if (rows[middle].t < t) low = middle + 1; else high = middle; }
  return low;
}

/** One call as a small lane: sent, progress, the end, and an answer that came too late. */
function smallLane(row, trace) {
  const width = Math.max(300, $("detail").clientWidth - 40), late = row.late >= 0 ? trace.rows[row.late].t : null, end = late ?? row.end;
  const x = t => (t - row.t) / (end - row.t || 1) * width, stop = Math.max(3, x(row.end)), ink = colorOf(row.outcome), isOpen = row.outcome === "unknown", isHatched = row.outcome === "cancelled", isWaiting = row.outcome === "pending";
  const lane = svg("svg", { class: "small-lane", viewBox: `0 0 ${width} 16`, preserveAspectRatio: "none", "aria-hidden": "true" }), labels = el("div", "small-labels num");
  if (isHatched) lane.append(svg("defs", {}, svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 1.5, height: 5, fill: ink }))));
  lane.append(svg("rect", { x: .5, y: 4, width: Math.max(2, stop - 1), height: 8, rx: isOpen ? 0 : 2, fill: isHatched ? "url(#hatch)" : ink, "fill-opacity": isOpen || isWaiting ? .22 : row.outcome === "ok" ? .8 : 1, stroke: isOpen || isHatched || isWaiting ? ink : "none", "stroke-width": 1.2, "stroke-dasharray": isOpen ? "4 3" : "none" }));
  if (isOpen) lane.append(svg("path", { d: `M${stop - 1} 1l-4 5 5 2-5 3 4 5`, fill: "var(--panel)", stroke: ink, "stroke-width": 1.6, "stroke-linejoin": "round" }));
  if (row.outcome === "timeout") lane.append(svg("rect", { x: stop - 3, y: 0, width: 3, height: 16, fill: ink }));
  const ticks = trace.ticks.get(row.n) || [];
  for (const t of ticks.slice(0, 500)) lane.append(svg("rect", { x: x(t), y: 1, width: 1.5, height: 14, fill: "var(--text)", opacity: .55 }));
  if (late !== null) lane.append(svg("path", { d: `M${stop + 6} 8H${width - 10}`, stroke: "var(--late)", "stroke-width": 1.5, "stroke-dasharray": "2 3" }), svg("circle", { cx: width - 5, cy: 8, r: 4, fill: "none", stroke: "var(--late)", "stroke-width": 1.5 }));
  const words = { ok: row.answer < 0 ? "ended" : "answer", tool: "answer", rpc: "answer", unknown: "lost", timeout: "gave up", cancelled: "cancelled", pending: trace.isLive ? "now" : "the end of the trace", failed: "refused" };
  // Words stand beside the drawing, which is stretched when the window is.
  const label = (at, text, anchor) => { const node = el("span", anchor, text); node.style.left = `${at / width * 100}%`; labels.append(node); };
  const first = `${row.dir === "<" ? "asked" : "sent"} ${clock(row.t)}`, ended = `${own(words, row.outcome) || "ended"} ${clock(row.end)}`, set = `answer set aside ${clock(end)}`, progress = counted(ticks.length, "report");
  // Words that would cover each other stand in one row.
  const room = text => text.length * 5.9 + 4, isApart = late !== null && x(row.end) > room(first) + room(ended) && x(row.end) < width - room(set);
  const last = late === null ? ended : isApart ? set : `${ended} · ${set}`, isFree = !isApart || Math.abs(x(row.end) - room(ended) / 2 - width / 2) > (room(ended) + room(progress)) / 2;
  const isBetween = ticks.length > 0 && isFree && room(first) + room(progress) + room(last) < width && room(last) < (width - room(progress)) / 2;
  label(0, ticks.length && !isBetween ? `${first} · ${progress}` : first, "start");
  if (isApart) label(x(row.end), ended, "end");
  if (isBetween) label(width / 2, progress, "middle");
  label(width, last, "end");
  return el("div", "small", lane, labels);
}
