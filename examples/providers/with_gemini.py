"""An agent on Google's Gemini API: ``pip install google-genai``, and set GEMINI_API_KEY."""

import asyncio
from typing import Any

from google import genai

from holdfast import Servers

MODEL = "gemini-2.5-flash"


async def main() -> None:
    model = genai.Client().aio.models
    contents: list[Any] = [{"role": "user", "parts": [{"text": "What is 2 + 40?"}]}]
    async with Servers({"demo": "python -m holdfast.demo.server"}) as servers:
        toolset = await servers.toolset("gemini")
        config = {"tools": [{"function_declarations": toolset.definitions}]}
        while True:
            answer = await model.generate_content(model=MODEL, contents=contents, config=config)
            content = answer.candidates[0].content
            contents.append(content)
            calls = [part for part in content.parts if part.function_call]
            if not calls:
                break
            results = [(await servers.perform(toolset, call)).message for call in calls]
            contents.append({"role": "user", "parts": results})
    print(answer.text)


if __name__ == "__main__":
    asyncio.run(main())
