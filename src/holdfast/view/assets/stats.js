/* Statistics per tool, of what the filter and the range leave. */
const BINS = 24, MOST_TOOLS = 500;
const quantile = (sorted, share) => sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] : NaN;
const figure = span => Number.isNaN(span) ? "–" : duration(span);
const LEAST_FOR_P95 = 5;

/* One log axis for all histograms, over decades: from the fastest answer to the slowest, two decades at least. */
class Axis {
  constructor(spans) {
    const exponent = (span, round) => round(Math.log10(Math.max(span, 1e-5)) + 1e-9);
    this.least = 10 ** (spans.length ? exponent(spans.reduce((a, b) => Math.min(a, b)), Math.floor) : -3);
    this.most = 10 ** Math.max(Math.log10(this.least) + 2, spans.length ? exponent(spans.reduce((a, b) => Math.max(a, b)), Math.ceil) : 1);
  }

  share(span) {
    return Math.max(0, Math.min(1, Math.log(Math.max(span, this.least) / this.least) / Math.log(this.most / this.least)));
  }

  bin(span) {
    return Math.min(BINS - 1, Math.floor(this.share(span) * BINS));
  }

  get decades() {
    const count = Math.round(Math.log10(this.most / this.least));
    return Array.from({ length: count + 1 }, (_, step) => this.least * 10 ** step);
  }
}
const roundDuration = span => span > 99 ? `${grouped(Math.round(span))} s` : duration(span).replace(/\.0+(?= )/, "").replace(/(\.\d*[1-9])0+(?= )/, "$1");

class Stats {
  constructor(page) {
    this.page = page;
    this.trace = page.trace;
    this.chosen = null;
  }

  groups() {
    const groups = new Map();
    for (const call of this.trace.calls) {
      if (call.method !== "tools/call" || !call.hit || !this.trace.isInRange(call, this.page.range)) continue;
      const key = `${call.server}\n${call.name}`;
      if (!groups.has(key)) groups.set(key, { key, server: call.server, name: call.name, calls: [] });
      groups.get(key).calls.push(call);
    }
    for (const group of groups.values()) {
      group.spans = group.calls.filter(call => call.answer >= 0).map(call => call.end - call.t).sort((a, b) => a - b);
      group.trouble = group.calls.filter(isTrouble);
      group.bytes = group.calls.reduce((sum, call) => sum + (call.total || call.bytes), 0);
      group.p50 = quantile(group.spans, .5);
      group.p95 = group.spans.length < LEAST_FOR_P95 ? NaN : quantile(group.spans, .95);
    }
    return [...groups.values()].sort((a, b) => b.trouble.length - a.trouble.length || b.calls.length - a.calls.length);
  }

