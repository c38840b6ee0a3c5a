/* The trace: its facts, its rows, and the bodies of the rows, which are opened when they are looked at. */
const MOST_LEARNT = 1000;
const TROUBLE = new Set(["tool", "rpc", "timeout", "unknown", "failed"]);

async function unpacked(node) {
  return new Response(new Blob([denseBytes(node.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/* The bodies of a page from a file: packed in blocks, which are opened when they are looked at. */
class PackedBodies {
  constructor(nodes, size) {
    this.nodes = nodes;
    this.size = size;
    this.opened = new Map();
    this.trace = null;
  }

  get count() {
    return this.nodes.length;
  }

  async text(number) {
    return new TextDecoder().decode(await unpacked(this.nodes[number]));
  }

  /** Return the bodies of a block: at once if it is open, else as a promise. */
  block(number) {
    if (!this.opened.has(number)) {
      if (this.opened.size > 64) this.opened.delete(this.opened.keys().next().value);
      const opening = this.text(number).then(text => {
        const { rows } = this.trace, first = number * this.size, bodies = parsed(text).map((body, place) => whole(body, rows[first + place]));
        bodies.forEach((body, place) => this.trace.learn(rows[first + place], body));
        this.opened.set(number, bodies);
        return bodies;
      });
      this.opened.set(number, opening);
    }
    return this.opened.get(number);
  }

  /** Return the body of a row if it is at hand, else undefined; `then` is called when it is. */
  at(row, then) {
    const block = this.block(Math.floor(row.n / this.size));
    if (Array.isArray(block)) return block[row.n % this.size];
    if (then) block.then(then);
    return undefined;
  }

  async get(row) {
    return (await this.block(Math.floor(row.n / this.size)))[row.n % this.size];
  }
}

const MESSAGES = new Set(["request", "result", "error", "notification"]);

/** Return a body with what is not packed because the index has it; one inside a list is whole. */
function whole(body, row) {
  if (body === null || !row || !MESSAGES.has(row.kind)) return body;
  if (Array.isArray(body)) return body[0];
  return { jsonrpc: "2.0", id: Number(row.id), ...(row.kind === "request" ? { method: row.method } : {}), ...body };
}

class Trace {
  static async fromPage() {
    const facts = JSON.parse(new TextDecoder().decode(await unpacked($("facts"))));
    const integers = new Int32Array(await unpacked($("index")));
    const trace = new Trace(facts, new PackedBodies([...document.querySelectorAll("script.block")], facts.block));
    trace.bodies.trace = trace;
    for (const row of decodeRows(facts, integers)) trace.add(row);
    trace.end = trace.end || 1;
    return trace;
  }

  constructor(facts, bodies) {
    this.facts = facts;
    this.bodies = bodies;
    this.isLive = false;
    this.clear();
  }

  clear() {
    this.end = 0;
    this.rows = [];
    this.calls = [];
    this.folded = [];
    this.marks = [];
    this.losses = [];
    this.open = new Set();
    this.ticks = new Map();
    this.progress = new Map();
    this.states = new Map();
    this.callsOf = new Map();
    this.slots = new Map();
    this.values = new Map();
    for (const server of this.facts.servers) this.know(server.name);
  }

  know(server) {
    if (this.states.has(server)) return;
    this.states.set(server, []);
    this.callsOf.set(server, []);
    this.slots.set(server, []);
  }

  /** Take the next row: put it with the calls, the states, or what is folded into its call. */
  add(row) {
    this.rows.push(row);
    this.end = Math.max(this.end, row.t, row.end);
    if (row.kind === "request") this.addCall(row);
    if (row.kind === "state") this.states.get(row.server)?.push(row);
    if (row.kind === "stderr" || row.kind === "junk") this.marks.push(row);
    if (row.kind === "dropped") this.losses.push(row);
    if (row.of < 0) this.folded.push(row);
    else if (row.kind === "notification" && row.method === "notifications/progress") {
      if (!this.ticks.has(row.of)) this.ticks.set(row.of, []);
      this.ticks.get(row.of).push(row.t);
      this.progress.set(row.of, row);
    }
    if (row.of >= 0 && this.rows[row.of].answer === row.n) this.rows[row.of].total = this.rows[row.of].bytes + row.bytes;
  }

  /** Put calls that overlap above each other; from the fourth on they share the top slot. */
  addCall(call) {
    this.calls.push(call);
    if (call.outcome === "pending") this.open.add(call);
    this.callsOf.get(call.server)?.push(call);
    const taken = this.slots.get(call.server) || [];
    const isFree = other => !this.open.has(other) && Math.max(other.end, other.lateAt) < call.t;
    let slot = taken.findIndex(isFree);
    if (slot < 0) slot = Math.min(taken.length, 3);
    taken[slot] = call;
    call.slot = slot;
  }

  /** Note the arguments of a call: those that never change tell least. */
  learn(row, body) {
    const given = row?.method === "tools/call" && row.kind === "request" && body?.params?.arguments;
    if (!given || typeof given !== "object") return;
    const key = `${row.server}\n${row.name}`, values = this.values.get(key) || new Map();
    this.values.set(key, values);
    for (const [name, value] of Object.entries(given).slice(0, MOST_LEARNT)) {
      const text = beginning(value, 200).slice(0, 200);
      values.set(name, !values.has(name) || values.get(name) === text ? text : null);
    }
  }

  /** Return the arguments of a call, those that never changed last. */
  byInterest(row, given) {
    const values = this.values.get(`${row.server}\n${row.name}`), isConstant = name => values !== undefined && values.get(name) !== null;
    return Object.fromEntries(Object.entries(given).slice(0, MOST_LEARNT).sort(([a], [b]) => isConstant(a) - isConstant(b)));
  }

  body(row, then) {
    return this.bodies.at(row, then);
  }

  bodyOf(row) {
    return this.bodies.get(row);
  }

  /** Return the state of a server at a moment. */
  stateAt(server, t) {
    let state = "new";
    for (const row of this.states.get(server) || []) if (row.t <= t + 1e-6) state = row.name;
    return state;
  }

  isInRange(row, range) {
    return !range || (row.end >= range[0] && row.t <= range[1]);
  }
}

/* What stands for "as in the row of the request", or "until the answer came". */
const SAME = -(2 ** 31);
/* What stands for a number that is as large or larger: the facts have it. */
const LARGEST = 2 ** 31 - 1;

function decodeRows(facts, integers) {
  const { count, columns, strings, kinds, outcomes } = facts;
  const column = Object.fromEntries(columns.map((name, place) => [name, integers.subarray(place * count, (place + 1) * count)]));
  const rows = new Array(count), at = (n, distance) => distance ? n + distance : -1;
  const large = (name, n) => column[name][n] === LARGEST ? own(facts.large[name], n) ?? LARGEST : column[name][n];
  let micros = 0;
  for (let n = 0; n < count; n++) {
    micros += large("dt", n);
    const id = column.id[n], of = at(n, -column.of[n]);
    rows[n] = {
      n, t: micros / 1e6, end: column.took[n] < 0 ? micros / 1e6 : (micros + large("took", n)) / 1e6,
      server: strings[column.server[n]], link: large("link", n), dir: ["", ">", "<"][column.dir[n]],
      kind: kinds[column.kind[n]] || "other", name: strings[column.name[n]], method: strings[column.method[n]],
      id: id === SAME ? rows[of].id : id >= 0 ? String(id) : id === -1 ? "" : strings[-2 - id], bytes: large("bytes", n),
      of, answer: at(n, column.answer[n]), late: at(n, column.late[n]),
      outcome: outcomes[column.outcome[n]], note: strings[column.note[n]], faults: own(facts.faults, n) || null,
      lateAt: 0, slot: 0, hit: true,
    };
  }
  for (const row of rows) {
    if (row.late >= 0) row.lateAt = rows[row.late].t;
    if (column.took[row.n] === SAME) row.end = Math.max(row.t, rows[row.answer].t);
  }
  return rows;
}

const isTrouble = row => TROUBLE.has(row.outcome) && row.kind === "request";

/** Return the name of the sign of a row; an answer has that of its request. */
function signOf(row, trace) {
  if (row.kind === "request" || row.outcome === "late") return row.outcome || "notification";
  if (row.kind === "error") return trace?.rows[row.of]?.outcome === "ok" ? "ok" : "rpc";
  if (row.kind === "result") return trace && row.of >= 0 ? trace.rows[row.of].outcome : "ok";
  return row.kind === "state" ? row.name : row.kind;
}
