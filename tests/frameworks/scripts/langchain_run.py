"""LangChain and LangGraph, with a scripted chat model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient

import holdfast
from tests.frameworks.scripts.story import (
    NAMED,
    Once,
    cancelled,
    connect,
    main,
    measure,
    server,
    snippet,
    tell,
)


class Model(GenericFakeChatModel):  # type: ignore[misc, unused-ignore]
    """A chat model that does what the script says."""

    script: Any

    def bind_tools(self, tools: Any, **options: Any) -> Model:
        return self

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        call = self.script.next(last.text if isinstance(last, ToolMessage) else None)
        calls = (
            [] if call is None else [{"name": call[0], "args": call[1], "id": str(len(messages))}]
        )
        message = AIMessage("done" if call is None else "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def model(script: Any) -> Model:
    return Model(messages=iter(()), script=script)


async def run(tools: Any, script: Any) -> Any:
    agent = create_agent(model(script), tools)
    return await agent.ainvoke({"messages": [("user", "record all steps")]})


async def parts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with connect(folder / "ours") as client:
        tools = await holdfast.langchain.tools(client)
        found["holdfast"] = await tell(lambda script: run(tools, script), folder / "ours")
        by_name = {tool.name: tool for tool in tools}
        found["holdfast"]["seconds"] = await measure(lambda: by_name["recorded"].ainvoke({}))
        for name in ("picture", "recorded", "refuse", "record"):
            ended = await run(tools, Once(name))
            found[name] = ended["messages"][-2].model_dump(mode="json")
        ended = await run(tools, Once("named", **NAMED))
        found["named"] = ended["messages"][-2].content
        found["plain"] = await by_name["refuse"].ainvoke({})
        found["schema"] = by_name["record"].tool_call_schema
        found["cancelled"] = await cancelled(lambda: run(tools, Once("wait")), folder / "ours")
    async with holdfast.Servers({"a": server(folder / "a"), "b": ["no-such-program"]}) as servers:
        found["many"] = [tool.name for tool in await holdfast.langchain.tools(servers)]

    async with holdfast.connect([*server(folder / "odd"), "--odd"]) as client:
        odd = await holdfast.langchain.tools(client)
        found["odd"] = [convert_to_openai_tool(tool)["function"]["name"] for tool in odd]

    with holdfast.sync.connect(server(folder / "sync")) as plain:
        agent = create_agent(model(Once("refuse")), holdfast.langchain.sync_tools(plain))
        ended = agent.invoke({"messages": [("user", "record all steps")]})
        found["sync"] = ended["messages"][-2].model_dump(mode="json")

    names = {"create_agent": create_agent, "model": model(Once("recorded"))}
    shown = await snippet("langchain.md", folder, names)
    found["snippet"] = shown["messages"][-2].content

    command, *words = server(folder / "native")
    connection = {"transport": "stdio", "command": command, "args": words}
    native = MultiServerMCPClient({"ledger": connection})
    tools = await native.get_tools()
    found["native"] = await tell(lambda script: run(tools, script), folder / "native")
    (reading,) = [tool for tool in tools if tool.name == "recorded"]
    found["native"]["seconds"] = await measure(lambda: reading.ainvoke({}))
    return found


if __name__ == "__main__":
    main(parts)
