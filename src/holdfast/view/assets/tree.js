/* A message as a tree that folds. Branches are filled when they are opened. */
const MOST_ITEMS = 100, LONG_STRING = 2000, FEW_LETTERS = 60, MOST_PIXELS = 50_000_000;

function tree(value, key, depth, path, faults, room = LONG_STRING) {
  const label = key === null ? [] : [el("span", "key", ...visible(key, 200)), ": "];
  if (value === null || typeof value !== "object" || isRaw(value)) return leaf(value, label, faults && own(faults, path), room);
  const entries = Object.entries(value), isList = Array.isArray(value), fault = faults && own(faults, path);
  const says = fault ? [el("span", "say", "✕ ", ...visible(fault))] : [];
  if (!entries.length) return el("div", "leaf", ...label, el("span", fault ? "fault" : "", isList ? "[]" : "{}"), ...says);
  const details = el("details"), inside = el("div"), text = beginning(value, 61);
  details.append(el("summary", "", ...label, el("span", "preview", isList ? `[${entries.length}] ` : "", ...visible(text.length > 60 ? `${text.slice(0, 60)}…` : text)), ...says), inside);
  // What is shown as a picture, or can be heard, need not be read as well.
  const content = isPicture(value) || isSound(value) ? contentOf(value) : null, roomFor = item => item === content ? FEW_LETTERS : LONG_STRING;
  const fill = () => { if (!inside.firstChild) more(inside, entries, 0, ([name, item]) => tree(item, name, depth + 1, `${path}/${pointerStep(name)}`, faults, roomFor(item))); };
  details.ontoggle = fill;
  details.open = (depth < 4 && entries.length < 13 && key !== "_meta") || hasFault(faults, path);
  if (details.open) fill();
  if (isPicture(value)) inside.prepend(picture(value));
  if (isSound(value)) inside.prepend(sound(value));
  return details;
}

/** Return the beginning of a value as JSON, at least so many letters; a large one is not written whole for that. */
function beginning(value, room) {
  if (typeof value === "string") return JSON.stringify(value.slice(0, room));
  if (value === null || typeof value !== "object" || isRaw(value)) return JSON.stringify(value);
  const isList = Array.isArray(value), keys = isList ? value : Object.keys(value);
  let text = isList ? "[" : "{";
  for (let place = 0; place < keys.length; place++) {
    if (text.length >= room) return text;
    if (place) text += ",";
    if (!isList) text += `${JSON.stringify(keys[place].slice(0, room))}:`;
    text += beginning(isList ? value[place] : value[keys[place]], room - text.length);
  }
  return text + (isList ? "]" : "}");
}

const pointerStep = name => String(name).replaceAll("~", "~0").replaceAll("/", "~1");

/* Escapes of JSON that are shown as what they stand for. */
const READ_AS = { n: "\n", '"': '"' };
function leaf(value, label, fault, room) {
  const text = typeof value === "string" ? JSON.stringify(value).slice(1, -1).replace(/\\(.)/g, (pair, letter) => own(READ_AS, letter) ?? pair) : JSON.stringify(value);
  const look = typeof value === "string" ? "string" : typeof value === "number" || isRaw(value) ? "number" : "word";
  const quote = typeof value === "string" ? '"' : "", node = el("div", "leaf", ...label);
  const shown = el("span", look + (fault ? " fault" : ""), quote, ...visible(text, room), quote);
  if (text.length > room) shown.append(" ", button("", event => event.target.parentNode.replaceChildren(quote, ...visible(text, 1_000_000), quote), "show it"));
  node.append(shown);
  if (fault) node.append(el("span", "say", "✕ ", ...visible(fault)));
  return node;
}

/** Append items, a hundred at a time. */
function more(place, entries, from, make) {
  place.append(...entries.slice(from, from + MOST_ITEMS).map(make));
  const rest = entries.length - from - MOST_ITEMS;
  if (rest <= 0) return;
  const next = button("", () => { next.remove(); more(place, entries, from + MOST_ITEMS, make); }, `${Math.min(rest, MOST_ITEMS)} of ${counted(rest, "more item")}`);
  place.append(next);
}

function treeOf(body, faults) {
  if (body === null || typeof body !== "object") return el("div", "tree", ...visible(String(body ?? "nothing"), 100_000));
  if (isRaw(body)) return el("div", "tree", JSON.stringify(body));
  if (typeof body.text === "string" && Object.keys(body).length === 1) return el("div", "tree", ...visible(body.text, 100_000));
  const entries = Object.entries(body).filter(([key]) => key !== "jsonrpc" && key !== "id");
  return el("div", "tree", ...entries.map(([key, value]) => tree(value, key, 0, `/${pointerStep(key)}`, faults)));
}

