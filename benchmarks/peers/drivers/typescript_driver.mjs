// The TypeScript client, with its defaults: the orders of base.py, carried out in Node.js.
// Arguments: the folder that the client is installed in, then serve | import | cold TARGET.

import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [home, order, ...rest] = process.argv.slice(2);
const package_ = join(home, "node_modules", "@modelcontextprotocol", "client", "dist");
const part = (name) => import(pathToFileURL(join(package_, name)).href);

const started = performance.now();
const { Client, StreamableHTTPClientTransport } = await part("index.mjs");
const { StdioClientTransport } = await part("stdio.mjs");
if (order === "import") {
  console.log((performance.now() - started) / 1000);
  process.exit(0);
}

const HELLO = { text: "hello, world" };
const WARM = 0.15;

class Session {
  async open(target) {
    this.client = new Client({ name: "bench", version: "1.0" });
    const transport =
      typeof target === "string"
        ? new StreamableHTTPClientTransport(new URL(target))
        : new StdioClientTransport({ command: target[0], args: target.slice(1) });
    await this.client.connect(transport);
  }
  async close() {
    await this.client.close();
  }
  async tools() {
    return (await this.client.listTools()).tools.length;
  }
  async call(name, args, timeout) {
    const options = timeout == null ? undefined : { timeout: timeout * 1000 };
    const result = await this.client.callTool({ name, arguments: args }, options);
    return result.content[0].text;
  }
  revision() {
    return String(this.client.getNegotiatedProtocolVersion());
  }
}

// -- the work that is timed: as in base.py

const now = () => performance.now() / 1000;

async function repeated(once, seconds, least = 3) {
  const ends = now() + Math.min(WARM, seconds);
  await once();
  while (now() < ends) await once();
  globalThis.gc?.();
  const began = now();
  for (let done = 1; ; done++) {
    await once();
    const spent = now() - began;
    if (spent >= seconds && done >= least) return spent / done;
  }
}

function check(right) {
  if (!right) throw new Error("wrong answer");
}

async function calls({ target, width, seconds }) {
  const session = new Session();
  await session.open(target);
  const oneByOne = async () => {
    for (let i = 0; i < 10; i++) check((await session.call("echo", HELLO)) === HELLO.text);
  };
  const atOnce = async () => {
    const every = Array.from({ length: width }, () => session.call("echo", HELLO));
    check((await Promise.all(every)).every((text) => text === HELLO.text));
  };
  const took = await repeated(width === 1 ? oneByOne : atOnce, seconds);
  await session.close();
  return took / (width === 1 ? 10 : width);
}

async function blob({ target, size, seconds }) {
  const session = new Session();
  await session.open(target);
  const once = async () => check((await session.call("blob", { size })).length === size);
  const took = await repeated(once, seconds);
  await session.close();
  return took;
}

async function connect({ target, tools, seconds }) {
  return await repeated(async () => {
    const session = new Session();
    await session.open(target);
    check((await session.tools()) === tools);
    await session.close();
  }, seconds);
}

async function memory({ target, first, connections }) {
  const sessions = [];
  const open = async (count) => {
    for (let i = 0; i < count; i++) {
      const session = new Session();
      await session.open(target);
      await session.call("echo", HELLO);
      sessions.push(session);
    }
    globalThis.gc?.();
    globalThis.gc?.();
    return process.memoryUsage.rss();
  };
  const before = await open(first);
  const after = await open(connections);
  return Math.max(after - before, 0) / connections;
}

const WORKS = { calls, blob, connect, memory };

// -- orders

let session;

async function carryOut(order) {
  switch (order.do) {
    case "measure":
      return await WORKS[order.work](order);
    case "open":
      session = new Session();
      await session.open(order.target);
      return session.revision();
    case "call": {
      const text = await session.call(order.tool, { text: "x".repeat(order.size ?? 5) }, order.timeout);
      return text.length;
    }
    case "give up": // a promise that nobody waits for is in nobody's way
      return null;
    case "close":
      await session.close();
      return null;
  }
}

async function answer(order) {
  const began = now();
  let said;
  try {
    said = { ok: await carryOut(order) };
  } catch (error) {
    const type = error?.constructor?.name ?? typeof error;
    said = { error: { type: error?.code ? `${type}(${error.code})` : type, message: String(error?.message ?? error).slice(0, 300) } };
  }
  const seconds = Math.round((now() - began) * 1e6) / 1e6;
  process.stdout.write(JSON.stringify({ id: order.id, seconds, ...said }) + "\n");
}

if (order === "serve") {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => void answer(JSON.parse(line)));
  lines.on("close", () => process.exit(0));
} else if (order === "cold") {
  session = new Session();
  await session.open(JSON.parse(rest[0]));
  check((await session.call("echo", HELLO)) === HELLO.text);
  await session.close();
}