  /** Choose the next tool, or the one before. */
  move(by) {
    const groups = this.groups(), place = groups.findIndex(group => group.key === this.chosen) + by;
    if (place >= 0 && place < Math.min(MOST_TOOLS, groups.length)) this.choose(groups[place]);
    $("table").querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  choose(group) {
    this.chosen = group.key;
    this.draw();
  }

  draw() {
    const groups = this.groups();
    this.count = groups.length;
    this.axis = new Axis(groups.flatMap(group => group.spans.length ? [group.spans[0], group.spans.at(-1)] : []));
    if (!groups.some(group => group.key === this.chosen)) this.chosen = groups[0]?.key ?? null;
    const body = el("tbody", "", ...groups.slice(0, MOST_TOOLS).map(group => this.row(group)));
    const head = ["tool", "calls", "trouble", "p50", "p95", `${roundDuration(this.axis.least)} – ${roundDuration(this.axis.most)}`, "bytes"].map(text => el("th", "", text));
    const more = groups.length - MOST_TOOLS, rest = more > 0 ? [el("p", "help more", `${counted(more, "more tool")}, in less trouble: filter by tool: or server: to see them.`)] : [];
    const table = el("table", "stats", el("thead", "", el("tr", "", ...head)), body);
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", "Tools");
    $("table").replaceChildren(table, ...rest);
    const group = groups.find(each => each.key === this.chosen);
    if (group) this.drawGroup(group);
    else $("detail").replaceChildren(el("div", "empty", el("b", "", "No calls"), this.page.query || this.page.range ? "No tool call fits the filter and the range." : "There is no tool call in this trace."));
  }

  row(group) {
    const counts = new Map();
    for (const call of group.trouble) counts.set(call.outcome, (counts.get(call.outcome) || 0) + 1);
    const worst = [...counts].sort(([a], [b]) => RANK.indexOf(b) - RANK.indexOf(a)).slice(0, 3);
    const trouble = el("span", "counts", ...worst.map(([outcome, count]) => el("span", "num", icon(outcome), String(count))));
    const node = el("tr", group.key === this.chosen ? "chosen" : "", el("td", "", el("b", "", ...visible(group.name, 80)), " ", el("small", "", ...visible(group.server, 40))), el("td", "num", grouped(group.calls.length)), el("td", "", trouble), el("td", "num", figure(group.p50)), el("td", "num", figure(group.p95)), el("td", "", bars(group.spans, this.axis, 96, 20)), el("td", "num", size(group.bytes)));
    node.onclick = () => this.choose(group);
    node.setAttribute("aria-selected", group.key === this.chosen);
    return node;
  }

  drawGroup(group) {
    const big = (value, words) => el("div", "num", el("b", "", value), words);
    const head = el("div", "title", el("h2", "", el("div", "", ...visible(group.name, 200)), el("span", "", ...visible(group.server, 80))), el("div", "figures", big(grouped(group.calls.length), group.calls.length === 1 ? "call" : "calls"), big(grouped(group.trouble.length), "in trouble"), big(figure(group.p50), "p50"), big(figure(group.p95), "p95"), big(figure(group.spans.at(-1) ?? NaN), "slowest answer"), big(size(group.bytes), "both ways")));
    const missing = group.calls.length - group.spans.length;
    const note = missing ? `${counted(missing, "call")} without an answer left out` : "";
    const chart = el("section", "log", el("h3", "", "How long the answers took (log scale)", el("span", "", note)), histogram(group, this.axis));
    const slowest = [...group.trouble, ...group.calls.filter(call => !isTrouble(call)).sort((a, b) => (b.end - b.t) - (a.end - a.t))].slice(0, 8);
    const list = el("section", "log", el("h3", "", "Trouble first, then the slowest"), ...slowest.map(call => this.slow(call)));
    $("detail").replaceChildren(head, chart, list);
  }

  slow(call) {
    const words = el("span", "mono");
    this.trace.bodyOf(call).then(body => words.append(...visible(asWords(body?.params?.arguments || {}), 200)));
    return button("slow num", () => this.page.choose(call, true), el("span", "", clock(call.t)), icon(call.outcome), words, duration(call.end - call.t));
  }
}

function binned(spans, axis) {
  const counts = new Array(BINS).fill(0);
  for (const span of spans) counts[axis.bin(span)]++;
  return counts;
}

function bars(spans, axis, width, height) {
  const counts = binned(spans, axis), most = Math.max(1, ...counts), chart = svg("svg", { "aria-hidden": "true", width, height, viewBox: `0 0 ${width} ${height}` }, svg("rect", { x: 0, y: height - 1, width, height: 1, fill: "var(--line2)" }));
  counts.forEach((count, bin) => {
    if (!count) return;
    const tall = Math.max(2, count / most * (height - 3));
    chart.append(svg("rect", { x: bin * width / BINS + .5, y: height - 1 - tall, width: width / BINS - 1, height: tall, fill: "var(--ok)", rx: 1 }));
  });
  return chart;
}

function histogram(group, axis) {
  const width = Math.max(320, Math.min(1200, $("detail").clientWidth - 40)), height = 132, counts = binned(group.spans, axis), most = Math.max(1, ...counts);
  const chart = svg("svg", { role: "img", "aria-label": `${counted(group.spans.length, "answer")}, ${group.spans.length ? `the fastest after ${duration(group.spans[0])}, the slowest after ${duration(group.spans.at(-1))}` : "no times"}`, class: "histogram", width, height: height + 22, viewBox: `0 0 ${width} ${height + 22}` }), x = span => axis.share(span) * width;
  const label = (at, y, text, anchor, fill = "var(--faint)") => { const node = svg("text", { x: at, y, "text-anchor": anchor, fill }); node.textContent = text; chart.append(node); };
  axis.decades.forEach((span, place, { length }) => {
    chart.append(svg("path", { d: `M${x(span)} 14V${height}`, stroke: "var(--line)" }));
    label(x(span), height + 15, roundDuration(span), place === 0 ? "start" : place === length - 1 ? "end" : "middle");
  });
  chart.append(svg("path", { d: `M0 ${height}H${width}`, stroke: "var(--line2)" }));
  counts.forEach((count, bin) => {
    if (!count) return;
    const tall = count / most * (height - 46);
    chart.append(svg("rect", { x: bin * width / BINS + 1, y: height - tall, width: width / BINS - 2, height: tall, rx: 2, fill: "var(--ok)", opacity: .85 }));
  });
  if (group.spans.length >= LEAST_FOR_P95) for (const [name, span, anchor, shift] of [["p50", group.p50, "end", -4], ["p95", group.p95, "start", 4]]) {
    const at = x(span);
    chart.append(svg("path", { d: `M${at} 4V${height}`, stroke: "var(--text)", "stroke-width": 1.2, "stroke-dasharray": name === "p95" ? "4 3" : "none" }));
    // Where there is no room on its own side, a label stands on the other; two on one place are one.
    const isTurned = at + shift * 8 < 0 || at + shift * 8 > width;
    if (name === "p50" && x(group.p95) - at < 1) continue;
    label(isTurned ? at - shift : at + shift, 12, name === "p95" && at - x(group.p50) < 1 ? "p50, p95" : name, isTurned ? anchor === "end" ? "start" : "end" : anchor, "var(--text)");
  }
  counts.forEach((count, bin) => { if (count) label((bin + .5) * width / BINS, height - count / most * (height - 46) - 5, String(count), "middle", "var(--muted)"); });
  return chart;
}
