/* Search in bodies: block by block between frames, so that the page stays alive; hits are shown as
   they are found. */
class Search {
  constructor(trace, texts, report) {
    this.trace = trace;
    this.texts = texts;
    this.report = report;
    this.hits = new Uint8Array(trace.rows.length);
    this.done = 0;
    this.isStopped = false;
    this.names();
    if (texts.length) this.run();
  }

  get isRunning() {
    return !this.isStopped && this.texts.length > 0 && this.done < this.trace.bodies.count;
  }

  /** What the index has is searched at once. */
  names() {
    for (const row of this.trace.rows) {
      const text = `${row.name} ${row.server} ${row.method} ${row.note}`.toLowerCase();
      if (this.texts.every(word => text.includes(word))) this.mark(row);
    }
  }

  /** A request is found by its answer, and an answer by its request. */
  mark(row) {
    this.hits[row.n] = 1;
    if (row.of >= 0) this.hits[row.of] = 1;
  }

  async run() {
    let reported = performance.now();
    for (let number = 0; number < this.trace.bodies.count && !this.isStopped; number++) {
      const text = await this.trace.bodies.text(number);
      if (this.isStopped) return;
      if (this.texts.some(word => text.toLowerCase().includes(word) || /[^ -~]|["\\]/.test(word))) this.look(number, parsed(text));
      this.done = number + 1;
      if (performance.now() - reported > 80) {
        this.report();
        await new Promise(resolve => setTimeout(resolve));
        reported = performance.now();
      }
    }
    if (!this.isStopped) this.report();
  }

  look(number, bodies) {
    bodies.forEach((body, place) => {
      const row = this.trace.rows[number * this.trace.bodies.size + place];
      if (!row || body === null) return;
      const text = `${row.name} ${row.server} ${typeof body === "string" ? body : readable(body)}`.toLowerCase();
      if (this.texts.every(word => text.includes(word))) this.mark(row);
    });
  }

  stop() {
    this.isStopped = true;
  }
}

/** Return the words of a body as a person reads them: JSON, and each string without its escapes. */
function readable(body) {
  const words = [JSON.stringify(body)];
  JSON.stringify(body, (key, value) => (typeof value === "string" && /["\\\n\t]/.test(value) && words.push(value), value));
  return words.join("\n");
}
