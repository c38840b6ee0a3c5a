/* The trace: its facts, its rows, and the bodies of the rows, which are opened when they are looked at. */
const TROUBLE = new Set(["tool", "rpc", "timeout", "unknown", "failed"]);

async function unpacked(node) {
  const bytes = Uint8Array.from(atob(node.textContent), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

class Trace {
  static async fromPage() {
    const facts = JSON.parse(new TextDecoder().decode(await unpacked($("facts"))));
    const integers = new Int32Array(await unpacked($("index")));
    return new Trace(facts, integers, [...document.querySelectorAll("script.block")]);
  }

  constructor(facts, integers, blocks) {
    this.facts = facts;
    this.blocks = blocks;
    this.opened = new Map();
    this.rows = this.decode(integers);
    this.end = this.rows.reduce((latest, row) => Math.max(latest, row.t, row.end), 0) || 1;
    this.fold();
  }

  decode(integers) {
    const { count, columns, strings, kinds, outcomes } = this.facts;
    const column = Object.fromEntries(columns.map((name, place) => [name, integers.subarray(place * count, (place + 1) * count)]));
    const rows = new Array(count);
    let micros = 0;
    for (let n = 0; n < count; n++) {
      micros += column.dt[n];
      const id = column.id[n];
      rows[n] = {
        n, t: micros / 1e6, end: column.took[n] < 0 ? micros / 1e6 : (micros + column.took[n]) / 1e6,
        server: strings[column.server[n]], link: column.link[n], dir: ["", ">", "<"][column.dir[n]],
        kind: kinds[column.kind[n]] || "other", name: strings[column.name[n]], method: strings[column.method[n]],
        id: id >= 0 ? String(id) : id === -1 ? "" : strings[-2 - id], bytes: column.bytes[n],
        of: column.of[n], answer: column.answer[n], late: column.late[n],
        outcome: outcomes[column.outcome[n]], note: strings[column.note[n]],
        parts: 0, slot: 0, hit: true,
      };
    }
    return rows;
  }

  /** Find the calls, what is folded into them, and the states of each server. */
  fold() {
    this.calls = [];
    this.folded = [];
    this.states = new Map(this.facts.servers.map(server => [server.name, []]));
    this.ticks = new Map();
    for (const row of this.rows) {
      if (row.kind === "request") this.calls.push(row);
      if (row.kind === "state" && this.states.has(row.server)) this.states.get(row.server).push(row);
      if (row.of < 0) this.folded.push(row);
      else if (row.kind === "notification" && row.method === "notifications/progress") {
        if (!this.ticks.has(row.of)) this.ticks.set(row.of, []);
        this.ticks.get(row.of).push(row.t);
      }
    }
    for (const call of this.calls) if (call.answer >= 0) call.total = call.bytes + this.rows[call.answer].bytes;
    this.placeInSlots();
  }

  /** Put calls that overlap above each other; from the fourth on they share the top slot. */
  placeInSlots() {
    const ends = new Map();
    for (const call of this.calls) {
      if (!ends.has(call.server)) ends.set(call.server, []);
      const taken = ends.get(call.server);
      let slot = taken.findIndex(end => end < call.t);
      if (slot < 0) slot = Math.min(taken.length, 3);
      taken[slot] = Math.max(call.end, call.late >= 0 ? this.rows[call.late].t : 0);
      call.slot = slot;
    }
  }

  /** Return the bodies of a block: at once if it is open, else as a promise. */
  block(number) {
    if (!this.opened.has(number)) {
      if (this.opened.size > 64) this.opened.delete(this.opened.keys().next().value);
      const opening = this.openBlock(number).then(bodies => (this.opened.set(number, bodies), bodies));
      this.opened.set(number, opening);
    }
    return this.opened.get(number);
  }

  async openBlock(number) {
    const text = new TextDecoder().decode(await unpacked(this.blocks[number]));
    return JSON.parse(text);
  }

  /** Return the body of a row if it is at hand, else undefined; `then` is called when it is. */
  body(row, then) {
    const block = this.block(Math.floor(row.n / this.facts.block));
    if (Array.isArray(block)) return block[row.n % this.facts.block];
    if (then) block.then(then);
    return undefined;
  }

  async bodyOf(row) {
    return (await this.block(Math.floor(row.n / this.facts.block)))[row.n % this.facts.block];
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

const isTrouble = row => TROUBLE.has(row.outcome) && row.kind === "request";

/** Return the name of the sign of a row; an answer has that of its request. */
function signOf(row, trace) {
  if (row.kind === "request" || row.outcome === "late") return row.outcome || "notification";
  if (row.kind === "error") return "rpc";
  if (row.kind === "result") return trace && row.of >= 0 ? trace.rows[row.of].outcome : "ok";
  return row.kind === "state" ? row.name : row.kind;
}
