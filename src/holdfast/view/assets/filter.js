/* The words of the filter: `tool:add status:error slow:>2s` and any text. Words without a colon are
   looked for in names at once, and in bodies by `search.js`. */
const contains = (value, wanted) => value.includes(wanted), begins = (value, wanted) => value.startsWith(wanted), equals = (value, wanted) => value === wanted;
const WORDS = {
  tool: { of: row => row.method === "tools/call" ? row.name : "", fits: contains, values: trace => distinctOf(trace.calls.filter(row => row.method === "tools/call"), row => row.name) },
  method: { of: row => row.method, fits: contains, values: trace => distinctOf(trace.rows, row => row.kind === "state" ? "" : row.method) },
  server: { of: row => row.server, fits: begins, values: trace => trace.facts.servers.map(server => server.name) },
  status: { test: (row, value) => hasStatus(row, value), fits: begins, values: () => ["error", ...OUTCOMES, ...OUTCOMES.map(name => sign(name).words)], offers: () => ["error", ...OUTCOMES] },
  kind: { of: row => row.kind, fits: begins, values: trace => trace.facts.kinds },
  dir: { of: row => row.dir, fits: equals, values: () => [">", "<"] },
  id: { of: row => row.id, fits: equals, values: () => [] },
  link: { of: row => String(row.link), fits: equals, values: trace => distinctOf(trace.rows, row => String(row.link)) },
  slow: { test: (row, value) => row.kind === "request" && row.end - row.t > seconds(value), fits: (value, wanted) => !Number.isNaN(seconds(wanted)), values: () => [">100ms", ">1s", ">10s"] },
};
const OUTCOMES = ["ok", "tool", "rpc", "timeout", "cancelled", "unknown", "failed", "late", "pending"];
const distinctOf = (rows, name) => [...new Set(rows.map(name))].filter(Boolean);

function hasStatus(row, value) {
  if (row.kind !== "request") return row.outcome === "late" && begins("late", value);
  if (begins("error", value)) return TROUBLE.has(row.outcome);
  if (begins("late", value)) return row.late >= 0;
  return begins(row.outcome, value) || begins(sign(row.outcome).words.toLowerCase(), value);
}

function seconds(text) {
  const parts = /^>?(\d*\.?\d+)\s*(ms|s|m)?$/.exec(text);
  return parts ? parseFloat(parts[1]) * { ms: .001, s: 1, m: 60 }[parts[2] || "s"] : NaN;
}

class Filter {
  constructor(text, trace) {
    this.text = text;
    this.tests = [];
    this.texts = [];
    this.wrong = [];
    this.tokens = text.match(/(?:"[^"]*"?|[^\s"])+/g) || [];
    for (const token of this.tokens) this.read(token, trace);
  }

  read(token, trace) {
    const [, minus, name, value] = /^(-?)([a-z]+):(.*)$/is.exec(token) || [];
    const word = name && own(WORDS, name.toLowerCase());
    if (!word) {
      const meant = name && nearest(name.toLowerCase());
      if (meant) this.wrong.push({ token, instead: `${minus}${meant}:${value}` });
      this.texts.push(token.replaceAll('"', "").toLowerCase());
      return;
    }
    const wanted = value.replaceAll('"', "").toLowerCase();
    if (!wanted) return;
    const values = minus ? [] : word.values(trace), test = word.test ?? ((row, value) => word.fits(word.of(row).toLowerCase(), value));
    // A value that no row can have is marked, so that an empty list is not a riddle.
    if (values.length && !values.some(value => word.fits(value.toLowerCase(), wanted))) this.wrong.push({ token, instead: "" });
    this.tests.push({ isNot: minus === "-", test: row => test(row, wanted) });
  }

  /** Return whether a row fits, as far as the index tells; texts are decided by the search. */
  fits(row, requestOf) {
    const about = row.of >= 0 && row.kind !== "request" ? requestOf(row) : row;
    return this.tests.every(({ isNot, test }) => isNot !== (test(row) || (about !== row && row.kind !== "request" && test(about))));
  }
}

/** Return the filter with a misspelt word mended. */
const mended = (filter, { token, instead }) => filter.tokens.map(each => each === token ? instead : each).join(" ");

function nearest(name) {
  return Object.keys(WORDS).find(word => Math.abs(word.length - name.length) <= 1 && distance(word, name) <= 1);
}

/** Count the letters to change, add, drop or swap with the next. */
function distance(a, b) {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  for (let j = 1; j <= b.length; j++) rows[0][j] = j;
  for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++) {
    rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] !== b[j - 1]));
    if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
  }
  return rows[a.length][b.length];
}

/** Return what the word at the end of the text could become. */
function completions(text, trace) {
  const [, minus, token] = /(-?)((?:"[^"]*"?|[^\s"])*)$/.exec(text), before = text.slice(0, text.length - token.length - minus.length) + minus;
  if (!token) return [];
  const [, name, value] = /^([^:]*)(?::(.*))?$/s.exec(token.toLowerCase());
  if (value === undefined) return Object.keys(WORDS).filter(word => word.startsWith(name) && word !== name).map(word => `${before}${word}:`);
  const word = own(WORDS, name), begun = value.replaceAll('"', "");
  if (!word) return [];
  return (word.offers ?? word.values)(trace).filter(choice => choice.toLowerCase().includes(begun) && choice.toLowerCase() !== begun).slice(0, 12).map(choice => `${before}${name}:${/\s/.test(choice) ? `"${choice.replaceAll('"', "")}"` : choice}`);
}
