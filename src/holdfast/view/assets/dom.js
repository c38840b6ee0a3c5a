const $ = id => document.getElementById(id);

/** Look a name up; a server may have chosen it, and `constructor` is no entry of a table. */
const own = (table, name) => Object.hasOwn(table, name) ? table[name] : undefined;

/** Make an element; strings become text nodes, so nothing of a server's is ever read as markup. */
function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  node.append(...children);
  return node;
}

function button(className, action, ...children) {
  const node = el("button", className, ...children);
  node.type = "button";
  node.onclick = action;
  return node;
}

/** Replace what is inside a place. The part that had the focus has it again, if one with the same words is there; else the place, if it can. */
function refill(place, ...nodes) {
  const old = document.activeElement, alike = () => [...place.querySelectorAll(old.tagName)].filter(node => node.textContent === old.textContent);
  if (old === place || !place.contains(old)) return place.replaceChildren(...nodes);
  const number = alike().indexOf(old);
  place.replaceChildren(...nodes);
  (alike()[number] || place).focus({ preventScroll: true });
}

/* Outcomes, kinds and states: their words, their shapes (F filled, D dashed, d dotted) and the
   token of their colour. Colour never stands alone: each has a shape of its own. */
const SIGNS = {
  ok: { words: "ok", paths: ["M3 7.5l2.700 2.700L11 4.500"] },
  tool: { words: "tool error", paths: ["F M7 1.500l6 11H1z"] },
  rpc: { words: "RPC error", paths: ["F M2 2h10v10H2z", "X M4.800 4.800l4.400 4.400M9.200 4.800L4.800 9.200"] },
  timeout: { words: "timeout", paths: ["M7 1.700a5.300 5.300 0 1 0 .01 0zM7 4v3.200l2.200 1.500"] },
  cancelled: { words: "cancelled", paths: ["M7 1.700a5.300 5.300 0 1 0 .01 0zM3.300 10.700l7.400-7.400"] },
  unknown: { words: "may have run", paths: ["D M7 1.400a5.600 5.600 0 1 0 .01 0z", "M5.300 5.600a1.700 1.700 0 1 1 2.500 1.500c-.6.300-.8.600-.8 1.100M7 10v.1"] },
  failed: { words: "not sent", paths: ["M7 1.700a5.300 5.300 0 1 0 .01 0zM5 5l4 4M9 5l-4 4"], token: "rpc" },
  late: { words: "late", paths: ["M9.500 4a3 3 0 1 0 .01 0zM.8 7h1.400M3.800 7h1.200"] },
  pending: { words: "waiting", paths: ["M2.500 7h.01M7 7h.01M11.500 7h.01"], token: "accent" },
  junk: { words: "junk", paths: ["F M7 1l6 6-6 6-6-6z"] },
  stderr: { words: "stderr", paths: ["M2.500 3.500L6 7l-3.500 3.500M7.500 11H12"], token: "faint" },
  notification: { words: "notification", paths: ["M2.500 3.500h9v6h-5l-2.500 2v-2H2.500z"], token: "faint" },
  http: { words: "HTTP", paths: ["M2 5h9M8.500 2.500L11 5 8.500 7.500M12 9H3M5.500 6.500L3 9l2.500 2.500"], token: "faint" },
  login: { words: "login", paths: ["M5 6a2.500 2.500 0 1 0 .01 0zM7.500 8.500H13M11 8.500v3"], token: "faint" },
  check: { words: "schema fault", paths: ["M2 10c1.500-3 3-3 4.500 0s3 3 5.500 0", "F M6.300 2h1.400v3.500H6.300z"], token: "rpc" },
  dropped: { words: "dropped", paths: ["d M2 7h10"], token: "timeout" },
  new: { words: "new", paths: ["d M7 2a5 5 0 1 0 .01 0z"], token: "faint" },
  starting: { words: "starting", paths: ["M7 2a5 5 0 1 0 .01 0z", "F M7 2a5 5 0 0 0 0 10z"], token: "late" },
  initializing: { words: "initializing", paths: ["M7 2a5 5 0 1 0 .01 0z", "F M7 2a5 5 0 1 0 5 5H7z"], token: "late" },
  ready: { words: "ready", paths: ["F M7 2a5 5 0 1 0 .01 0z"], token: "ok" },
  backoff: { words: "backoff", paths: ["M4 3.200a5 5 0 0 0 0 7.600M10 3.200a5 5 0 0 1 0 7.600M7 1v2.500M7 10.500V13"], token: "rpc" },
  closing: { words: "closing", paths: ["M7 2a5 5 0 1 0 .01 0zM4.700 7h4.600"], token: "cancelled" },
  closed: { words: "closed", paths: ["M7 2a5 5 0 1 0 .01 0z"], token: "cancelled" },
};
const sign = name => own(SIGNS, name) || SIGNS.notification;
const tokenOf = name => sign(name).token || (own(SIGNS, name) ? name : "faint");
const colorOf = name => `var(--${tokenOf(name)})`;

function icon(name) {
  const node = svg("svg", {
    class: "icon", viewBox: "0 0 14 14", fill: "none", "stroke-width": 1.6,
    "stroke-linecap": "round", "stroke-linejoin": "round", role: "img", "aria-label": sign(name).words,
  });
  node.style.color = colorOf(name);
  for (const path of sign(name).paths) {
    const attributes = { d: path.replace(/^[FDdX] /, ""), stroke: "currentColor" };
    if (path[0] === "F") Object.assign(attributes, { fill: "currentColor", "stroke-width": 1 });
    if (path[0] === "X") attributes.stroke = "var(--panel)";
    if (path[0] === "D") attributes["stroke-dasharray"] = "2.4 2";
    if (path[0] === "d") attributes["stroke-dasharray"] = ".1 3.1";
    node.append(svg("path", attributes));
  }
  return node;
}

const LOGO = [
  { d: "M6.500 3v16c0 4-.8 7-2.600 10M6.500 19c0-5.300 3.700-9 9.500-9s9.500 3.700 9.500 9c0 4 .8 7 2.600 10", stroke: "currentColor", "stroke-width": 3.8, "stroke-linecap": "round" },
  { d: "M16 15.900c3.200 0 5 2.900 5.400 6.700.4 3.900-1.700 6.900-5.400 6.900s-5.800-3-5.400-6.900c.4-3.800 2.200-6.700 5.400-6.700z", fill: "currentColor" },
];
const logo = () => svg("svg", { viewBox: "0 0 32 32", fill: "none", "aria-hidden": "true" }, ...LOGO.map(path => svg("path", path)));
