/* A form made from a JSON Schema. Each field knows its place (a JSON pointer), its value, and how to
   show a fault; what the schema says that a form cannot show is left to raw JSON, and every check
   to the library: here a value is read, never judged. */
const DEEPEST = 6, MOST_CHOICES = 200, LONGEST_FILE = 16_000_000;

/** Return a schema without references and with its `allOf` joined, as far as a form needs it. */
function plain(schema, root, depth = 0) {
  if (schema === null || typeof schema !== "object" || depth > DEEPEST) return {};
  if (typeof schema.$ref === "string") return { ...plain(target(schema.$ref, root), root, depth + 1), ...without(schema, "$ref") };
  if (!Array.isArray(schema.allOf)) return schema;
  const parts = [without(schema, "allOf"), ...schema.allOf.map(part => plain(part, root, depth + 1))];
  const joined = Object.assign({}, ...parts.slice().reverse());
  joined.properties = Object.assign({}, ...parts.map(part => part.properties || {}));
  joined.required = parts.flatMap(part => Array.isArray(part.required) ? part.required : []);
  return joined;
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

/** Return the field for a schema. `facts`: the name, whether it is required, whether secret. */
function fieldOf(schema, root, path, facts, depth = 0) {
  schema = plain(schema, root);
  const choices = schema.oneOf || schema.anyOf, make = depth > DEEPEST ? JsonField : own(FIELDS, typeOf(schema));
  if (Array.isArray(schema.enum)) return new ChoiceField(schema, path, facts, schema.enum.map(value => [value, shown(value)]));
  if (schema.const !== undefined) return new ChoiceField({ default: schema.const, ...schema }, path, facts, [[schema.const, shown(schema.const)]]);
  if (Array.isArray(choices) && choices.length && depth <= DEEPEST) {
    const plainChoices = choices.map(choice => plain(choice, root));
    if (plainChoices.every(choice => choice.const !== undefined)) return new ChoiceField(schema, path, facts, plainChoices.map(choice => [choice.const, choice.title || shown(choice.const)]));
    return new AlternativesField(schema, root, path, facts, plainChoices, depth);
  }
  return new (make || JsonField)(schema, path, facts, root, depth);
}

const shown = value => typeof value === "string" ? value : JSON.stringify(value);

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
    const help = schema.description ? [el("p", "help", ...visible(schema.description, 2000))] : [];
    this.fault.hidden = true;
    this.node.append(...(facts.name === "" ? [] : [label, ...help]), control, this.fault);
    this.write(schema.default);
  }

  kindWords() {
    const { schema } = this, limits = [["minimum", "≥"], ["maximum", "≤"], ["exclusiveMinimum", ">"], ["exclusiveMaximum", "<"]];
    return [[schema.type].flat().filter(Boolean).join(" or "), schema.format, ...limits.filter(([key]) => typeof schema[key] === "number").map(([key, sign]) => `${sign} ${schema[key]}`)].filter(Boolean).join(" ");
  }

  /** Show the faults of this place; return those places that it has taken. */
  show(faults) {
    const text = own(faults, this.path);
    this.fault.hidden = text === undefined;
    this.fault.replaceChildren(...(text === undefined ? [] : ["✕ ", ...visible(text, 1000)]));
    this.node.classList.toggle("bad", text !== undefined);
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

  read() { return this.control.value === "" ? undefined : this.control.value; }

  write(value) { this.control.value = value === undefined || value === null ? "" : shown(value); }
}

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
    return /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : text;
  }
}

class ChoiceField extends Field {
  constructor(schema, path, facts, choices) {
    super(schema, path, facts);
    this.choices = choices.slice(0, MOST_CHOICES);
    this.control = input("select", "");
    this.control.append(el("option", "", "–"), ...this.choices.map(([, words]) => el("option", "", ...visible(words, 200).map(part => typeof part === "string" ? part : part.textContent))));
    this.build(this.control);
  }

  read() { return this.choices[this.control.selectedIndex - 1]?.[0]; }

