// The reference requester of tasks (npm @modelcontextprotocol/ext-tasks): calls a tool as a task,
// at the URL and in the revision that it is given, and prints the result.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createTaskSessionFromClient,
  resultFromTaskOutcome,
} from "@modelcontextprotocol/ext-tasks/client";

const [url, version] = process.argv.slice(2);
const info = { name: "reference", version: "1" };
const stateless = version === "2026-07-28";
const negotiation = stateless ? { versionNegotiation: { mode: { pin: version } } } : {};
const client = new Client(info, negotiation);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

let count = 1000;
async function rawDispatch(request) {
  const named = request.params.taskId ?? request.params.name;
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": version,
      "Mcp-Method": request.method,
      ...(named === undefined ? {} : { "Mcp-Name": named }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++count, ...request }),
  });
  const text = await answer.text();
  const data = text.startsWith("{") ? text : /^data: (.*)$/m.exec(text)[1];
  const { result, error } = JSON.parse(data);
  return error === undefined ? { kind: "result", result } : { kind: "error", error };
}

const framing = { protocolVersion: version, clientInfo: info, clientCapabilities: {} };
const session = createTaskSessionFromClient(client, {
  endpointId: "shop",
  ...(stateless ? { rawDispatch, v2RequestFraming: framing } : {}),
});
const preference = stateless ? "allow" : "require";
const execution = await session.callTool("build", { target: "all" }, { task: { preference } });
const { outcome } = await execution.settle();
console.log(JSON.stringify({ kind: execution.kind, result: resultFromTaskOutcome(outcome) }));
await session.close();
await client.close();
