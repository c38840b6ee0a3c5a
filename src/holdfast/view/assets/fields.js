/* The fields of a form that hold one value. Each knows its place (a JSON pointer), how to read and to show its value, and how to
   show a fault: here a value is read, never judged. */
const MOST_BOXES = 30, LONGEST_FILE = 16_000_000, SHORT_TEXT = 200;

let fieldCount = 0;

/* What all fields have: a label, the words of the schema, and a place for faults.

   What is written into a field comes out of it again, though it cannot show everything: the line ends of another system, a number in
   the place of a text, a choice that is none. Such a value is kept until somebody changes the field, which says so. */
class Field {
  constructor(schema, path, facts) {
    Object.assign(this, { schema, path, facts, fault: el("p", "field-fault"), keeps: el("p", "help") });
    this.fault.id = `fault-${++fieldCount}`;
    this.fault.hidden = this.keeps.hidden = true;
    this.node = el("div", "field");
    for (const event of ["input", "change", "click"]) this.node.addEventListener(event, () => this.showKept());
  }

  build(control) {
    const { schema, facts } = this, name = el("b", "", ...visible(facts.name, 200));
    const words = [schema.title && schema.title !== facts.name ? schema.title : "", this.kindWords()].filter(Boolean).join(" · ");
    const label = el("label", "", name, ...(facts.isRequired ? [el("span", "needed", "needed")] : []), el("small", "", ...visible(words, 200)));
    if (control.id) label.htmlFor = control.id;
    else if (this.words) Object.entries({ role: "group", "aria-label": this.words }).forEach(([name, value]) => this.node.setAttribute(name, value));
    if (facts.isRequired) this.control?.setAttribute("aria-required", true);
    if (facts.name === "" && this.words) this.control?.setAttribute("aria-label", this.words);
    const help = schema.description ? [el("p", "help", ...visible(schema.description, 2000))] : [];
    for (const words of help) words.id = `${this.fault.id}-help`;
    (this.control || this.node).setAttribute("aria-describedby", [...help, this.fault].map(words => words.id).join(" "));
    this.node.append(...(facts.name === "" ? [] : [label, ...help]), control, this.keeps, this.fault);
    if (schema.default !== undefined && schema.default !== null) this.writeDefault(schema.default);
  }

  /** What the field is called; a part of a list has no label, and goes by its place. */
  get words() {
    return this.facts.name || this.facts.said || "";
  }

  kindWords() {
    const { schema } = this, limits = [["minimum", "≥ "], ["maximum", "≤ "], ["exclusiveMinimum", "> "], ["exclusiveMaximum", "< "], ["multipleOf", "multiple of "], ["minLength", "length ≥ "], ["maxLength", "length ≤ "], ["minItems", "items ≥ "], ["maxItems", "items ≤ "]];
    const words = limits.filter(([key]) => typeof schema[key] === "number").map(([key, sign]) => `${sign}${schema[key]}`);
    return [[schema.type].flat().filter(Boolean).map(inWords).join(" or "), schema.format, ...words, schema.pattern].filter(Boolean).map(inWords).join(" ");
  }

  /** Show the faults of this place; return those places that it has taken. */
  show(faults) {
    const text = own(faults, this.path);
    this.fault.hidden = text === undefined;
    this.fault.replaceChildren(...(text === undefined ? [] : ["✕ ", ...visible(text, 1000)]));
    this.node.classList.toggle("bad", text !== undefined);
    this.control?.setAttribute("aria-invalid", text !== undefined);
    return text === undefined ? [] : [this.path];
  }

  /** Return the value; undefined if the field is left out. */
  read() {
    const value = this.take();
    return this.kept && JSON.stringify(value) === this.kept.seen ? this.kept.value : value;
  }

  write(value) {
    this.kept = null;
    this.put(value);
    const seen = JSON.stringify(this.take());
    if (value !== undefined && seen !== JSON.stringify(value)) this.kept = { value, seen };
    this.showKept();
  }

  /** A default that the field cannot show is left to the server, which has it. */
  writeDefault(value) {
    this.write(value);
    if (this.kept) this.write(undefined);
  }

  showKept() {
    let isKept = false;
    try { isKept = Boolean(this.kept) && JSON.stringify(this.take()) === this.kept.seen; } catch { /* Somebody writes JSON. */ }
    this.keeps.hidden = !isKept;
    if (isKept) this.keeps.replaceChildren("Sent until it is changed: ", ...(this.facts.isSecret ? ["what it was given, in all its lines"] : visible(JSON.stringify(this.kept.value), 200)));
  }

  /** Return the value that the field shows. */
  take() { return undefined; }

  /** Show a value, as far as the field can. */
  put() {}
}

/** Go to the first thing in a place that takes keys. */
const enter = node => node.querySelector("input, textarea, select, button")?.focus();

function input(tag, type, attributes = {}) {
  const node = el(tag, "");
  if (type) node.type = type;
  node.id = `field-${++fieldCount}`;
  node.spellcheck = false;
  node.autocomplete = type === "password" ? "new-password" : "off";
  return Object.assign(node, attributes);
}

