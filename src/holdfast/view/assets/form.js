/* A form made from a JSON Schema. Each field knows its place (a JSON pointer), its value, and how to
   show a fault; what the schema says that a form cannot show is left to raw JSON, and every check
   to the library: here a value is read, never judged. */
const DEEPEST = 6, MOST_GROUPS = 300, MOST_FIELDS = 1000, FEW_FIELDS = 20, MOST_CHOICES = 5000, MOST_OPTIONS = 20_000, FEW_OPTIONS = 50, MOST_PARTS = 200, MOST_BOXES = 30, LONGEST_FILE = 16_000_000;

/* A schema without references and with its `allOf` joined, as far as a form needs it. Each is read once: parts that refer to
   each other a thousand times cost no more, and one inside of itself is empty there. */
const READ_ONCE = new WeakMap();
function plain(schema, root) {
  if (schema === null || typeof schema !== "object") return {};
  if (!READ_ONCE.has(schema)) {
    READ_ONCE.set(schema, {});
    READ_ONCE.set(schema, resolved(schema, root));
  }
  return READ_ONCE.get(schema);
}

function resolved(schema, root) {
  if (typeof schema.$ref === "string") return { ...plain(target(schema.$ref, root), root), ...without(schema, "$ref") };
  return Array.isArray(schema.allOf) ? joined([without(schema, "allOf"), ...schema.allOf.map(part => plain(part, root))]) : schema;
}

/** Return what several schemas of one value say together; the first counts for most. */
function joined(parts) {
  const all = Object.assign({}, ...parts.slice().reverse()), required = parts.flatMap(part => Array.isArray(part.required) ? part.required : []);
  if (parts.some(part => part.properties)) all.properties = Object.fromEntries(parts.flatMap(part => Object.entries(part.properties || {})));
  if (required.length) all.required = [...new Set(required)];
  return all;
}

const without = (object, name) => Object.fromEntries(Object.entries(object).filter(([key]) => key !== name));

function target(reference, root) {
  if (!reference.startsWith("#")) return {};
  const steps = reference.slice(1).split("/").slice(1).map(step => decodeStep(step));
  return steps.reduce((value, step) => value !== null && typeof value === "object" ? own(value, step) : undefined, root) ?? {};
}

