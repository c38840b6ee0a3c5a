"""An agent on Anthropic's Messages API: ``pip install anthropic``, and set ANTHROPIC_API_KEY."""

import asyncio
from typing import Any

from anthropic import AsyncAnthropic

from holdfast import Servers

MODEL = "claude-sonnet-4-5"


async def main() -> None:
    model = AsyncAnthropic()
    messages: list[Any] = [{"role": "user", "content": "What is 2 + 40?"}]
    async with Servers({"demo": "python -m holdfast.demo.server"}) as servers:
        toolset = await servers.toolset("anthropic")
        while True:
            answer = await model.messages.create(
                model=MODEL, max_tokens=1000, tools=toolset.definitions, messages=messages
            )
            messages.append({"role": "assistant", "content": answer.content})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                break
            results = [(await servers.perform(toolset, call)).message for call in calls]
            messages.append({"role": "user", "content": results})
    print(answer.content[-1].text)


if __name__ == "__main__":
    asyncio.run(main())
