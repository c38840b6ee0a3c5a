"""Answer what a server asks while it works: here, a form for the user."""

import asyncio

import holdfast
from holdfast.types import AnyElicitation


def answer(question: AnyElicitation) -> dict[str, object]:
    print("The server asks:", question.message)
    return {"action": "accept", "content": {"name": "Ada"}}


async def main() -> None:
    handlers = holdfast.Handlers(elicitation=answer)
    async with holdfast.connect("python -m holdfast.demo.server", handlers=handlers) as client:
        print((await client.call_tool("ask_name")).text)


if __name__ == "__main__":
    asyncio.run(main())
