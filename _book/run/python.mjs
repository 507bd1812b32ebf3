// Python in a thread of the page. It is fetched at the first run; stopping ends the thread, and the next run starts a new one.

const BROKE = "Python itself broke, and all variables are gone; the next run starts afresh.\n";

export class Python {
  /** base: the address of the folder `run`. version: of the book. onStart(again): called when Python starts. */
  constructor(base, version, onStart) {
    Object.assign(this, { base, version, onStart, worker: null, ready: null, waiting: new Map(), sent: 0 });
  }

  /** Run a cell; onBegin is called when Python is there, outputs go to onOutputs as they come. Resolves to "ok", "error", "stopped" or "broke"; rejects where Python cannot start. */
  async run(number, source, onBegin, onOutputs) {
    const ready = (this.ready ??= this.start());
    await ready;
    if (this.ready !== ready) return "stopped";
    onBegin();
    return new Promise((resolve) => {
      this.waiting.set(++this.sent, { onOutputs, resolve });
      this.worker.postMessage({ id: this.sent, number, source });
    });
  }

  start() {
    this.onStart(this.again);
    const worker = new Worker(new URL(`worker.mjs?v=${this.version}`, this.base), { type: "module" });
    this.worker = worker;
    return new Promise((resolve, reject) => {
      this.abandon = resolve;
      const fail = (reason) => {
        worker.terminate();
        if (this.worker === worker) this.ready = null; // the next run tries again
        reject(new Error(reason));
      };
      worker.onerror = (event) => fail(event.message || "its files could not be fetched");
      worker.onmessage = ({ data }) => {
        if (data.ready) resolve((this.again = true));
        else if (data.broken) fail(data.broken);
        else this.hear(data);
      };
    });
  }

  hear({ id, outputs, done, ok, broke }) {
    const run = this.waiting.get(id);
    if (outputs) run.onOutputs(outputs);
    if (broke) run.onOutputs([{ output_type: "stream", name: "stderr", text: BROKE }]);
    if (!done) return;
    this.waiting.delete(id);
    run.resolve(broke ? "broke" : ok ? "ok" : "error");
    if (broke) this.stop();
  }

  /** End whatever runs; all variables are gone. */
  stop() {
    this.worker?.terminate();
    this.worker = this.ready = null;
    this.abandon?.(); // a start that has not come to its end
    for (const run of this.waiting.values()) run.resolve("stopped");
    this.waiting.clear();
  }
}