function decodeStep(step) {
  try { step = decodeURIComponent(step); } catch { /* As it stands. */ }
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

function typeOf(schema) {
  const types = [schema.type].flat().filter(type => type && type !== "null");
  if (types.length === 1) return types[0];
  if (!types.length && schema.properties) return "object";
  return !types.length && (schema.items || schema.prefixItems) ? "array" : "";
}

/** Return the values to choose from, with their words; null if there are other values. */
function choicesOf(schema, root) {
  if (Array.isArray(schema.enum)) return schema.enum.map((value, place) => [value, inWords(schema.enumNames?.[place] ?? value)]);
  if (schema.const !== undefined) return [[schema.const, shown(schema.const)]];
  const choices = alternatives(schema)?.map(choice => plain(choice, root));
  return choices?.every(choice => choice.const !== undefined) ? choices.map(choice => [choice.const, inWords(choice.title ?? choice.const)]) : null;
}
const alternatives = schema => [schema.oneOf, schema.anyOf].find(choices => Array.isArray(choices) && choices.length);
const isNull = schema => schema.type === "null" || schema.const === null;

/* How many groups, fields and choices there are of each schema: one that branches without end is filled in where it is wanted,
   and what has no room is given as JSON. */
const COUNTS = new WeakMap();
const countsOf = root => COUNTS.get(root) || COUNTS.set(root, { groups: 0, fields: 0, options: 0 }).get(root);

/** Return the field for a schema. `facts`: the name, whether it is required, whether secret. */
function fieldOf(schema, root, path, facts, depth = 0, isOpen = false) {
  schema = plain(schema, root);
  const choices = choicesOf(schema, root), forms = alternatives(schema)?.map(choice => plain(choice, root)).filter(choice => !isNull(choice));
  const isNullable = [schema.type].flat().includes("null") || Boolean(alternatives(schema)?.some(choice => isNull(plain(choice, root))));
  facts = { ...facts, isNullable };
  const counts = countsOf(root);
  counts.fields++;
  if (choices) {
    const most = Math.min(MOST_CHOICES, Math.max(FEW_OPTIONS, MOST_OPTIONS - counts.options));
    counts.options += Math.min(most, choices.length);
    return new ChoiceField(schema.const === undefined ? schema : { default: schema.const, ...schema }, path, facts, choices, most);
  }
  const isGroup = Boolean(forms?.length) || ["object", "array"].includes(typeOf(schema));
  if (isGroup) counts.groups++;
  if (isGroup && !isOpen && ((depth > 1 && !facts.isRequired) || depth > DEEPEST || counts.groups > MOST_GROUPS)) return new LazyField(schema, path, facts, root, depth);
  if (forms?.length) return new AlternativesField(schema, path, facts, root, depth, forms);
  const items = typeOf(schema) === "array" && !schema.prefixItems && choicesOf(plain(schema.items, root), root);
  if (items && items.length <= MOST_BOXES) return new ChecksField(schema, path, facts, items);
  return new (own(FIELDS, typeOf(schema)) || JsonField)(schema, path, facts, root, depth);
}

const shown = inWords;

/* What all fields have: a label, the words of the schema, and a place for faults. */
class Field {
  constructor(schema, path, facts) {
    Object.assign(this, { schema, path, facts, fault: el("p", "field-fault") });
    this.node = el("div", "field");
  }

  build(control) {
    const { schema, facts } = this, name = el("b", "", ...visible(facts.name, 200));
    const words = [schema.title && schema.title !== facts.name ? schema.title : "", this.kindWords()].filter(Boolean).join(" · ");
    const label = el("label", "", name, ...(facts.isRequired ? [el("span", "needed", "needed")] : []), el("small", "", ...visible(words, 200)));
    if (control.id) label.htmlFor = control.id;
    else if (facts.name !== "") Object.entries({ role: "group", "aria-label": facts.name }).forEach(([name, value]) => this.node.setAttribute(name, value));
    const help = schema.description ? [el("p", "help", ...visible(schema.description, 2000))] : [];
    this.fault.hidden = true;
    this.node.append(...(facts.name === "" ? [] : [label, ...help]), control, this.fault);
    if (schema.default !== undefined) this.write(schema.default);
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

  read() { return undefined; }

  write() {}
}

let fieldCount = 0;
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
    const dates = { date: "date", time: "time" }, isLong = (schema.maxLength || 0) > 200 || isFile;
    this.control = facts.isSecret ? input("input", "password") : isLong ? input("textarea", "", { rows: 3 }) : input("input", own(dates, schema.format) || "text");
    this.control.placeholder = inWords((Array.isArray(schema.examples) && schema.examples[0]) || own(EXAMPLES, schema.format) || "").slice(0, 200);
    this.control.addEventListener("input", () => { this.isEmptyText = false; });
    this.build(isFile ? el("div", "with-file", this.control, this.chooser()) : this.control);
  }

  /** A file becomes base64 here; nothing is sent before the call is. */
  chooser() {
    const file = input("input", "file"), told = el("small");
    file.onchange = async () => {
      const [chosen] = file.files;
      if (!chosen) return;
      if (chosen.size > LONGEST_FILE) { told.textContent = `${size(chosen.size)} is too much; at most ${size(LONGEST_FILE)}`; return; }
      this.control.value = base64(new Uint8Array(await chosen.arrayBuffer()));
      told.replaceChildren(...visible(`${chosen.name}, ${size(chosen.size)}`, 200));
    };
    return el("div", "", file, told);
  }

  /* A field that is left empty is left out, unless the empty text is what it was given. */
  read() { return this.control.value === "" && !this.isEmptyText ? undefined : this.control.value; }

  write(value) {
    this.control.value = value === undefined || value === null ? "" : shown(value);
    this.isEmptyText = value === "";
  }
}
const EXAMPLES = { "date-time": "2026-01-31T12:00:00Z", email: "name@example.org", uri: "https://example.org/" };

