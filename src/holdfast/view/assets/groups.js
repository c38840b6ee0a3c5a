/* The fields of a form that hold other fields: objects, maps, lists, one of several forms, and parts that are made when wanted. */
const FEW_FIELDS = 20, MOST_FIELDS = 1000, MOST_PARTS = 200;

const isObject = value => value !== null && typeof value === "object" && !Array.isArray(value) && !isRaw(value);

class ObjectField extends Field {
  constructor(schema, path, facts, root, depth) {
    super(schema, path, facts);
    const required = new Set(Array.isArray(schema.required) ? schema.required.filter(name => typeof name === "string") : []), secret = facts.secret || new Set();
    const { fields } = countsOf(root), all = this.namedParts(required).sort(([a], [b]) => required.has(b) - required.has(a));
    const properties = all.slice(0, Math.max(FEW_FIELDS, MOST_FIELDS - fields));
    this.more = all.length - properties.length;
    this.fields = new Map(properties.map(([name, part]) => {
      const isSecret = secret.has(name) || part?.writeOnly === true || part?.format === "password";
      return [name, fieldOf(part, root, `${path}/${pointerStep(name)}`, { name, isRequired: required.has(name), isSecret }, depth + 1)];
    }));
    this.rest = this.makeRest(root, depth);
    const order = [...this.fields.values()];
    this.inside = el("div", facts.name === "" ? "fields" : "fields inner", ...order.map(field => field.node), ...(this.rest ? [this.rest.node] : []));
    if (!order.length && !this.rest) this.inside.append(el("p", "help", "There is nothing to fill in."));
    this.build(this.inside);
  }

  /** The parts with names: a name that is required has a field, though the schema may not say of what kind. */
  namedParts(required) {
    const { properties, additionalProperties: others } = this.schema, entries = Object.entries(properties || {}), names = new Set(entries.map(([name]) => name));
    return others === false ? entries : [...entries, ...[...required].filter(name => !names.has(name)).map(name => [name, isObject(others) ? others : {}])];
  }

  /** What the schema allows beside the fields that it names: rows of names and values, or JSON. */
  makeRest(root, depth) {
    const { schema, path } = this, others = schema.additionalProperties, patterns = Object.values(schema.patternProperties || {}), isWhole = path === "";
    if (this.more) return this.makeOthers(`${counted(this.more, "more field")}, as a JSON object`);
    if (isObject(others) && Object.keys(others).length) return new MapField(others, path, root, depth);
    if (patterns.length) return new MapField(patterns.length === 1 ? patterns[0] : {}, path, root, depth);
    if (others === false || ((this.fields.size || isWhole) && others === undefined) || (this.fields.size && others === true)) return null;
    return this.fields.size ? this.makeOthers("Other fields, as a JSON object") : new JsonField({ description: "Fields, as a JSON object" }, path, { name: "" });
  }

  makeOthers(description) {
    return new JsonField({ description }, this.path, { name: "…" });
  }

  take() {
    // Made by `fromEntries`: a field may be called __proto__.
    const entries = [];
    for (const [name, field] of this.fields) {
      let value = field.read();
      if (value === undefined && field.facts.isRequired && field.facts.isNullable) value = null;
      if (value !== undefined) entries.push([name, value]);
    }
    const rest = this.rest?.read();
    if (rest !== undefined) {
      if (!isObject(rest)) return rest;
      for (const name of Object.keys(rest)) if (this.fields.has(name)) throw new Unreadable(`${this.path}/${pointerStep(name)}`, "it is given twice: here, and among the others");
      entries.push(...Object.entries(rest));
    }
    return entries.length || this.facts.isRequired || this.facts.name === "" ? Object.fromEntries(entries) : undefined;
  }

  put(value) {
    const values = isObject(value) ? value : {};
    for (const [name, field] of this.fields) field.write(Object.hasOwn(values, name) ? values[name] : undefined);
    const rest = Object.entries(values).filter(([name]) => !this.fields.has(name));
    if (rest.length && !this.rest) {
      this.rest = this.makeOthers("Fields that the schema does not name");
      this.inside.append(this.rest.node);
    }
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
    this.make = name => fieldOf(schema, root, `${path}/${pointerStep(name)}`, { name: "", said: name || "Value", isRequired: true, isPart: true }, depth + 1, true);
    this.adder = button("add", () => this.add("", undefined).key.focus(), "+ add a name");
    this.node.append(this.place, this.adder);
  }

