/* Statistics per tool, of what the filter and the range leave. */
const BINS = 24, LEAST = .003, MOST = 16;
const binOf = span => Math.max(0, Math.min(BINS - 1, Math.floor(Math.log(Math.max(span, LEAST) / LEAST) / Math.log(MOST / LEAST) * BINS)));
const quantile = (sorted, share) => sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] : NaN;
const figure = span => Number.isNaN(span) ? "–" : duration(span);
const LEAST_FOR_P95 = 5;

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

  draw() {
    const groups = this.groups();
    if (!groups.some(group => group.key === this.chosen)) this.chosen = groups[0]?.key ?? null;
    const body = el("tbody", "", ...groups.map(group => this.row(group)));
    const head = ["tool", "calls", "trouble", "p50", "p95", "3 ms to 16 s", "bytes"].map(text => el("th", "", text));
    $("table").replaceChildren(el("table", "stats", el("thead", "", el("tr", "", ...head)), body));
    const group = groups.find(each => each.key === this.chosen);
    if (group) this.drawGroup(group);
    else $("detail").replaceChildren(el("div", "empty", el("b", "", "No calls"), "No tool call fits the filter and the range."));
  }

  row(group) {
    const counts = new Map();
    for (const call of group.trouble) counts.set(call.outcome, (counts.get(call.outcome) || 0) + 1);
    const trouble = el("span", "counts", ...[...counts].map(([outcome, count]) => el("span", "num", icon(outcome), String(count))));
    const node = el("tr", group.key === this.chosen ? "chosen" : "", el("td", "", el("b", "", ...visible(group.name, 80)), el("small", "", ...visible(group.server, 40))), el("td", "num", String(group.calls.length)), el("td", "", trouble), el("td", "num", figure(group.p50)), el("td", "num", figure(group.p95)), el("td", "", bars(group.spans, 96, 20)), el("td", "num", size(group.bytes)));
    node.onclick = () => { this.chosen = group.key; this.draw(); };
    return node;
  }

  drawGroup(group) {
    const big = (value, words) => el("div", "num", el("b", "", value), words);
    const head = el("div", "title", el("h2", "", el("div", "", ...visible(group.name, 200)), el("span", "", ...visible(group.server, 80))), el("div", "figures", big(String(group.calls.length), "calls"), big(String(group.trouble.length), "in trouble"), big(figure(group.p50), "p50"), big(figure(group.p95), "p95"), big(figure(group.spans.at(-1) ?? NaN), "slowest answer"), big(size(group.bytes), "both ways")));
    const missing = group.calls.length - group.spans.length;
    const note = missing ? `${counted(missing, "call")} without an answer left out` : "";
    const chart = el("section", "log", el("h3", "", "How long the answers took (log scale)", el("span", "", note)), histogram(group));
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

function binned(spans) {
  const counts = new Array(BINS).fill(0);
  for (const span of spans) counts[binOf(span)]++;
  return counts;
}

function bars(spans, width, height) {
  const counts = binned(spans), most = Math.max(1, ...counts), chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, svg("rect", { x: 0, y: height - 1, width, height: 1, fill: "var(--line2)" }));
  counts.forEach((count, bin) => {
    if (!count) return;
    const tall = Math.max(2, count / most * (height - 3));
    chart.append(svg("rect", { x: bin * width / BINS + .5, y: height - 1 - tall, width: width / BINS - 1, height: tall, fill: "var(--ok)", rx: 1 }));
  });
  return chart;
}

function histogram(group) {
  const width = 680, height = 132, counts = binned(group.spans), most = Math.max(1, ...counts);
  const chart = svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height + 22}` }), x = span => Math.log(span / LEAST) / Math.log(MOST / LEAST) * width;
  const label = (at, y, text, anchor, fill = "var(--faint)") => { const node = svg("text", { x: at, y, "text-anchor": anchor, fill }); node.textContent = text; chart.append(node); };
  for (const span of [.01, .1, 1, 10]) {
    chart.append(svg("path", { d: `M${x(span)} 14V${height}`, stroke: "var(--line)" }));
    label(x(span), height + 15, duration(span).replace(".00", ""), "middle");
  }
  chart.append(svg("path", { d: `M0 ${height}H${width}`, stroke: "var(--line2)" }));
  counts.forEach((count, bin) => {
    if (!count) return;
    const tall = count / most * (height - 46);
    chart.append(svg("rect", { x: bin * width / BINS + 1, y: height - tall, width: width / BINS - 2, height: tall, rx: 2, fill: "var(--ok)", opacity: .85 }));
  });
  if (group.spans.length >= LEAST_FOR_P95) for (const [name, span, anchor, shift] of [["p50", group.p50, "end", -4], ["p95", group.p95, "start", 4]]) {
    const at = Math.max(0, Math.min(width, x(span)));
    chart.append(svg("path", { d: `M${at} 4V${height}`, stroke: "var(--text)", "stroke-width": 1.2, "stroke-dasharray": name === "p95" ? "4 3" : "none" }));
    label(at + shift, 12, name, anchor, "var(--text)");
  }
  counts.forEach((count, bin) => { if (count) label((bin + .5) * width / BINS, height - count / most * (height - 46) - 5, String(count), "middle", "var(--muted)"); });
  return chart;
}