function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}

class NumberField extends TextField {
  /** What is no number goes to the library as it is, which says what it wants. */
  read() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    const number = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
    if (JSON.rawJSON && /^-?(0|[1-9]\d*)$/.test(text) && !Number.isSafeInteger(number)) return JSON.rawJSON(text);
    return Number.isFinite(number) ? number : text;
  }
}

class ChoiceField extends Field {
  constructor(schema, path, facts, choices, most = MOST_CHOICES) {
    super(schema, path, facts);
    this.choices = choices.slice(0, most);
    this.control = input("select", "");
    this.control.append(el("option", "", "–"), ...this.choices.map(([, words]) => el("option", "", ...visible(words, 200).map(part => typeof part === "string" ? part : part.textContent))));
    this.build(this.control);
    if (choices.length > most) this.node.append(el("p", "help", `The first ${grouped(most)} of ${grouped(choices.length)}; give another as JSON.`));
  }

  read() { return this.choices[this.control.selectedIndex - 1]?.[0]; }

  write(value) { this.control.selectedIndex = value === undefined ? 0 : this.choices.findIndex(([choice]) => shown(choice) === shown(value)) + 1; }
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

  read() {
    const values = this.boxes.filter(({ box }) => box.checked).map(({ value }) => value);
    return values.length || this.facts.isRequired ? values : undefined;
  }

  write(value) {
    const values = new Set((Array.isArray(value) ? value : []).map(shown));
    for (const { value: choice, box } of this.boxes) box.checked = values.has(shown(choice));
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

  read() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    try { return parsed(text); } catch (error) { throw new Unreadable(this.path, String(error.message)); }
  }

  write(value) { this.control.value = value === undefined ? "" : JSON.stringify(value, null, 2); }
}

class Unreadable extends Error {
  constructor(path, message) { super(message); this.path = path; }
}

class ObjectField extends Field {
  constructor(schema, path, facts, root, depth) {
    super(schema, path, facts);
    const required = new Set(Array.isArray(schema.required) ? schema.required : []), secret = facts.secret || new Set();
    const { fields } = countsOf(root), all = Object.entries(schema.properties || {}).sort(([a], [b]) => required.has(b) - required.has(a));
    const properties = all.slice(0, Math.max(FEW_FIELDS, MOST_FIELDS - fields));
    this.more = all.length - properties.length;
    this.fields = new Map(properties.map(([name, part]) => {
      const isSecret = secret.has(name) || part?.writeOnly === true || part?.format === "password";
      return [name, fieldOf(part, root, `${path}/${pointerStep(name)}`, { name, isRequired: required.has(name), isSecret }, depth + 1)];
    }));
    this.rest = this.makeRest(schema, path, root, depth);
    const order = [...this.fields.values()];
    const inside = el("div", facts.name === "" ? "fields" : "fields inner", ...order.map(field => field.node), ...(this.rest ? [this.rest.node] : []));
    if (!order.length && !this.rest) inside.append(el("p", "help", "It takes no arguments."));
    this.build(inside);
  }

  /** What the schema allows beside the fields that it names: rows of names and values, or JSON. */
  makeRest(schema, path, root, depth) {
    const others = schema.additionalProperties;
    if (this.more) return new JsonField({ description: `${counted(this.more, "more field")}, as a JSON object` }, path, { name: "…" });
    if (others === false || (this.fields.size && (others === undefined || others === true))) return null;
    if (others !== null && typeof others === "object" && Object.keys(others).length) return new MapField(others, path, root, depth);
    return new JsonField({ description: this.fields.size ? "Other fields, as a JSON object" : "Fields, as a JSON object" }, path, { name: this.fields.size ? "…" : "" });
  }

