"""A small MCP server on standard streams, or with `http` as the first argument on a loopback port.

It speaks by hand, so that it can also speak badly. The first argument says how:

  good             as it should
  odd              the same, with tools that nobody can use
  banner           prints words on stdout before and between messages
  mute             never answers
  garbage          prints lines that are no messages, and never answers
  dies             says why on stderr and exits with 3
  dies-in-call     exits in every call of `put`, until the file named by the second argument is there; makes it first
  half             prints half an answer in a call of `put` and exits
  huge             answers a call of `put` with a line of 40 MB
  stubborn         ignores the end of its input, and TERM
  grows            has one more tool after each call of `put`, and says so; makes the file named by the second argument
                   when it is asked for its tools after that
  http PORT_FILE   serves streamable HTTP with JSON answers, and writes its port into the file
"""

import json
import os
import signal
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
OBJECT = {"type": "object"}
TOOLS = [
    {
        "name": "put",
        "description": "Says what it was given.",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "list-issues", "description": "Lists nothing.", "inputSchema": OBJECT},
    {"name": "fail", "description": "Fails.", "inputSchema": OBJECT},
    {"name": "refuse", "description": "Answers with an error of the protocol.", "inputSchema": OBJECT},
    {"name": "plain", "description": "Gives text alone.", "inputSchema": OBJECT},
    {"name": "picture", "description": "Gives several kinds of content.", "inputSchema": OBJECT},
    {"name": "wait", "description": "Never comes to an end.", "inputSchema": OBJECT},
    {"name": "variable", "description": "Gives a variable.", "inputSchema": OBJECT},
    {"name": "ask", "description": "Asks the user.", "inputSchema": OBJECT},
]
if MODE == "odd":
    TOOLS += [
        {"name": "broken", "description": "Has a schema that is none.", "inputSchema": {"type": "nonsense"}},
        {"name": "shapeless", "description": "Says nothing of its arguments."},
        {"name": "a.b", "description": "One of two with the same plain name.", "inputSchema": OBJECT},
        {"name": "a/b", "description": "The other one.", "inputSchema": OBJECT},
    ]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def text(words):
    return {"type": "text", "text": words}


def called(name, arguments):
    """The result of a call, or None where there is none."""
    if name == "put":
        return {"content": [text("ECHO:" + json.dumps(arguments))], "structuredContent": {"k": 1}}
    if name == "plain":
        return {"content": [text("PLAIN:" + json.dumps(arguments))]}
    if name == "fail":
        return {"content": [text("no luck")], "isError": True}
    if name == "variable":
        return {"content": [text(repr(os.environ.get(arguments.get("name", ""))))]}
    if name == "picture":
        inside = {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}
        image = {"type": "image", "mimeType": "image/png", "data": PIXEL}
        return {"content": [text("look"), image, {"type": "resource", "resource": inside}]}
    if name in ("list-issues", "a.b", "a/b"):
        return {"content": [text("none")]}
    return None


def answer(message):
    """The answer to a request."""
    method, params = message["method"], message.get("params") or {}
    result = error = None
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "box", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
        if MODE == "grows" and len(sys.argv) > 2 and TOOLS[-1]["name"].startswith("more"):
            open(sys.argv[2], "w").close()
    elif method == "ping":
        result = {}
    elif method == "tools/call":
        result = called(params["name"], params.get("arguments") or {})
        if result is None:
            error = {"code": -32602, "message": "not by me" + os.environ.get("BOX_TOKEN", "")}
    else:
        error = {"code": -32601, "message": "no such method"}
    body = {"error": error} if error else {"result": result}
    return {"jsonrpc": "2.0", "id": message["id"], **body}


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def calls_put(message):
    return message.get("method") == "tools/call" and message["params"]["name"] == "put"


def misbehave(message):
    """What a bad server does with a call instead of answering it; true when it has done so."""
    if MODE == "dies-in-call" and not os.path.exists(sys.argv[2]):
        open(sys.argv[2], "w").close()
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(4)
    if MODE == "half":
        sys.stdout.write('{"jsonrpc":"2.0","id":')
        sys.stdout.flush()
        os._exit(0)
    if MODE == "huge":
        result = {"content": [text("a" * 40_000_000)]}
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return True
    if MODE == "grows":
        TOOLS.append({"name": "more%d" % len(TOOLS), "inputSchema": OBJECT})
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return False


def streams():
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "dies":
        print("no licence for this box", file=sys.stderr, flush=True)
        sys.exit(3)
    if MODE in ("banner", "garbage"):
        print("Welcome to the box!\nEnjoy.", flush=True)
    asking = {}
    for line in sys.stdin:
        message = json.loads(line)
        if MODE == "banner":
            print("[debug] got a message", flush=True)
        if MODE == "garbage":
            print("still here", flush=True)
        if MODE in ("mute", "garbage"):
            continue
        if message.get("id") in asking and "method" not in message:
            action = message.get("result", {}).get("action")
            send({"jsonrpc": "2.0", "id": asking.pop(message["id"]), "result": {"content": [text("ELICITED " + str(action))]}})
            continue
        if "id" not in message or "method" not in message:
            if message.get("method") == "notifications/cancelled" and len(sys.argv) > 2:
                open(sys.argv[2], "w").close()
            continue
        if calls_put(message) and misbehave(message):
            continue
        tool = message["params"].get("name") if message["method"] == "tools/call" else None
        if tool == "wait":
            continue
        if tool == "ask":
            asking["q1"] = message["id"]
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
            continue
        send(answer(message))
    while MODE == "stubborn":
        time.sleep(60)


def http(port_file):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, status, body=b"", kind="application/json"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply(405)

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers.get("X-Key") != "open sesame":
                self.reply(401, b"who are you with X-Key: " + (self.headers.get("X-Key") or "").encode(), "text/plain")
            elif "id" not in message:
                self.reply(202)
            else:
                if message["method"] == "tools/call" and message["params"]["name"] == "wait":
                    time.sleep(600)
                self.reply(200, json.dumps(answer(message)).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with open(port_file + ".new", "w") as file:
        file.write(str(server.server_port))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


if MODE == "http":
    http(sys.argv[2])
else:
    streams()
