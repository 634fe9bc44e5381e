"""Drives the official Python client: see driven-client.ts for what is said on standard input and output."""

import asyncio
import json
import sys
from typing import Any

from mcp.client import Client


def say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def describe(error: BaseException) -> dict[str, Any]:
    """An exception group has the cause in it; an MCP error has code and data."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    inner = getattr(error, "error", None)
    said: dict[str, Any] = {"text": f"{type(error).__name__}: {error}"}
    if inner is not None:
        said["code"] = getattr(inner, "code", None)
        said["data"] = getattr(inner, "data", None)
    return said


async def call(client: Client, asked: dict[str, Any]) -> None:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        say({"id": asked["id"], "progress": progress})

    try:
        result = await client.call_tool(asked["tool"], asked["arguments"], progress_callback=on_progress)
        text = "\n".join(getattr(part, "text", "") for part in result.content)
        say({"id": asked["id"], "error": {"text": text}} if result.is_error else {"id": asked["id"], "ok": {"text": text}})
    except BaseException as error:  # noqa: BLE001: whatever it is, it is what the caller of the client sees
        say({"id": asked["id"], "error": describe(error)})
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
            raise


async def main() -> None:
    reader = asyncio.StreamReader(limit=2**22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    first = json.loads(await reader.readline())
    try:
        async with Client(first["url"]) as client:
            say({"id": first["id"], "ok": {"text": ""}})
            calls: set[asyncio.Task[None]] = set()
            while line := await reader.readline():
                task = asyncio.create_task(call(client, json.loads(line)))
                calls.add(task)
                task.add_done_callback(calls.discard)
            for task in calls:
                task.cancel()
    except BaseException as error:  # noqa: BLE001
        say({"id": first["id"], "error": describe(error)})
        raise


asyncio.run(main())