  write(value) { this.control.selectedIndex = value === undefined ? 0 : this.choices.findIndex(([choice]) => shown(choice) === shown(value)) + 1; }
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
    try { return JSON.parse(text); } catch (error) { throw new Unreadable(this.path, String(error.message)); }
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
    this.fields = new Map(Object.entries(schema.properties || {}).map(([name, part]) => {
      const isSecret = secret.has(name) || part?.writeOnly === true || part?.format === "password";
      return [name, fieldOf(part, root, `${path}/${pointerStep(name)}`, { name, isRequired: required.has(name), isSecret }, depth + 1)];
    }));
    this.rest = !this.fields.size || (schema.additionalProperties && schema.additionalProperties !== true) ? new JsonField({ description: this.fields.size ? "Other fields, as a JSON object" : "Fields, as a JSON object" }, path, { name: this.fields.size ? "…" : "" }) : null;
    if (this.rest && !this.fields.size && schema.additionalProperties === false) this.rest = null;
    const order = [...this.fields.values()].sort((a, b) => Boolean(b.facts.isRequired) - Boolean(a.facts.isRequired));
    const inside = el("div", facts.name === "" ? "fields" : "fields inner", ...order.map(field => field.node), ...(this.rest ? [this.rest.node] : []));
    if (!order.length && !this.rest) inside.append(el("p", "help", "It takes no arguments."));
    this.build(inside);
  }

  read() {
    const values = {};
    for (const [name, field] of this.fields) { const value = field.read(); if (value !== undefined) values[name] = value; }
    const rest = this.rest?.read();
    if (rest !== undefined) { if (rest === null || typeof rest !== "object" || Array.isArray(rest)) return rest; Object.assign(values, rest); }
    return Object.keys(values).length || this.facts.isRequired || this.facts.name === "" ? values : undefined;
  }

  write(value) {
    if (value === undefined || value === null || typeof value !== "object") return;
    for (const [name, field] of this.fields) field.write(Object.hasOwn(value, name) ? value[name] : undefined);
    const rest = Object.entries(value).filter(([name]) => !this.fields.has(name));
    this.rest?.write(rest.length ? Object.fromEntries(rest) : undefined);
  }

  show(faults) {
    const taken = [...this.fields.values()].flatMap(field => field.show(faults));
    return [...taken, ...super.show(faults)];
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
    const add = button("add", () => this.add(undefined), "+ add");
    this.build(el("div", "inner", this.place, add));
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
    const values = this.items.map(item => item.read() ?? null);
    return values.length || this.facts.isRequired ? values : undefined;
  }

  write(value) {
    this.items = [];
    this.place.replaceChildren();
    if (Array.isArray(value)) for (const item of value) this.add(item);
  }

  show(faults) {
    return [...this.items.flatMap(item => item.show(faults)), ...super.show(faults)];
  }
}

/* oneOf, anyOf: one of several forms, chosen by its title or its type. */
class AlternativesField extends Field {
  constructor(schema, root, path, facts, choices, depth) {
    super(schema, path, facts);
    this.choices = choices.filter(choice => choice.type !== "null");
    this.make = number => fieldOf({ ...without(without(schema, "oneOf"), "anyOf"), ...this.choices[number], description: this.choices[number].description, default: undefined }, root, path, { name: "", isRequired: facts.isRequired, isSecret: facts.isSecret }, depth + 1);
    this.select = input("select", "");
    this.select.append(...this.choices.map((choice, number) => el("option", "", choice.title || typeOf(choice) || `form ${number + 1}`)));
    this.select.onchange = () => this.choose(this.select.selectedIndex);
    this.place = el("div", "inner");
    this.choose(0);
    this.build(el("div", "alternatives", ...(this.choices.length > 1 ? [this.select] : []), this.place));
  }

  choose(number) {
    this.field = this.make(number);
    this.select.selectedIndex = number;
    this.place.replaceChildren(this.field.node);
  }

  read() { return this.field.read(); }

  write(value) {
    if (value === undefined) return;
    const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    const fits = choice => choice.const !== undefined ? shown(choice.const) === shown(value) : typeOf(choice) === kind || (kind === "number" && typeOf(choice) === "integer");
    const number = this.choices.findIndex(choice => fits(choice) && (kind !== "object" || (choice.required || []).every(name => Object.hasOwn(value, name))));
    if (number >= 0) this.choose(number);
    this.field.write(value);
  }

  show(faults) {
    const taken = this.field.show(faults);
    return taken.includes(this.path) ? taken : [...taken, ...super.show(faults)];
  }
}

const FIELDS = { string: TextField, number: NumberField, integer: NumberField, boolean: BooleanField, object: ObjectField, array: ArrayField };

/** The whole form, with raw JSON as the way out. */
class Form {
  constructor(schema, secret = []) {
    this.field = fieldOf({ type: "object", ...schema, default: undefined }, schema, "", { name: "", isRequired: true, secret: new Set(secret || []) });
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
    try { return JSON.parse(this.raw.value || "{}"); } catch (error) { throw new Unreadable("", String(error.message)); }
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
