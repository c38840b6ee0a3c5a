const duration = span => span < .001 ? "<1 ms" : span < 1 ? `${Math.round(span * 1000)} ms` : span < 100 ? `${span.toFixed(2)} s` : `${Math.round(span)} s`;
const size = bytes => bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
/* Made once: a number's own toLocaleString makes another each time, which takes longer than a row. */
const NUMBERS = new Intl.NumberFormat("en"), grouped = count => NUMBERS.format(count);
const counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
const clock = t => t.toFixed(3);

/* Characters that change how others look, or cannot be seen: controls, zero width, bidi, tags. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]/gu;

/** Return text nodes in which unseen characters are spelled out, so that no name looks like another. */
function visible(text, longest = 2000) {
  const whole = String(text), shown = whole.length > longest ? whole.slice(0, longest) : whole;
  const nodes = [];
  let from = 0;
  for (const match of shown.matchAll(UNSEEN)) {
    nodes.push(shown.slice(from, match.index), el("span", "unseen", `U+${match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    from = match.index + match[0].length;
  }
  nodes.push(shown.slice(from));
  if (shown.length < whole.length) nodes.push(el("span", "preview", `… ${counted(whole.length - shown.length, "more character")}`));
  return nodes;
}

/** Return arguments as the command line takes them. */
function asWords(values) {
  return Object.entries(values).map(([key, value]) => `${key}=${quoted(value)}`).join(" ");
}
function quoted(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const reads = typeof value === "string" && !/^(?:true|false|null|-?\d)/.test(text) && !/^[[{"]/.test(text);
  const word = typeof value === "string" && !reads ? JSON.stringify(value) : text;
  return /^[\w./:@~,+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Return a value as Python writes it. */
function asPython(value) {
  if (value === null) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(asPython).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${asPython(item)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** Return the bytes that base64 stands for. */
function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}
