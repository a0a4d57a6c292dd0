"""Runs the shell examples of Markdown files.

python3 .ci/readme.py SLUICE FILE...

Every ```sh block after a line `<!-- ci: run -->` is run as one bash script that stops at the first failing command,
with the folder of the binary SLUICE first on PATH, in a new folder of its own, with an empty HOME and no input. A
`<!-- ci: run, exits N -->` says that the block ends with exit code N. Blocks marked otherwise are not run here:
`<!-- ci: step -->` (commands that .ci/run runs itself) and `<!-- ci: prose, WHY -->`. A block without a mark is an
error.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

MARK = re.compile(r"^\s*<!-- ci: (run(?:, exits (\d+))?|step|prose, \S.*) -->$")
LIMIT_SECONDS = 60


def blocks(path):
    """Yields (line number, mark or None, expected exit code, script)."""
    lines = path.read_text().splitlines()
    mark, code, number = None, 0, 0
    while number < len(lines):
        line = lines[number]
        found = MARK.match(line)
        if found:
            mark, code = found[1].split(",")[0], int(found[2] or 0)
        elif line.strip() == "```sh":
            indent = len(line) - len(line.lstrip())
            end = next(at for at in range(number + 1, len(lines)) if lines[at].strip() == "```")
            yield number + 1, mark, code, "\n".join(text[indent:] for text in lines[number + 1 : end])
            mark, number = None, end
        elif line.strip():
            mark = None
        number += 1


def run(script, binary):
    with tempfile.TemporaryDirectory() as folder:
        home, place = pathlib.Path(folder, "home"), pathlib.Path(folder, "place")
        home.mkdir()
        place.mkdir()
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        path = f"{binary.parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=place,
            env={**kept, "HOME": str(home), "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            text=True,
        )


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    failed, ran = 0, 0
    for name in sys.argv[2:]:
        for number, mark, code, script in blocks(pathlib.Path(name)):
            if mark is None:
                failed += 1
                print(f"{name}:{number}: mark the block: run, step, or prose with a reason")
            if mark != "run":
                continue
            ran += 1
            try:
                ended = run(script, binary)
                problem = None if ended.returncode == code else f"exit {ended.returncode}, not {code}\n{ended.stdout}"
            except subprocess.TimeoutExpired:
                problem = f"still running after {LIMIT_SECONDS} s"
            if problem:
                failed += 1
                print(f"{name}:{number}: {problem}\n{script}\n")
    print(f"examples: {ran} run, {failed} wrong")
    sys.exit(1 if failed or not ran else 0)


if __name__ == "__main__":
    main()
