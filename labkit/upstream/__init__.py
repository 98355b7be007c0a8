"""Upstream ChatTTS as a peer: run in an environment and a process of its own, never imported here.

`worker/` is the program that runs there; `client` starts it and exchanges JSON lines and `.npz` files with
it; `environment` says whether it can run on this machine; `pipeline` makes a recipe of it; `parity`
compares it with the lab's own network.
"""
