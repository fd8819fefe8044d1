"""A hub of models on this machine: what `huggingface_hub` asks of one, with lines that break where a test wants them to.

Small files are answered as the hub answers them: the content, with an ETag and the commit. Large ones redirect to a
storage server at another address, which knows them by their SHA-256 and serves ranges.
"""

import hashlib
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import prod

import numpy as np

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 1 << 16
BLOCK = 1 << 20


class Bytes:
    """A file to serve."""

    def __init__(self, content: bytes):
        self.content, self.size = content, len(content)

    def blocks(self, start: int = 0):
        for at in range(start, self.size, BLOCK):
            yield self.content[at : at + BLOCK]


class Released:
    """GPT-2's released file with other numbers in it: `h.N.attn.bias` masks, no head, no prefix, a header that is not padded.

    The weights are drawn tensor by tensor when they are asked for, always the same, so that no copy lies anywhere.
    """

    def __init__(self, n_layer: int = 12, n_embd: int = 768, n_ctx: int = 1024, vocab_size: int = 50257, std: float = 0.08):
        C, self.std, self.shapes = n_embd, std, {}
        for layer in range(n_layer):
            own = {"ln_1.weight": (C,), "ln_1.bias": (C,), "ln_2.weight": (C,), "ln_2.bias": (C,)}
            own["attn.bias"] = (1, 1, n_ctx, n_ctx)
            projections = (("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C), ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C))
            for name, n_in, n_out in projections:
                own |= {f"{name}.weight": (n_in, n_out), f"{name}.bias": (n_out,)}
            self.shapes |= {f"h.{layer}.{name}": shape for name, shape in own.items()}
        self.shapes |= {"ln_f.bias": (C,), "ln_f.weight": (C,), "wpe.weight": (n_ctx, C), "wte.weight": (vocab_size, C)}
        entries, end = {"__metadata__": {"format": "pt"}}, 0
        for name, shape in self.shapes.items():
            entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": (end, end := end + 4 * prod(shape))}
        header = json.dumps(entries, separators=(",", ":")).encode()
        self.header = struct.pack("<Q", len(header)) + header
        self.size = len(self.header) + end

    def tensor(self, name: str) -> np.ndarray:
        shape = self.shapes[name]
        if name.endswith(".attn.bias"):
            return np.tril(np.ones(shape, np.float32))
        drawn = np.random.default_rng([7, *name.encode()]).standard_normal(shape, dtype=np.float32)
        if ".ln_" in name or name.startswith("ln_f"):
            return (0.1 * drawn + name.endswith("weight")).astype(np.float32)
        return self.std * drawn

    def blocks(self, start: int = 0):
        at = 0
        for name, size in [(None, len(self.header)), *((name, 4 * prod(shape)) for name, shape in self.shapes.items())]:
            if at + size > start:
                block = self.header if name is None else memoryview(self.tensor(name)).cast("B")
                yield block[max(start - at, 0) :]
            at += size


class LocalHub:
    """`files[repository][name]` is served. `requests` notes what came: method, path, headers (lower case).

    cut      how many bytes the storage sends before it hangs up; one entry for each of its next answers
    stall    as `cut`, but the line stays open and silent until the test is over
    damage   the storage flips one bit
    """

    def __init__(self):
        self.files: dict[str, dict[str, Bytes | Released]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.cut: list[int] = []
        self.stall: list[int] = []
        self.damage = False
        self.over = threading.Event()
        self._hashes: dict[int, str] = {}
        handler = type("Handler", (Handler,), {"hub": self})
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
        self.address, self.storage = (f"http://127.0.0.1:{server.server_port}" for server in self.servers)
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.over.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def sha256(self, file) -> str:
        if id(file) not in self._hashes:
            digest = hashlib.sha256()
            for block in file.blocks():
                digest.update(block)
            self._hashes[id(file)] = digest.hexdigest()
        return self._hashes[id(file)]

    def stored(self) -> list[dict[str, str]]:
        """The headers of every request for content that came to the storage."""
        return [headers for method, path, headers in self.requests if method == "GET" and path.startswith("/storage/")]


class Handler(BaseHTTPRequestHandler):
    hub: LocalHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(content=False)

    def do_GET(self) -> None:
        self._answer(content=True)

    def _answer(self, content: bool) -> None:
        self.hub.requests.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path.startswith("/storage/"):
            return self._serve(self.path.rpartition("/")[2])
        repository, resolve, rest = self.path.strip("/").partition("/resolve/")
        files = self.hub.files.get(repository)
        if not resolve or files is None:
            return self._refuse(401 if resolve else 404, "RepoNotFound")
        file = files.get(rest.partition("/")[2])
        if file is None:
            return self._refuse(404, "EntryNotFound", {"X-Repo-Commit": COMMIT})
        digest = self.hub.sha256(file)
        if file.size < LARGE:
            body = b"".join(file.blocks())
            return self._send(200, {"ETag": f'"{digest[:40]}"', "X-Repo-Commit": COMMIT}, body, content)
        linked = {"X-Linked-ETag": f'"{digest}"', "X-Linked-Size": str(file.size), "X-Repo-Commit": COMMIT}
        return self._send(302, {**linked, "Location": f"{self.hub.storage}/storage/{digest}"}, b"", content)

    def _refuse(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self._send(status, {"X-Error-Code": code, "X-Error-Message": code, **(headers or {})}, b"", True)

    def _send(self, status: int, headers: dict[str, str], body: bytes, content: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if content:
            self.wfile.write(body)

    def _serve(self, digest: str) -> None:
        """A range of a file, or all of it, up to where the line breaks."""
        file = next(file for files in self.hub.files.values() for file in files.values() if self.hub.sha256(file) == digest)
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{file.size - 1}/{file.size}")
        self.send_header("Content-Length", str(file.size - start))
        self.end_headers()
        stalls = bool(self.hub.stall)
        left = self.hub.stall.pop(0) if stalls else self.hub.cut.pop(0) if self.hub.cut else file.size
        for block in file.blocks(start):
            if self.hub.damage:
                block = bytes([block[0] ^ 1]) + bytes(block[1:])
            self.wfile.write(block[:left])
            left -= len(block)
            if left <= 0:
                break
        if stalls:
            self.hub.over.wait(60)
        if left <= 0:
            self.close_connection = True