  read() {
    // Made by `fromEntries`: a field may be called __proto__.
    const entries = [];
    for (const [name, field] of this.fields) {
      const value = field.read() ?? (field.facts.isRequired && field.facts.isNullable ? null : undefined);
      if (value !== undefined) entries.push([name, value]);
    }
    const rest = this.rest?.read();
    if (rest !== undefined) { if (rest === null || typeof rest !== "object" || Array.isArray(rest)) return rest; entries.push(...Object.entries(rest)); }
    const values = Object.fromEntries(entries);
    return Object.keys(values).length || this.facts.isRequired || this.facts.name === "" ? values : undefined;
  }

  write(value) {
    if (value === undefined || value === null || typeof value !== "object") value = {};
    for (const [name, field] of this.fields) field.write(Object.hasOwn(value, name) ? value[name] : undefined);
    const rest = Object.entries(value).filter(([name]) => !this.fields.has(name));
    this.rest?.write(rest.length ? Object.fromEntries(rest) : undefined);
  }

  show(faults) {
    const taken = [...this.fields.values(), ...(this.rest instanceof MapField ? [this.rest] : [])].flatMap(field => field.show(faults));
    return [...taken, ...super.show(faults)];
  }
}

/* Names that a person gives, each with a value of one schema. */
class MapField extends Field {
  constructor(schema, path, root, depth) {
    super(schema, path, { name: "" });
    this.rows = [];
    this.place = el("div", "items");
    this.make = name => fieldOf(schema, root, `${path}/${pointerStep(name)}`, { name: "", isRequired: true }, depth + 1, true);
    this.adder = button("add", () => this.add("", undefined).key.focus(), "+ add a name");
    this.node.append(this.place, this.adder);
  }

  add(name, value) {
    const key = input("input", "text", { placeholder: "name", value: name }), row = { key, field: this.make(name) };
    if (value !== undefined) row.field.write(value);
    key.setAttribute("aria-label", "Name");
    const node = el("div", "item map", key, row.field.node, button("remove", () => { this.rows.splice(this.rows.indexOf(row), 1); node.remove(); }, "✕"));
    node.lastChild.setAttribute("aria-label", "Remove");
    // The place of its faults goes by the name.
    key.onchange = () => {
      let value;
      try { value = row.field.read(); } catch { return; }
      const next = this.make(key.value);
      if (value !== undefined) next.write(value);
      row.field.node.replaceWith(next.node);
      row.field = next;
    };
    this.rows.push(row);
    this.place.append(node);
    return row;
  }

  read() {
    if (this.raw) return this.raw.read();
    const entries = this.rows.map(({ key, field }) => [key.value, field.read()]).filter(([name, value]) => name !== "" || value !== undefined);
    return entries.length ? Object.fromEntries(entries.map(([name, value]) => [name, value ?? null])) : undefined;
  }

  write(value) {
    const entries = value !== null && typeof value === "object" ? Object.entries(value) : [];
    this.rows = [];
    this.place.replaceChildren();
    if (!takeMany(this, value, entries.length)) for (const [name, item] of entries) this.add(name, item);
  }

  show(faults) {
    return this.rows.flatMap(({ field }) => field.show(faults));
  }
}

/** More parts than a person fills in one by one are JSON: a default may have any number. Return whether it is so. */
function takeMany(field, value, count) {
  field.raw = count > MOST_PARTS ? new JsonField({}, field.path, { name: "" }) : null;
  field.adder.hidden = Boolean(field.raw);
  if (!field.raw) return false;
  field.raw.control.value = JSON.stringify(value);
  field.place.append(el("p", "help", `${counted(count, "part")}, as JSON`), field.raw.node);
  return true;
}

/* A part that is made when it is wanted: deep ones, and those of a schema that has no end. */
class LazyField extends Field {
  constructor(schema, path, facts, root, depth) {
    super(schema, path, facts);
    this.make = () => fieldOf({ ...schema, default: undefined, description: undefined }, root, path, { ...facts, name: "" }, depth, true);
    this.place = el("div", "inner");
    this.write(undefined);
    this.build(this.place);
  }