class TextField extends Field {
  constructor(schema, path, facts) {
    super(schema, path, facts);
    const isFile = /^base64/.test(schema.contentEncoding || "") || ["byte", "binary"].includes(schema.format);
    this.control = facts.isSecret ? input("input", "password") : this.makeControl(isFile);
    this.control.placeholder = inWords((Array.isArray(schema.examples) && schema.examples[0]) || own(EXAMPLES, schema.format) || "").slice(0, 200);
    this.control.addEventListener("input", () => { this.isEmptyText = false; });
    if (facts.isSecret) this.control.addEventListener("paste", event => this.paste(event));
    this.build(isFile ? el("div", "with-file", this.control, this.chooser()) : this.control);
  }

  /** A text may have lines, unless the schema says that it is short, or of a form that has none. */
  makeControl(isFile) {
    const { format, pattern, maxLength } = this.schema;
    if (format === "date") return input("input", "date");
    if (isFile || maxLength > SHORT_TEXT) return input("textarea", "", { rows: 3 });
    return format || pattern || maxLength ? input("input", "text") : input("textarea", "", { rows: 1, className: "grows" });
  }

  /** A key has lines, which the browser's field for secrets would join. */
  paste(event) {
    const text = event.clipboardData.getData("text"), { value, selectionStart, selectionEnd } = this.control;
    if (!/[\r\n]/.test(text) || selectionEnd - selectionStart < value.length) return;
    event.preventDefault();
    this.write(text);
  }

  /** A file becomes base64 here; nothing is sent before the call is. */
  chooser() {
    const file = input("input", "file"), told = el("small");
    file.onchange = async () => {
      const [chosen] = file.files;
      if (!chosen) return;
      if (chosen.size > LONGEST_FILE) { told.textContent = `${size(chosen.size)} is too much; at most ${size(LONGEST_FILE)}`; return; }
      this.write(base64(new Uint8Array(await chosen.arrayBuffer())));
      told.replaceChildren(...visible(`${chosen.name}, ${size(chosen.size)}`, 200));
    };
    return el("div", "", file, told);
  }

  /* A field that is left empty is left out, unless the empty text is what it was given, or it is a part that was added. */
  take() { return this.control.value === "" && !this.isEmptyText && !this.facts.isPart ? undefined : this.control.value; }

  put(value) {
    this.control.value = value === undefined || value === null ? "" : inWords(value);
    this.isEmptyText = value === "";
  }
}
const EXAMPLES = { "date-time": "2026-01-31T12:00:00Z", time: "12:00:00Z", email: "name@example.org", uri: "https://example.org/" };

function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}

class NumberField extends TextField {
  makeControl() { return input("input", "text", { inputMode: "decimal" }); }

  /** What is no number goes to the library as it is, which says what it wants. */
  take() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    const number = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
    if (JSON.rawJSON && /^-?(0|[1-9]\d*)$/.test(text) && !Number.isSafeInteger(number)) return JSON.rawJSON(text);
    return Number.isFinite(number) ? number : text;
  }
}

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

class ChoiceField extends Field {
  constructor(schema, path, facts, choices, most = MOST_CHOICES) {
    super(schema, path, facts);
    this.choices = choices.slice(0, most);
    this.control = input("select", "");
    this.control.append(el("option", "", "–"), ...this.choices.map(([, words]) => el("option", "", ...visible(words, 200).map(part => typeof part === "string" ? part : part.textContent))));
    this.build(this.control);
    if (choices.length > most) this.node.append(el("p", "help", `The first ${grouped(most)} of ${grouped(choices.length)}; give another as JSON.`));
  }

  take() { return this.choices[this.control.selectedIndex - 1]?.[0]; }

  put(value) { this.control.selectedIndex = value === undefined ? 0 : this.choices.findIndex(([choice]) => isSame(choice, value)) + 1; }
}

/* Several of a few values: a box for each, in their order. */
class ChecksField extends Field {
  constructor(schema, path, facts, choices) {
    super(schema, path, facts);
    this.boxes = choices.map(([value, words]) => {
      const box = input("input", "checkbox");
      return { value, box, node: el("label", "check", box, el("span", "", ...visible(words, 200))) };
    });
    this.build(el("div", "checks", ...this.boxes.map(({ node }) => node)));
  }

  take() {
    const values = this.boxes.filter(({ box }) => box.checked).map(({ value }) => value);
    return values.length || this.facts.isRequired ? values : undefined;
  }

  put(value) {
    const values = Array.isArray(value) ? value : [];
    for (const { value: choice, box } of this.boxes) box.checked = values.some(each => isSame(each, choice));
  }

  show(faults) {
    const inside = Object.keys(faults).filter(place => place.startsWith(`${this.path}/`)), texts = inside.map(place => faults[place]);
    const own = super.show(texts.length ? { [this.path]: texts.join("; "), ...faults } : faults);
    return [...own, ...inside];
  }
}

class BooleanField extends ChoiceField {
  constructor(schema, path, facts) { super(schema, path, facts, [[true, "true"], [false, "false"]]); }
}

class JsonField extends Field {
  constructor(schema, path, facts) {
    super(schema, path, facts);
    this.control = input("textarea", "", { rows: 3, placeholder: "JSON" });
    this.build(this.control);
  }

  take() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    try { return parsed(text); } catch (error) { throw new Unreadable(this.path, String(error.message)); }
  }

  put(value) { this.control.value = value === undefined ? "" : JSON.stringify(value, null, 2); }
}

class Unreadable extends Error {
  constructor(path, message) { super(message); this.path = path; }
}
