/* The strip below the lanes, and the filter: chips are legend, count and filter in one. */
const CHIPS = ["ok", "tool", "rpc", "timeout", "cancelled", "unknown", "failed", "pending", "late", "junk", "stderr"];
const ALWAYS = new Set(["ok", "tool", "rpc", "timeout", "unknown"]);

class Strip {
  constructor(page) {
    this.page = page;
    this.choice = -1;
    this.chips = new Map(CHIPS.map(name => [name, this.chip(name)]));
    $("chips").append(...[...this.chips.values()].map(({ node }) => node));
    $("tab-messages").onclick = () => page.show("messages");
    $("tab-stats").onclick = () => page.show("stats");
    $("tab-call").onclick = () => page.show("call");
    $("mode-calls").onclick = () => page.setWire(false);
    $("mode-wire").onclick = () => page.setWire(true);
    $("range").onclick = () => page.selectRange(null);
    const input = $("query");
    input.oninput = () => { page.setQuery(input.value); this.complete(); };
    input.onblur = () => setTimeout(() => this.close(), 120);
    input.onfocus = () => this.complete();
    input.onkeydown = event => this.key(event);
  }

  draw() {
    const { page } = this, isList = page.tab === "messages";
    for (const tab of ["messages", "stats", "call"]) {
      $(`tab-${tab}`).setAttribute("aria-selected", tab === page.tab);
      $(`tab-${tab}`).hidden = !page.tabs.includes(tab);
    }
    $("mode-calls").setAttribute("aria-pressed", !page.isWire);
    $("mode-wire").setAttribute("aria-pressed", page.isWire);
    $("segment").classList.toggle("off", !isList);
    $("left").hidden = !isList;
    $("table").hidden = isList;
    $("table").tabIndex = page.tab === "stats" ? 0 : -1;
    $("table").setAttribute("aria-labelledby", `tab-${page.tab}`);
    $("range").hidden = !page.range;
    $("query").classList.toggle("bad", page.filter.wrong.length > 0);
    if (page.range) $("range").textContent = `${page.range[0].toFixed(2)} – ${page.range[1].toFixed(2)} s  ✕`;
    this.drawChips();
  }

  drawChips() {
    const counts = Object.fromEntries(CHIPS.map(name => [name, 0]));
    for (const row of this.page.trace.folded) {
      if (!this.page.trace.isInRange(row, this.page.range)) continue;
      if (row.kind === "request") { counts[row.outcome]++; if (row.late >= 0) counts.late++; }
      else if (Object.hasOwn(counts, row.kind)) counts[row.kind]++;
    }
    const words = this.page.filter.tokens;
    for (const [name, { node, count }] of this.chips) {
      node.hidden = !counts[name] && !ALWAYS.has(name);
      node.classList.toggle("zero", !counts[name]);
      node.setAttribute("aria-pressed", words.includes(node.title));
      node.setAttribute("aria-label", `${sign(name).words} ${grouped(counts[name])}`);
      count.textContent = grouped(counts[name]);
    }
    this.fit();
  }

  /** A chip stays the same as long as the page is there: somebody may have gone to it by the keyboard. */
  chip(name) {
    const word = `${name === "stderr" || name === "junk" ? "kind" : "status"}:${name}`, count = el("b", "num"), mark = icon(name), { page } = this;
    const toggle = () => {
      const words = page.filter.tokens;
      page.setQuery([...words.filter(each => !/^(status|kind):/i.test(each)), ...(words.includes(word) ? [] : [word])].join(" "));
    };
    const node = button(TROUBLE.has(name) ? "chip" : "chip calm", toggle, mark, el("span", "words", sign(name).words), " ", count);
    node.title = word;
    mark.setAttribute("aria-hidden", true);
    return { node, count };
  }

  /** Where there is no room for all words, those of what is calm go first. */
  fit() {
    const chips = $("chips");
    for (const look of ["chips", "chips tight", "chips tight tighter"]) {
      chips.className = look;
      if (chips.scrollWidth <= chips.clientWidth) return;
    }
  }

  /** Offer what the last word could become, and say which words mean nothing. */
  complete() {
    const input = $("query"), { filter } = this.page;
    const choices = document.activeElement === input ? completions(input.value, this.page.trace) : [];
    const wrong = document.activeElement === input ? filter.wrong : [];
    this.choice = -1;
    this.choices = choices;
    const items = choices.map((text, place) => {
      const node = el("li", "", ...visible(/(?:"[^"]*"?|[^\s"])+$/.exec(text)[0], 80));
      node.setAttribute("role", "option");
      node.id = `choice-${place}`;
      node.onpointerdown = event => { event.preventDefault(); this.take(place); };
      return node;
    });
    for (const fault of wrong) {
      const node = el("li", "wrong", ...visible(fault.token, 60), ...(fault.instead ? [" means nothing: ", ...visible(fault.instead, 60), "?"] : [" fits nothing in this trace"]));
      if (fault.instead) node.onpointerdown = event => { event.preventDefault(); this.page.setQuery(mended(filter, fault)); this.complete(); };
      items.push(node);
    }
    $("choices").replaceChildren(...items);
    $("choices").hidden = !items.length;
    input.setAttribute("aria-expanded", items.length > 0);
    input.removeAttribute("aria-activedescendant");
  }

  close() {
    $("choices").hidden = true;
    $("query").setAttribute("aria-expanded", false);
  }

  take(place) {
    $("query").value = this.choices[place] + (this.choices[place].endsWith(":") ? "" : " ");
    this.page.setQuery($("query").value);
    this.complete();
  }

  key(event) {
    const isOpen = !$("choices").hidden && this.choices?.length;
    if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.choice = (this.choice + (event.key === "ArrowDown" ? 1 : -1) + this.choices.length) % this.choices.length;
      [...$("choices").children].forEach((node, place) => node.setAttribute("aria-selected", place === this.choice));
      $("query").setAttribute("aria-activedescendant", `choice-${this.choice}`);
    } else if (isOpen && event.key === "Tab" && !event.shiftKey) {
      event.preventDefault();
      this.take(Math.max(0, this.choice));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (isOpen && this.choice >= 0) return this.take(this.choice);
      $("query").blur();
      if (this.page.list.rows[0]) this.page.choose(this.page.list.rows[0], true);
    }
  }
}