  open() {
    this.field = this.make();
    this.place.replaceChildren(this.field.node, button("add", () => this.write(undefined), "− leave it out"));
    return this.field;
  }

  read() { return this.field?.read(); }

  write(value) {
    if (value !== undefined && value !== null) return (this.field || this.open()).write(value);
    this.field = null;
    this.place.replaceChildren(button("add", () => this.open(), "+ fill it in"));
  }

  show(faults) {
    const taken = this.field?.show(faults) ?? [];
    return taken.includes(this.path) ? taken : [...taken, ...super.show(faults)];
  }
}

class ArrayField extends Field {
  constructor(schema, path, facts, root, depth) {
    super(schema, path, facts);
    this.items = [];
    this.place = el("div", "items");
    this.make = number => {
      const part = Array.isArray(schema.prefixItems) && number < schema.prefixItems.length ? schema.prefixItems[number] : schema.items;
      return fieldOf(part, root, `${path}/${number}`, { name: "", isRequired: true, isSecret: facts.isSecret }, depth + 1);
    };
    this.adder = button("add", () => this.add(undefined), "+ add");
    this.build(el("div", "inner", this.place, this.adder));
  }

  add(value) {
    const field = this.make(this.items.length);
    if (value !== undefined) field.write(value);
    this.items.push(field);
    const row = el("div", "item", field.node, button("remove", () => this.remove(field, row), "✕"));
    row.lastChild.setAttribute("aria-label", "Remove");
    this.place.append(row);
  }

  /** The places of those behind it change, so they are made anew. */
  remove(field) {
    const values = this.items.filter(item => item !== field).map(item => item.read());
    this.write(values);
  }

  read() {
    if (this.raw) return this.raw.read();
    const values = this.items.map(item => item.read() ?? null);
    return values.length || this.facts.isRequired ? values : undefined;
  }

  write(value) {
    const values = Array.isArray(value) ? value : [];
    this.items = [];
    this.place.replaceChildren();
    if (!takeMany(this, value, values.length)) for (const item of values) this.add(item);
  }

  show(faults) {
    return [...this.items.flatMap(item => item.show(faults)), ...super.show(faults)];
  }
}

/* oneOf, anyOf: one of several forms, chosen by its title or its type. */
class AlternativesField extends Field {
  constructor(schema, path, facts, root, depth, choices) {
    super(schema, path, facts);
    this.choices = choices;
    const base = without(without(schema, "oneOf"), "anyOf");
    this.make = number => fieldOf({ ...joined([choices[number], base]), description: choices[number].description, default: undefined }, root, path, { name: "", isRequired: facts.isRequired, isSecret: facts.isSecret, secret: facts.secret }, depth + 1, true);
    this.select = input("select", "");
    this.select.setAttribute("aria-label", "Which form");
    // One of several objects is left out unless it is chosen: its constants alone would be sent.
    this.isLeft = !facts.isRequired && choices.some(choice => typeOf(choice) === "object");
    this.select.append(...(this.isLeft ? [el("option", "", "–")] : []), ...choices.map((choice, number) => el("option", "", formName(choice, root) || `form ${number + 1}`)));
    this.select.onchange = () => this.choose(this.select.selectedIndex - this.isLeft);
    this.place = el("div", "inner");
    this.choose(this.isLeft ? -1 : 0);
    this.build(el("div", "alternatives", ...(this.select.options.length > 1 ? [this.select] : []), this.place));
  }

  choose(number) {
    this.field = number < 0 ? null : this.make(number);
    this.select.selectedIndex = number + this.isLeft;
    this.place.hidden = !this.field;
    this.place.replaceChildren(...(this.field ? [this.field.node] : []));
  }

  read() { return this.field?.read(); }

