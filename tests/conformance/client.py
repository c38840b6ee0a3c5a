"""The client that the official conformance suite drives: an application, nothing more.

Started by the suite with the server's URL as its last argument; the scenario and the
revision come in the environment. It uses the public API alone, and exits with 0 only if the
conversation went as an application would want it to.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import aiohttp

import holdfast
from holdfast import DriftError, Handlers, HoldfastError, OAuth, Tool, ToolPolicy
from holdfast.auth import ClientCredentials, EnterpriseManaged, LoginRequest, WorkloadIdentity
from holdfast.stores import MemoryStore

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") or None
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")


def sample(schema: Any) -> Any:
    """Some value that fits a simple schema."""
    if not isinstance(schema, dict):
        return "text"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        names = schema.get("required", [])
        return {name: sample(schema.get("properties", {}).get(name)) for name in names}
    values: dict[Any, Any] = {"number": 1.5, "integer": 2, "boolean": True, "array": []}
    return values.get(kind, "text")


def arguments_for(tool: Tool) -> dict[str, Any]:
    """Arguments for a tool: those that the suite names, else ones that fit its schema."""
    for call in CONTEXT.get("toolCalls", []):
        if call.get("name") == tool.name:
            found: dict[str, Any] = call.get("arguments", {})
            return found
    if tool.name == "add_numbers":
        return {"a": 5, "b": 3}
    fitting: dict[str, Any] = sample({"type": "object", **tool.input_schema})
    return fitting


async def answer_form(request: Any) -> dict[str, Any]:
    """Accept a form as it stands: what the server gave as defaults is filled in for us."""
    return {"action": "accept", "content": {}}


async def log_in(request: LoginRequest) -> str:
    """Play the browser: the suite's authorization servers redirect at once."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(request.url, allow_redirects=False) as response,
    ):
        return response.headers["Location"]


def authorization() -> Any:
    """What a user of the server in this scenario would give as ``auth``."""
    if not SCENARIO.startswith("auth/"):
        return "auto"
    if "private_key_pem" in CONTEXT:
        return ClientCredentials(
            client_id=CONTEXT["client_id"],
            private_key=CONTEXT["private_key_pem"],
            algorithm=CONTEXT["signing_algorithm"],
        )
    if "idp_id_token" in CONTEXT:
        return EnterpriseManaged(
            idp_issuer=CONTEXT["idp_issuer"],
            idp_client_id=CONTEXT["idp_client_id"],
            id_token=CONTEXT["idp_id_token"],
            client_id=CONTEXT["client_id"],
            client_secret=CONTEXT["client_secret"],
        )
    if "valid_jwt" in CONTEXT:
        return WorkloadIdentity(
            client_id=CONTEXT["client_id"], token=lambda: str(CONTEXT["valid_jwt"])
        )
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentials(
            client_id=CONTEXT["client_id"], client_secret=CONTEXT["client_secret"]
        )
    return OAuth(
        client_id=CONTEXT.get("client_id"),
        client_secret=CONTEXT.get("client_secret"),
        client_metadata_url="https://conformance-test.local/client-metadata.json",
        store=MemoryStore(),
    )


async def talk(url: str) -> None:
    handlers = Handlers(elicitation=answer_form, login=log_in)
    # The suite calls tools with arguments that their own schemas do not allow.
    unchecked = ToolPolicy(validate="off")
    async with holdfast.connect(
        url, protocol=VERSION, handlers=handlers, tools=unchecked, auth=authorization()
    ) as client:
        await client.open()
        capabilities = client.server_capabilities
        tools: list[Tool] = []
        if capabilities is None or capabilities.tools is not None:
            tools = await client.list_tools()
        await SCENARIOS.get(SCENARIO, use_everything)(client, tools)


async def use_everything(client: holdfast.Client, tools: list[Tool]) -> None:
    """Call every tool, or those that the suite names; read every resource and prompt."""
    for call in CONTEXT.get("toolCalls", []):
        await client.call_tool(call["name"], call.get("arguments"))
    if not CONTEXT.get("toolCalls"):
        for tool in tools:
            await client.call_tool(tool.name, arguments_for(tool))
    capabilities = client.server_capabilities
    if capabilities is not None and capabilities.resources is not None:
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
    if capabilities is not None and capabilities.prompts is not None:
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt.name)


async def only_list(client: holdfast.Client, tools: list[Tool]) -> None:
    """The server of this scenario has nothing to call: what counts is how the list is read."""
    if not tools:
        raise HoldfastError("no tools were listed")


async def echo_schemas(client: holdfast.Client, tools: list[Tool]) -> None:
    """Send the schema of one tool to the other, as it was read."""
    by_name = {tool.name: tool for tool in tools}
    schema = by_name["json_schema_2020_12_tool"].input_schema
    await client.call_tool("json_schema_echo", {"schema": schema})


async def only_list_skills(client: holdfast.Client, tools: list[Tool]) -> None:
    """Look at the skills and load none."""
    if not await client.list_skills():
        raise HoldfastError("no skills were listed")


async def load_skills(client: holdfast.Client, tools: list[Tool]) -> None:
    """Load every skill and read all of its files; the suite's skills are not what they claim."""
    refused = 0
    for skill in await client.list_skills():
        try:
            await client.read_skill(skill)
            for path in skill.files:
                await client.read_skill(skill, path)
        except DriftError as error:
            print(error, file=sys.stderr)
            refused += 1
    if not refused:
        raise HoldfastError("no skill was refused")


SCENARIOS = {
    "sep-2640-client-no-prefetch": only_list_skills,
    "sep-2640-client-verify-digest": load_skills,
    "sep-2640-client-verify-size": load_skills,
    "sep-2640-client-verify-frontmatter": load_skills,
    "json-schema-ref-no-deref": only_list,
    "json-schema-2020-12-preservation": echo_schemas,
}


def main() -> int:
    try:
        asyncio.run(talk(sys.argv[-1]))
    except HoldfastError as error:
        print(f"{SCENARIO}: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
