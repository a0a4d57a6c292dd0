"""Checks that the snippets in editors/ are well-formed and start sluice the same way.

python3 .ci/snippets.py

Lua is parsed by Neovim and Lisp by Emacs; here are the formats that Python reads.
"""

import json
import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent / "editors"

# Where a JSON snippet keeps the entry that starts sluice.
ENTRIES = {
    "zed/settings.json": ("agent_servers", "sluice"),
    "jetbrains/acp.json": ("agent_servers", "sluice"),
    "vscode/settings.json": ("acp.agents", "sluice"),
}


def main():
    problems = []
    for path in sorted(ROOT.rglob("*.json")):
        name = path.relative_to(ROOT).as_posix()
        try:
            value = json.loads(path.read_text())
        except ValueError as error:
            problems.append(f"{name}: not JSON: {error}")
            continue
        if name not in ENTRIES:
            problems.append(f"{name}: say in .ci/snippets.py where its entry for sluice is")
            continue
        for key in ENTRIES[name]:
            value = value.get(key, {})
        if pathlib.PurePath(value.get("command", "")).name != "sluice" or value.get("args") != ["acp"]:
            problems.append(f"{name}: the command must be sluice with the arguments [\"acp\"]")
    for name in ENTRIES:
        if not (ROOT / name).is_file():
            problems.append(f"{name}: missing")
    for path in sorted(ROOT.rglob("*.toml")):
        try:
            tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{path.relative_to(ROOT)}: not TOML: {error}")
    for folder in sorted(entry for entry in ROOT.iterdir() if entry.is_dir() and entry.name != "test"):
        if not (folder / "README.md").is_file():
            problems.append(f"{folder.name}: has no README.md")
    print("\n".join(problems) or "snippets: well-formed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
