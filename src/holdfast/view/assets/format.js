/** Return a span of time in three digits or so: 0.42 ms, 7.1 ms, 95 ms, 2.50 s, 3 m 20 s, 5 h 2 m. */
function duration(span) {
  const milliseconds = span * 1000;
  if (milliseconds < .995) return span ? `${milliseconds.toFixed(2)} ms` : "0 ms";
  if (milliseconds < 999.5) return `${milliseconds.toFixed(milliseconds < 9.95 ? 1 : 0)} ms`;
  return span < 99.995 ? `${span.toFixed(2)} s` : longDuration(Math.round(span));
}
const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
function longDuration(seconds) {
  const first = UNITS.findIndex(([unit]) => seconds >= unit), [unit, word] = UNITS[first] || UNITS.at(-1), [next, nextWord] = UNITS[first + 1] || [1, ""];
  const rest = Math.floor(seconds % unit / next);
  return `${Math.floor(seconds / unit)} ${word}${rest && nextWord ? ` ${rest} ${nextWord}` : ""}`;
}
const SIZES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
function size(bytes) {
  const [unit, word] = SIZES.find(([unit]) => bytes >= unit * .9995) || [1, "B"], count = bytes / unit;
  return `${unit === 1 || count >= 99.95 ? Math.round(count) : count.toFixed(1)} ${word}`;
}
/* Made once: a number's own toLocaleString makes another each time, which takes longer than a row. */
const NUMBERS = new Intl.NumberFormat("en"), grouped = count => NUMBERS.format(count);
const counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
const clock = t => t.toFixed(3);

/* Characters that change how others look, or cannot be seen: controls, zero width, bidi, tags. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]/gu;

/** Return text nodes in which unseen characters are spelled out, so that no name looks like another. */
function visible(text, longest = 2000) {
  const whole = inWords(text), shown = whole.length > longest ? whole.slice(0, longest) : whole;
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

/* Numbers that JavaScript would round keep the digits with which they were written. */
const isRaw = value => typeof JSON.isRawJSON === "function" && JSON.isRawJSON(value);
const rounds = (value, source) => source !== undefined && !Number.isSafeInteger(value) && String(value) !== source;
function parsed(text) {
  if (!JSON.rawJSON || !/\d{16}|e\+?\d{3}/i.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) => typeof value === "number" && rounds(value, context?.source) ? JSON.rawJSON(context.source) : value);
}

/** Return a value as a person reads it: a string as it is, anything else as JSON. */
const inWords = value => typeof value === "string" ? value : JSON.stringify(value) ?? "";

/** Return the text of a line that is no message; JSON on stdout is a text, too. */
function textOf(body) {
  const isText = typeof body?.text === "string" && Object.keys(body).every(key => key === "text" || key === "sidecar");
  return isText ? body.text : body === null || body === undefined ? "" : beginning(body, MOST_WORDS);
}

const MOST_WORDS = 300;
/** Return arguments for a person to read, nearly as the command line takes them. */
function asWords(values) {
  const word = text => /^[\w./:@~,+-]+$/.test(text) ? text : `'${text}'`, short = value => typeof value === "string" ? value.slice(0, MOST_WORDS) : beginning(value, MOST_WORDS);
  return Object.entries(values).slice(0, 50).map(([name, value]) => `${name.slice(0, MOST_WORDS)}=${word(short(value))}`).join(" ");
}

/* A name or a value may come from a server, or from whoever made the file, and is pasted into a shell: every word is quoted, and
   no control character is left in it. Each value is sent again just as it was: what the command would read as a file, a number
   or JSON is given as JSON (`name:=json`), and all as one object if a name has other letters. */
const PLAIN_NAME = /^[A-Za-z_][\w-]*$/, PLAIN_WORD = /^[\w./:@,+=%-]+$/;
const READ_OTHERWISE = /^\s*(?:[@[{"+.\d-]|(?:null|true|false|yes|no|on|off|nan|inf|infinity)\s*$|$)|[\n\t]/i;
const escaped = (text, escape) => text.replace(UNSEEN, letter => escape(letter.codePointAt(0)));
const jsonEscape = code => String.fromCodePoint(code).split("").map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
const asJson = value => escaped(JSON.stringify(value), jsonEscape);
function shellWord(text) {
  if (PLAIN_WORD.test(text)) return text;
  const isSeen = escaped(text, () => "") === text && !/[\n\t]/.test(text);
  if (isSeen) return `'${text.replaceAll("'", `'\\''`)}'`;
  const visibly = text.replace(/[\\']/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  return `$'${escaped(visibly, code => `\\U${code.toString(16).padStart(8, "0")}`)}'`;
}
function shellArguments(values) {
  const entries = Object.entries(values);
  if (!entries.every(([name]) => PLAIN_NAME.test(name))) return shellWord(asJson(values));
  const isText = value => typeof value === "string" && !READ_OTHERWISE.test(value) && escaped(value, () => "") === value;
  return entries.map(([name, value]) => isText(value) ? `${name}=${shellWord(value)}` : `${name}:=${shellWord(asJson(value))}`).join(" ");
}

/** Return the command of a call: by the server's name, or by its command or address where the name was only taken from it. None if a
    word of it would be read as an option. */
function asCommand(server, facts, tool, values) {
  const given = shellArguments(values), target = inWords(facts?.target ?? ""), join = (...words) => words.filter(Boolean).join(" ");
  const isProgram = target.split(" ").slice(0, 2).some(word => word.split("/").at(-1) === server);
  const isAddress = /^https?:\/\/[^\s'"]+$/.test(target) && URL.canParse(target) && new URL(target).host === server, isOption = word => word.startsWith("-");
  if (isProgram && SHELL_WORDS.test(target)) return isOption(tool) ? "" : join("holdfast call", shellWord(tool), given, "--", target);
  if (isAddress) return isOption(tool) ? "" : join("holdfast call", shellWord(target), shellWord(tool), given);
  return isOption(server) ? "" : join("holdfast call", shellWord(`${server}.${tool}`), given);
}
/* What Python's shlex.join writes, and nothing that a shell would run. */
const SHELL_WORDS = /^(?:(?:[\w@%+=:,./-]|'[^'\n]*'|"'")+(?: |$))+$/;

/** Return a value as Python writes it. */
function asPython(value) {
  if (value === null) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(asPython).join(", ")}]`;
  if (typeof value === "object" && !isRaw(value)) return `{${Object.entries(value).map(([key, item]) => `${asPython(key)}: ${asPython(item)}`).join(", ")}}`;
  return escaped(JSON.stringify(value), code => code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : jsonEscape(code));
}

const DENSE = new Uint8Array(127);
for (let code = 33, number = 0; code < 127; code++) if (!"<>&".includes(String.fromCharCode(code))) DENSE[code] = number++;

/** Return the bytes of what the page holds: 13 bits in two letters, behind the number of bytes (view/dense.py). */
function denseBytes(text) {
  const gap = text.indexOf(" "), bytes = new Uint8Array(Number(text.slice(0, gap)));
  for (let at = gap + 1, out = 0, bits = 0, count = 0; out < bytes.length; at += 2) {
    bits = ((bits << 13) | (DENSE[text.charCodeAt(at)] * 91 + DENSE[text.charCodeAt(at + 1)])) & 0xfffff;
    for (count += 13; count >= 8 && out < bytes.length; count -= 8) bytes[out++] = bits >> (count - 8);
  }
  return bytes;
}

/** Return the bytes that base64 stands for. */
function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}