/** Return a message as a tree; a large one says how much of it the trace has. */
function messageOf(row, body, faults) {
  if (!MESSAGES.has(row.kind)) return treeOf(body, faults);
  if (body === null) return el("div", "none", `The trace has the size of this message alone: ${size(row.bytes)}.`);
  if (typeof body.text !== "string" || !body.text.startsWith("{") || "jsonrpc" in body) return treeOf(body, faults);
  const where = body.sidecar ? ["The whole message is in ", el("code", "", ...visible(body.sidecar, 300)), "."] : ["The rest is not in the trace."];
  return el("div", "", el("p", "help cut", `The beginning of ${size(row.bytes)}. `, ...where), treeOf({ text: body.text }));
}

/** A branch with a fault in it is open, so that the fault is seen. */
const hasFault = (faults, path) => Boolean(faults) && Object.keys(faults).some(place => place.startsWith(`${path}/`));

const contentOf = value => typeof value.mimeType === "string" && (typeof value.data === "string" ? value.data : typeof value.blob === "string" ? value.blob : null);
const isPicture = value => Boolean(contentOf(value)) && value.mimeType.startsWith("image/");
const isSound = value => Boolean(contentOf(value)) && value.mimeType.startsWith("audio/");

/* A picture is decoded to pixels and drawn anew: an SVG, which could have a script, is never shown. */
function picture(value) {
  const canvas = el("canvas", "picture");
  canvas.style.position = "static";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The picture of the message");
  decodePicture(value).then(bitmap => {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.style.width = `min(100%, ${bitmap.width}px)`;
    canvas.style.height = "auto";
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
  }).catch(() => canvas.replaceWith(el("div", "leaf preview", "(this picture cannot be shown)")));
  return canvas;
}

async function decodePicture(value) {
  if (!/^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(value.mimeType)) throw new Error("not a picture that is shown");
  const bytes = bytesOf(contentOf(value));
  // A few bytes can be a picture of many gigabytes: its size is looked at before it is decoded.
  if (!(pixelsOf(bytes) <= MOST_PIXELS)) throw new Error("too large, or of no known size");
  const bitmap = await createImageBitmap(new Blob([bytes], { type: value.mimeType }));
  if (bitmap.width * bitmap.height > MOST_PIXELS) throw new Error("too large");
  return bitmap;
}

/** Return how many pixels a picture says that it has; NaN if that is not found. */
function pixelsOf(bytes) {
  const view = new DataView(bytes.buffer), letters = (from, to) => String.fromCharCode(...bytes.subarray(from, to)), u16 = (at, isLittle) => view.getUint16(at, isLittle), u32 = (at, isLittle) => view.getUint32(at, isLittle);
  const u24 = at => u32(at, true) & 0xffffff;
  if (bytes.length < 32) return NaN;
  if (letters(1, 4) === "PNG") return u32(16) * u32(20);
  if (letters(0, 3) === "GIF") return u16(6, true) * u16(8, true);
  if (letters(0, 2) === "BM") return Math.abs(view.getInt32(18, true) * view.getInt32(22, true));
  if (letters(12, 16) === "VP8X") return (u24(24) + 1) * (u24(27) + 1);
  if (letters(12, 16) === "VP8L") return ((u32(21, true) & 0x3fff) + 1) * ((u32(21, true) >> 14 & 0x3fff) + 1);
  if (letters(12, 16) === "VP8 ") return (u16(26, true) & 0x3fff) * (u16(28, true) & 0x3fff);
  if (letters(4, 8) === "ftyp") {
    const box = letters(0, 4096).indexOf("ispe");
    return box > 0 && box + 16 <= bytes.length ? u32(box + 8) * u32(box + 12) : NaN;
  }
  for (let at = 2; u16(0) === 0xffd8 && at + 9 < bytes.length && bytes[at] === 0xff; at += 2 + u16(at + 2)) {
    const mark = bytes[at + 1];
    if (mark >= 0xc0 && mark <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(mark)) return u16(at + 5) * u16(at + 7);
  }
  return NaN;
}

/** Sound is played by the browser's own control, from memory. */
function sound(value) {
  const player = el("audio"), unknown = () => player.replaceWith(el("div", "leaf preview", "(this sound cannot be played)"));
  try {
    if (!/^audio\/(wav|x-wav|wave|mpeg|mp3|ogg|webm|mp4|aac|flac)$/.test(value.mimeType)) throw new Error("not a sound that is played");
    const bytes = bytesOf(contentOf(value));
    player.src = URL.createObjectURL(new Blob([bytes], { type: value.mimeType }));
    player.controls = true;
    player.onerror = unknown;
  } catch { queueMicrotask(unknown); }
  return player;
}
