"""A conversation with `sluice acp` through the Python SDK, a client that others wrote.

python editors/test/python_sdk.py

The command is the one of Zed's snippet. The model is a script that writes a file and then says so; the question for
permission is answered with the first option that allows once. Every answer passes the SDK's own validation.
"""

import asyncio
import json
import pathlib
import tempfile

import acp
from acp import schema

SNIPPET = pathlib.Path(__file__).parent.parent / "zed" / "settings.json"


class Editor(acp.Client):
    def __init__(self):
        self.text = ""
        self.asked = 0

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **kwargs):
        if isinstance(update, schema.AgentMessageChunk):
            self.text += update.content.text

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked += 1
        allow = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=allow.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)


async def converse(folder: pathlib.Path):
    server = json.loads(SNIPPET.read_text())["agent_servers"]["sluice"]
    workspace = folder / "workspace"
    workspace.mkdir()
    target = workspace / "made.txt"
    script = folder / "script.json"
    write = {"name": "Write", "input": {"file_path": str(target), "content": "made by a tool\n"}}
    script.write_text(json.dumps({"steps": [{"tool_calls": [write]}, {"text": "The file is there."}]}))

    editor = Editor()
    arguments = [*server["args"], "--model", f"script:{script}"]
    started = acp.spawn_agent_process(lambda _agent: editor, server["command"], *arguments, cwd=workspace)
    async with started as (agent, process):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert hello.protocol_version == acp.PROTOCOL_VERSION, hello
        session = await agent.new_session(cwd=str(workspace), mcp_servers=[])
        ending = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("make the file")])
        assert ending.stop_reason == "end_turn", ending
    assert "The file is there." in editor.text, editor.text
    assert editor.asked == 1, f"asked for permission {editor.asked} times, not once"
    assert target.read_text() == "made by a tool\n"
    assert process.returncode == 0, f"after the end of its input sluice exited with {process.returncode}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(asyncio.wait_for(converse(pathlib.Path(folder)), timeout=120))
    print("python sdk: held a conversation")


if __name__ == "__main__":
    main()
