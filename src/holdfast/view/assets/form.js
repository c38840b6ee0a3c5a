/* A form made from a JSON Schema: which field stands for which schema, and the form as a whole, with raw JSON as the way out. */
const DEEPEST = 6, MOST_GROUPS = 300, MOST_OPTIONS = 20_000, FEW_OPTIONS = 50;

/** Return the field for a schema. `facts`: the name, whether it is required, secret, or a part of a list. */
function fieldOf(schema, root, path, facts, depth = 0, isOpen = false) {
  schema = plain(schema, root);
  const choices = choicesOf(schema, root), forms = formsOf(schema, root);
  const isNullable = facts.isNullable || [schema.type].flat().includes("null") || Boolean(alternatives(schema)?.some(choice => isNull(plain(choice, root))));
  facts = { ...facts, isNullable };
  // One form beside null is that form, and may be left empty.
  if (!choices && forms.length === 1 && !alternatives(forms[0])) return fieldOf(joined([without(without(schema, "oneOf"), "anyOf"), forms[0]]), root, path, facts, depth, isOpen);
  const counts = countsOf(root);
  counts.fields++;
  if (choices) {
    const most = Math.min(MOST_CHOICES, Math.max(FEW_OPTIONS, MOST_OPTIONS - counts.options));
    counts.options += Math.min(most, choices.length);
    return new ChoiceField(schema.const === undefined ? schema : { default: schema.const, ...schema }, path, facts, choices, most);
  }
  const isGroup = forms.length > 0 || ["object", "array"].includes(typeOf(schema));
  if (isGroup) counts.groups++;
  if (isGroup && !isOpen && ((depth > 1 && !facts.isRequired) || depth > DEEPEST || counts.groups > MOST_GROUPS)) return new LazyField(schema, path, facts, root, depth);
  if (forms.length) return new AlternativesField(schema, path, facts, root, depth, forms);
  const items = typeOf(schema) === "array" && !schema.prefixItems && choicesOf(plain(schema.items, root), root);
  if (items && items.length <= MOST_BOXES) return new ChecksField(schema, path, facts, items);
  return new (own(FIELDS, typeOf(schema)) || JsonField)(schema, path, facts, root, depth);
}

const FIELDS = { string: TextField, number: NumberField, integer: NumberField, boolean: BooleanField, object: ObjectField, array: ArrayField };

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
      if (!this.isRaw) this.raw.value = JSON.stringify(value, null, 2);
      else if (isObject(value)) this.field.write(value);
      else throw new Unreadable("", "the arguments must be an object");
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
    const fault = this.node.querySelector(".field-fault:not([hidden])");
    if (!fault) return;
    if (fault !== this.general) enter(fault.parentNode);
    // That of a group stands below all of its fields.
    fault.scrollIntoView({ block: "nearest" });
  }
}
