/* A schema as a form reads it: references resolved, choices and alternatives looked up. Every check is the library's. */
const MOST_CHOICES = 5000;

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
  if (Array.isArray(schema.enum)) return distinct(schema.enum.map((value, place) => [value, inWords(schema.enumNames?.[place] ?? value)]));
  if (schema.const !== undefined) return [[schema.const, inWords(schema.const)]];
  const choices = alternatives(schema)?.map(choice => plain(choice, root));
  return choices?.every(choice => choice.const !== undefined) ? distinct(choices.map(choice => [choice.const, inWords(choice.title ?? choice.const)])) : null;
}

/** Tell choices with the same words apart: the number 1 and the text "1" as JSON. */
function distinct(choices) {
  const seen = new Set(), doubled = new Set();
  for (const [, words] of choices) (seen.has(words) ? doubled : seen).add(words);
  return choices.map(([value, words]) => [value, doubled.has(words) ? JSON.stringify(value) : words]);
}

const alternatives = schema => [schema.oneOf, schema.anyOf].find(choices => Array.isArray(choices) && choices.length);
const isNull = schema => schema.type === "null" || schema.const === null;

/** Return the forms that a value may have: one of several schemas, or of several types. */
function formsOf(schema, root) {
  const types = [schema.type].flat().filter(type => type && type !== "null");
  return alternatives(schema)?.map(choice => plain(choice, root)).filter(choice => !isNull(choice)) || (types.length > 1 ? types.map(type => ({ type })) : []);
}

/* How many groups, fields and choices there are of each schema: one that branches without end is filled in where it is wanted,
   and what has no room is given as JSON. */
const COUNTS = new WeakMap();
const countsOf = root => COUNTS.get(root) || COUNTS.set(root, { groups: 0, fields: 0, options: 0 }).get(root);
