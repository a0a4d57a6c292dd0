"""An MCP server made with the Python SDK that others wrote: on standard streams, or with a port over HTTP."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

server = MCPServer("sdk")


class Name(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no luck")


@server.tool()
async def ask(context: Context) -> str:
    """Asks the user."""
    answer = await context.elicit("Who?", Name)
    return "ELICITED " + answer.action


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
