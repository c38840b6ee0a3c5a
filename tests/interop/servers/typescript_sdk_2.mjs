// A server built with version 2 of the TypeScript SDK, which speaks both eras.
// The folder that the SDK is installed in comes as the first argument.

import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { McpServer, ResourceTemplate, inputRequired } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { z } = require("zod");

const text = (said) => ({ content: [{ type: "text", text: said }] });

/** Something that happens again and again, and can be waited for. */
class Happening {
  constructor() {
    this.again();
  }
  again() {
    this.news = new Promise((tell) => (this.tell = tell));
  }
  async wait() {
    await this.news;
    this.again();
  }
}

const begun = new Happening();
const ended = new Happening();

function workshop() {
  const server = new McpServer(
    { name: "workshop", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true } } },
  );

  const numbers = z.object({ a: z.number(), b: z.number() });
  server.registerTool("add", { inputSchema: numbers }, async ({ a, b }) => text(String(a + b)));

  server.registerTool("fail", {}, async () => {
    throw new Error("out of order");
  });

  const steps = z.object({ steps: z.number() });
  server.registerTool("count", { inputSchema: steps }, async ({ steps }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progressToken !== undefined && progress <= steps; progress++) {
      const params = { progressToken, progress, total: steps };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    }
    return text("counted");
  });

  // Never answers; `held` waits for it to begin, `released` for it to be cancelled.
  server.registerTool("hold", {}, async (ctx) => {
    begun.tell();
    await new Promise((done) => ctx.mcpReq.signal.addEventListener("abort", done));
    ended.tell();
    return text("never");
  });
  server.registerTool("held", {}, async () => {
    await begun.wait();
    return text("held");
  });
  server.registerTool("released", {}, async () => {
    await ended.wait();
    return text("released");
  });

  const form = {
    type: "object",
    properties: { name: { type: "string" } },
    required: ["name"],
  };
  server.registerTool("ask", {}, async (ctx) => {
    const answer = ctx.mcpReq.inputResponses?.who;
    if (answer !== undefined) return text(`hello ${answer.content.name}`);
    const who = inputRequired.elicit({ message: "Who is there?", requestedSchema: form });
    return inputRequired({ inputRequests: { who } });
  });

  server.registerTool("sample", {}, async (ctx) => {
    const answer = ctx.mcpReq.inputResponses?.model;
    if (answer !== undefined) return text(answer.content.text);
    const messages = [{ role: "user", content: { type: "text", text: "capital?" } }];
    const model = inputRequired.createMessage({ messages, maxTokens: 10 });
    return inputRequired({ inputRequests: { model } });
  });
  server.registerTool("roots", {}, async (ctx) => {
    const answer = ctx.mcpReq.inputResponses?.places;
    if (answer !== undefined) return text(answer.roots.map((root) => root.uri).join(" "));
    return inputRequired({ inputRequests: { places: inputRequired.listRoots() } });
  });

  const words = z.object({ text: z.string() });
  server.registerTool("say", { inputSchema: words }, async (said, ctx) => {
    await ctx.mcpReq.log("info", said.text);
    return text("said");
  });

  const place = z.object({ uri: z.string() });
  server.registerTool("touch", { inputSchema: place }, async ({ uri }) => {
    await server.server.sendResourceUpdated({ uri });
    return text("touched");
  });

  const memo = { mimeType: "text/plain" };
  server.registerResource("memo", "note://memo", memo, async (uri) => ({
    contents: [{ uri: uri.href, text: "remember" }],
  }));
  server.registerResource("some_bytes", "note://bytes", {}, async (uri) => ({
    contents: [{ uri: uri.href, blob: "AP8=" }],
  }));
  const about = new ResourceTemplate("note://about/{topic}", { list: undefined });
  server.registerResource("about", about, {}, async (uri, { topic }) => ({
    contents: [{ uri: uri.href, text: `about ${topic}` }],
  }));

  const greeting = { argsSchema: z.object({ name: z.string() }) };
  server.registerPrompt("greet", greeting, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }],
  }));
  return server;
}

serveStdio(workshop);
