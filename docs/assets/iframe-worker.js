// Search runs in a worker, and browsers start none for pages that are opened as files:
// there a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inner = frame.contentWindow
      this.inner.postMessage = data => {
        const message = new MessageEvent("message", { data })
        this.onmessage?.(message)
        this.dispatchEvent(message)
      }
      const script = this.inner.document.createElement("script")
      this.started = new Promise(resolve => script.addEventListener("load", resolve))
      script.src = url
      this.inner.document.body.append(script)
    }

    postMessage(data) {
      const inner = this.inner
      this.started.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
    }
  }
}
