"""An agent on OpenAI's Chat Completions: ``pip install openai``, and set OPENAI_API_KEY."""

import asyncio
from typing import Any

from openai import AsyncOpenAI

from holdfast import Servers

MODEL = "gpt-5"


async def main() -> None:
    model = AsyncOpenAI()
    messages: list[Any] = [{"role": "user", "content": "What is 2 + 40?"}]
    async with Servers({"demo": "python -m holdfast.demo.server"}) as servers:
        toolset = await servers.toolset("openai")
        while True:
            answer = await model.chat.completions.create(
                model=MODEL, tools=toolset.definitions, messages=messages
            )
            message = answer.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                break
            calls = message.tool_calls
            messages += [(await servers.perform(toolset, call)).message for call in calls]
    print(message.content)


if __name__ == "__main__":
    asyncio.run(main())
