/* What servers ask the person in front of the page: a form, an address to visit, a model's words. */
class QuestionCards {
  constructor(page) {
    this.page = page;
    this.cards = new Map();
  }

  /** Show the questions that wait; a card that somebody fills in stays as it is. */
  show(questions) {
    const waiting = new Set(questions.map(question => question.number));
    for (const [number, card] of this.cards) if (!waiting.has(number)) { card.remove(); this.cards.delete(number); }
    for (const question of questions) {
      if (this.cards.has(question.number)) continue;
      const card = this.card(question);
      this.cards.set(question.number, card);
      $("questions").append(card);
    }
    $("questions").hidden = !this.cards.size;
  }

  card(question) {
    const { kind, server, message } = question, titles = { form: "asks", url: "sends you to a page", sampling: "asks for a model's answer" };
    const head = el("h2", "", icon("notification"), el("span", "", el("b", "", ...visible(server, 80)), ` ${titles[kind] || "asks"}`));
    const form = kind === "form" ? new Form(question.schema) : null, words = kind === "sampling" ? input("textarea", "", { rows: 4, placeholder: "the answer", ariaLabel: "The answer" }) : null;
    const fault = el("p", "field-fault");
    fault.hidden = true;
    const answer = async (action, content) => {
      const reply = await this.page.post("answer", { number: question.number, action, content });
      if (reply.faults && form) form.show(reply.faults);
      fault.hidden = !reply.error;
      fault.replaceChildren(...visible(reply.error || "", 400));
    };
    const accept = () => {
      if (kind === "url") return answer("accept", null);
      if (words) return answer("accept", { text: words.value });
      try { answer("accept", form.read()); } catch (error) { form.show({ [error.path ?? ""]: error.message }); }
    };
    const buttons = [button("primary", accept, kind === "url" ? "I was there" : "Answer"), button("", () => answer("decline"), "Decline"), ...(kind === "sampling" ? [] : [button("", () => answer("cancel"), "Cancel")]), ...(form ? [form.toggle] : [])];
    const card = el("article", "question", head, el("p", "asked", ...visible(message, 20_000)), ...(kind === "url" ? [this.address(question.url)] : []), ...(form ? [form.node] : []), ...(words ? [words] : []), fault, el("div", "buttons", ...buttons));
    head.id = `question-${question.number}`;
    card.setAttribute("aria-labelledby", head.id);
    return card;
  }

  /** An address is text; only an ordinary one can be opened, without a way back to this page. */
  address(text) {
    const place = el("p", "address", ...visible(text, 2000));
    let url = null;
    try { url = new URL(text); } catch { /* No address at all. */ }
    if (url && (url.protocol === "https:" || url.protocol === "http:")) place.prepend(el("b", "", ...visible(url.host, 200)), button("", () => window.open(url.href, "_blank", "noopener,noreferrer"), "Open"));
    return place;
  }
}
