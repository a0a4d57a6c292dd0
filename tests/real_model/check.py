"""Turns with a real language model, in both dialects and through both front ends.

python3 check.py SLUICE PACKAGES

Starts the server of serve.py and lets SLUICE, as `run` and as `acp`, talk to it in OpenAI's and in Anthropic's dialect.
Each turn has to run a tool, give its result back and end by itself; what the model says is its own business.
"""

import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time

PROMPT = "Run the command: echo three"
START_SECONDS, TURN_SECONDS = 120, 240


def lines(stream):
    """The lines of a stream as they come; None is its end."""
    taken = queue.Queue()

    def read():
        for line in stream:
            taken.put(line)
        taken.put(None)

    threading.Thread(target=read, daemon=True).start()
    return taken


def environment(home, address):
    folder = home / ".config" / "sluice"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'[providers.chat]\nkind = "openai"\nbase_url = "{address}/v1"\n'
        f'[providers.messages]\nkind = "anthropic"\nbase_url = "{address}"\n'
        "[limits]\nmax_output_tokens = 128\n"
    )
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home)}


def check_log(home, before):
    """What a turn left in the log: at least one call, one result for each, and an end by itself."""
    logs = set((home / ".local/state/sluice/sessions").glob("*.jsonl")) - before
    assert len(logs) == 1, logs
    events = [json.loads(line) for line in logs.pop().read_text().splitlines()]
    kinds = [event["type"] for event in events]
    calls, results = kinds.count("tool/call"), kinds.count("tool/result")
    assert calls >= 1, f"the model called no tool: {kinds}"
    assert calls == results, f"{calls} calls have {results} results"
    for event in events:
        if event["type"] == "tool/result":
            assert not event["data"]["is_error"], event
    assert kinds.count("turn/end") == 1, kinds
    assert kinds.count("request/sent") >= 2, f"the result did not go back: {kinds}"


def headless(sluice, model, env, workspace):
    command = [sluice, "run", PROMPT, "--model", model, "--output-format", "json"]
    done = subprocess.run(
        command, cwd=workspace, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TURN_SECONDS
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    result = json.loads(done.stdout)
    assert result["subtype"] == "success" and result["terminal_reason"] == "completed", result
    assert result["usage"]["output_tokens"] > 0, result
    assert not result["permission_denials"], result


def over_acp(sluice, model, env, workspace):
    command = [sluice, "acp", "--model", model]
    agent = subprocess.Popen(
        command, cwd=workspace, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        came = lines(agent.stdout)
        updates = []

        def ask(number, method, params):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            agent.stdin.write(json.dumps(message) + "\n")
            agent.stdin.flush()
            deadline = time.monotonic() + TURN_SECONDS
            while True:
                line = came.get(timeout=max(0.1, deadline - time.monotonic()))
                assert line is not None, "sluice went away"
                message = json.loads(line)
                if message.get("id") == number and "method" not in message:
                    assert "result" in message, message
                    return message["result"]
                if message.get("method") == "session/update":
                    updates.append(message["params"]["update"])

        ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        session = ask(2, "session/new", {"cwd": str(workspace), "mcpServers": []})["sessionId"]
        prompt = [{"type": "text", "text": PROMPT}]
        ending = ask(3, "session/prompt", {"sessionId": session, "prompt": prompt})
        assert ending["stopReason"] == "end_turn", ending
        kinds = [update["sessionUpdate"] for update in updates]
        assert "tool_call" in kinds, kinds
        done = [update for update in updates if update.get("status") == "completed"]
        assert done, f"no tool call was completed: {updates}"
        agent.stdin.close()
        assert agent.wait(timeout=60) == 0, f"sluice acp ended with {agent.returncode}"
    finally:
        agent.kill()
        agent.wait()


def main():
    sluice, packages = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:3])
    launcher = str(pathlib.Path(__file__).with_name("serve.py"))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        server = subprocess.Popen(
            [sys.executable, launcher, packages], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        )
        try:
            try:
                address = lines(server.stdout).get(timeout=START_SECONDS)
                assert address, "the server went away"
            except Exception:
                said.seek(0)
                print(said.read().decode(errors="replace")[-4000:])
                raise
            home, workspace = pathlib.Path(folder, "home"), pathlib.Path(folder, "workspace")
            workspace.mkdir()
            env = environment(home, address.strip())
            for front_end in (headless, over_acp):
                for dialect in ("chat", "messages"):
                    started = time.monotonic()
                    before = set((home / ".local/state/sluice/sessions").glob("*.jsonl"))
                    front_end(sluice, f"{dialect}/smollm2", env, workspace)
                    check_log(home, before)
                    print(f"{front_end.__name__}, {dialect}: ok, {time.monotonic() - started:.1f} s", flush=True)
        finally:
            server.stdin.close()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


if __name__ == "__main__":
    main()