  write(value) {
    if (value === undefined) return this.isLeft ? this.choose(-1) : this.field.write(undefined);
    const kind = Array.isArray(value) ? "array" : value === null ? "null" : isRaw(value) ? "number" : typeof value;
    const fits = choice => choice.const !== undefined ? shown(choice.const) === shown(value) : typeOf(choice) === kind || (kind === "number" && typeOf(choice) === "integer");
    const number = this.choices.findIndex(choice => fits(choice) && (kind !== "object" || isFormOf(choice, value)));
    if (number >= 0 || !this.field) this.choose(Math.max(0, number));
    this.field.write(value);
  }

  show(faults) {
    const taken = this.field?.show(faults) ?? [];
    return taken.includes(this.path) ? taken : [...taken, ...super.show(faults)];
  }
}

/** Return whether an object has what a form requires, and its constants. */
function isFormOf(choice, value) {
  const constants = Object.entries(choice.properties || {}).filter(([, part]) => part?.const !== undefined);
  return (Array.isArray(choice.required) ? choice.required : []).every(name => Object.hasOwn(value, name)) && constants.every(([name, part]) => !Object.hasOwn(value, name) || shown(value[name]) === shown(part.const));
}

/** What tells one of several forms from the others: its title, the constant that it has, its type, what it requires. */
function formName(choice, root) {
  const constant = Object.values(choice.properties || {}).map(part => plain(part, root).const).find(value => typeof value === "string");
  const required = Array.isArray(choice.required) ? choice.required.map(inWords).join(", ") : "";
  return inWords(choice.title || constant || (typeOf(choice) === "object" && required ? `with ${required}` : typeOf(choice)) || (required && `with ${required}`)).slice(0, 80);
}

const FIELDS = { string: TextField, number: NumberField, integer: NumberField, boolean: BooleanField, object: ObjectField, array: ArrayField };

/** The whole form, with raw JSON as the way out. */
class Form {
  constructor(schema, secret = []) {
    const facts = { name: "", isRequired: true, secret: new Set(secret || []) };
    try { this.field = fieldOf({ type: "object", ...schema, default: undefined }, schema, "", facts, 0, true); }
    catch { this.field = new JsonField({ description: "This schema is too odd for a form." }, "", { ...facts, name: "arguments" }); }
    this.raw = input("textarea", "", { rows: 12, hidden: true, className: "raw" });
    this.raw.setAttribute("aria-label", "Arguments as JSON");
    this.general = el("p", "field-fault", "");
    this.general.hidden = true;
    this.toggle = button("link", () => this.turn(), "as JSON");
    this.node = el("div", "form", this.field.node, this.raw, this.general);
  }

  get isRaw() { return !this.raw.hidden; }

  /** Change between fields and JSON; what was entered goes along. */
  turn() {
    try {
      const value = this.read();
      if (this.isRaw) this.field.write(value);
      else this.raw.value = JSON.stringify(value, null, 2);
    } catch (error) { return this.show({ [error.path ?? ""]: error.message }); }
    this.raw.hidden = !this.raw.hidden;
    this.field.node.hidden = this.isRaw;
    this.toggle.textContent = this.isRaw ? "as a form" : "as JSON";
    this.show({});
  }

  /** Return the value; raises `Unreadable` for text that is no JSON. */
  read() {
    if (!this.isRaw) return this.field.read() ?? {};
    try { return parsed(this.raw.value || "{}"); } catch (error) { throw new Unreadable("", String(error.message)); }
  }

  write(value) {
    this.field.write(value);
    if (this.isRaw) this.raw.value = JSON.stringify(value, null, 2);
  }

  /** Put each fault beside its field; those without one stand below the form. */
  show(faults) {
    const taken = new Set(this.isRaw ? [] : this.field.show(faults)), rest = Object.entries(faults).filter(([place]) => !taken.has(place));
    this.general.hidden = !rest.length;
    this.general.replaceChildren(...rest.map(([place, text]) => el("span", "", ...(place ? [el("b", "", ...visible(place, 200)), " "] : []), ...visible(text, 2000))));
    const field = this.node.querySelector(".bad input, .bad textarea, .bad select");
    if (field) field.focus();
    else if (rest.length) this.general.scrollIntoView({ block: "nearest" });
  }
}
