"""`Service`: an exported model, compiled, that answers requests over HTTP from several threads."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import turnout

MOST = 1 << 24  # bytes of a request


class Service:
    """An exported model whose calls an engine has compiled; without an engine they run eagerly."""

    def __init__(self, file: str, engine: str = "") -> None:
        model = turnout.export.load(file)

        def forward(*inputs: Any) -> Any:
            return model(*inputs)

        # One trace serves batches of all sizes; the engine compiles each size once.
        self._forward = turnout.compile(forward, engine=engine, dynamic=True) if engine else forward
        self.is_compiled = bool(engine)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the model gives for `inputs`, a list of nested lists of numbers.

        Raises KeyError for a request without them, ValueError for what are no inputs of the model.
        """
        with turnout.no_grad():
            found = self._forward(*[turnout.tensor(each) for each in request["inputs"]])
        return {"outputs": [each.tolist() for each in turnout.trees.flatten(found)[0]]}

    def explained(self) -> str:
        """What became of the calls."""
        return turnout.compiler.explain(self._forward) if self.is_compiled else "calls run eagerly"


def server(service: Service, port: int = 0) -> ThreadingHTTPServer:
    """A server on this machine's own address: POST answers a request, GET says what became of them. Port 0 is a free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # a client keeps its connection
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            try:
                size = int(self.headers["Content-Length"])
                if not 0 <= size <= MOST:
                    raise ValueError(f"a request has at most {MOST} bytes")
                self._send(200, json.dumps(service.answer(json.loads(self.rfile.read(size)))), "application/json")
            except (KeyError, TypeError, ValueError, RuntimeError, turnout.errors.TurnoutError) as error:
                self.close_connection = True
                self._send(400, f"{type(error).__name__}: {error}", "text/plain")

        def do_GET(self) -> None:
            self._send(200, service.explained(), "text/plain")

        def _send(self, status: int, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing of single requests."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
