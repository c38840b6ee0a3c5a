"""A tool-using agent in one loop. `ask_model` stands for your provider's library."""

import asyncio
from typing import Any

from holdfast import Servers


def ask_model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer as a model would: ask for one call, then read its result."""
    if len(messages) == 1:
        call = {"type": "tool_use", "id": "1", "name": "demo__add", "input": {"a": 2, "b": 40}}
        return {"role": "assistant", "content": [call]}
    return {"role": "assistant", "content": f"The server says {messages[-1]['content'][0]}"}


async def main() -> None:
    async with Servers({"demo": "python -m holdfast.demo.server"}) as servers:
        toolset = await servers.toolset("anthropic")
        messages: list[dict[str, Any]] = [{"role": "user", "content": "What is 2 + 40?"}]
        while True:
            answer = ask_model(messages, toolset.definitions)
            messages.append(answer)
            if isinstance(answer["content"], str):
                break
            results = [(await servers.perform(toolset, one)).message for one in answer["content"]]
            messages.append({"role": "user", "content": results})
        print(messages[-1]["content"])


if __name__ == "__main__":
    asyncio.run(main())