  add(name, value) {
    const key = input("input", "text", { placeholder: "name", value: name }), row = { key, field: this.make(name) };
    if (value !== undefined) row.field.write(value);
    key.setAttribute("aria-label", "Name");
    const node = el("div", "item map", key, row.field.node, button("remove", () => { this.rows.splice(this.rows.indexOf(row), 1); node.remove(); this.adder.focus(); }, "✕"));
    node.lastChild.setAttribute("aria-label", "Remove");
    // The place of its faults goes by the name. While that is written, nobody is in the field which is made anew.
    key.oninput = () => {
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

  take() {
    if (this.raw) return this.raw.read();
    const entries = this.rows.map(({ key, field }) => [key.value, field.read() ?? null]), names = new Set();
    for (const [name] of entries) {
      if (names.has(name)) throw new Unreadable(`${this.path}/${pointerStep(name)}`, "this name is there twice");
      names.add(name);
    }
    return entries.length ? Object.fromEntries(entries) : undefined;
  }

  put(value) {
    const entries = isObject(value) ? Object.entries(value) : [];
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
    this.make = () => fieldOf({ ...schema, default: undefined, description: undefined }, root, path, { ...facts, name: "", said: this.words }, depth, true);
    this.place = el("div", "inner");
    this.put(undefined);
    this.build(this.place);
  }

  open() {
    this.field = this.make();
    this.place.replaceChildren(this.field.node, button("add", () => { this.put(undefined); enter(this.place); }, "− leave it out"));
    return this.field;
  }

  take() { return this.field?.read(); }

  put(value) {
    if (value !== undefined && value !== null) return (this.field || this.open()).write(value);
    this.field = null;
    this.place.replaceChildren(button("add", () => { this.open(); enter(this.place); }, "+ fill it in"));
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
      return fieldOf(part, root, `${path}/${number}`, { name: "", said: `${this.words} ${number + 1}`, isRequired: true, isPart: true, isSecret: facts.isSecret }, depth + 1);
    };
    this.adder = button("add", () => enter(this.add(undefined)), "+ add");
    this.build(el("div", "inner", this.place, this.adder));
  }

  add(value) {
    const field = this.make(this.items.length);
    if (value !== undefined) field.write(value);
    this.items.push(field);
    const row = el("div", "item", field.node, button("remove", () => this.remove(field), "✕"));
    row.lastChild.setAttribute("aria-label", `Remove ${field.words}`);
    this.place.append(row);
    return row;
  }

  /** The places of those behind it change, so they are made anew. */
  remove(field) {
    const number = this.items.indexOf(field);
    try { this.put(this.items.filter(item => item !== field).map(item => item.read())); } catch (error) { return this.show({ [error.path]: error.message }); }
    (this.place.children[number]?.lastChild || this.adder).focus();
  }

  take() {
    if (this.raw) return this.raw.read();
    const values = this.items.map(item => item.read() ?? null);
    return values.length || this.facts.isRequired ? values : undefined;
  }

  put(value) {
    const values = Array.isArray(value) ? value : [];
    this.items = [];
    this.place.replaceChildren();
    if (!takeMany(this, value, values.length)) for (const item of values) this.add(item);
  }

  show(faults) {
    return [...this.items.flatMap(item => item.show(faults)), ...super.show(faults)];
  }
}

/* oneOf, anyOf, several types: one of several forms, chosen by its title or its type. */
class AlternativesField extends Field {
  constructor(schema, path, facts, root, depth, choices) {
    super(schema, path, facts);
    this.choices = choices;
    const base = without(without(schema, "oneOf"), "anyOf");
    this.make = number => fieldOf({ ...joined([choices[number], base]), description: choices[number].description, default: undefined }, root, path, { name: "", said: this.words, isRequired: facts.isRequired, isPart: facts.isPart, isSecret: facts.isSecret, secret: facts.secret }, depth + 1, true);
    this.select = input("select", "");
    this.select.setAttribute("aria-label", this.words ? `Which form of ${this.words}` : "Which form");
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

  take() { return this.field?.read(); }

  put(value) {
    if (value === undefined || value === null) return this.isLeft ? this.choose(-1) : this.field.write(undefined);
    const kind = Array.isArray(value) ? "array" : isRaw(value) ? "number" : typeof value;
    const fits = choice => choice.const !== undefined ? isSame(choice.const, value) : typeOf(choice) === kind || (typeOf(choice) === "integer" && Number.isInteger(isRaw(value) ? Number(value.rawJSON) : value));
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
  return (Array.isArray(choice.required) ? choice.required : []).every(name => Object.hasOwn(value, name)) && constants.every(([name, part]) => !Object.hasOwn(value, name) || isSame(value[name], part.const));
}

/** What tells one of several forms from the others: its title, the constant that it has, its type, what it requires. */
function formName(choice, root) {
  const constant = Object.values(choice.properties || {}).map(part => plain(part, root).const).find(value => typeof value === "string");
  const required = Array.isArray(choice.required) ? choice.required.map(inWords).join(", ") : "";
  return inWords(choice.title || constant || (typeOf(choice) === "object" && required ? `with ${required}` : typeOf(choice)) || (required && `with ${required}`)).slice(0, 80);
}
