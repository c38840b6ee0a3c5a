/* A page from a file: everything is there. */
Trace.fromPage().then(trace => {
  // A run that has ended waits for nothing.
  SIGNS.pending.words = "no answer";
  const page = new Page(trace);
  page.recall();
  requestAnimationFrame(() => performance.mark("ready"));
  document.body.dataset.ready = "true";
}).catch(error => {
  document.body.replaceChildren(el("div", "empty", el("b", "", "This page cannot be shown"), String(error)));
});
