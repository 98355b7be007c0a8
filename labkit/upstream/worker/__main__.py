"""The protocol: one JSON request a line on stdin, one JSON reply a line on stdout, arrays in `.npz` files.

Request: `{"command": name, "arrays": path or null, "reply_arrays": path, …fields}`.
Reply: `{"ok": true, "arrays": path or null, …fields}` or `{"ok": false, "type", "message", "traceback"}`.
Whatever the packages print goes to stderr, so that it cannot break the protocol.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, TextIO

import numpy as np

from .peer import Peer


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    serve(Peer(), sys.stdin, replies)


def serve(peer: Peer, requests: TextIO, replies: TextIO) -> None:
    """Answer until stdin closes."""
    for line in requests:
        try:
            reply = answer(peer, json.loads(line))
        except Exception as error:  # reported to the parent, which raises it there
            reply = {
                "ok": False,
                "type": type(error).__name__,
                "message": str(error),
                "traceback": traceback.format_exc(),
            }
        replies.write(json.dumps(reply) + "\n")


def answer(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request; arrays that a command returns are written to the file the parent named."""
    command = getattr(peer, request.pop("command"))
    reply_arrays = request.pop("reply_arrays")
    file = request.pop("arrays")
    arrays = {} if file is None else read_arrays(file)
    fields, result = command(**request, **arrays)
    if result:
        np.savez(reply_arrays, **result)
    return {"ok": True, **fields, "arrays": reply_arrays if result else None}


def read_arrays(folder: str) -> dict[str, np.ndarray]:
    """Map each `.npy` of a folder: noise for thousands of steps is read as it is used."""
    return {
        name.removesuffix(".npy"): np.load(os.path.join(folder, name), mmap_mode="r")
        for name in sorted(os.listdir(folder))
    }


if __name__ == "__main__":
    main()
