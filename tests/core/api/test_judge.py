"""The judge client against a real server that answers well, slowly, with errors and with nonsense."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from evr1_core.api import ConfigError, NotJudgedError
from evr1_core.api.judge import JudgeClient, read_judgement

pytest.importorskip("openai")


def completion(text: object) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's ``script`` says: bytes, or a callable, for a prompt and how often it was asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        server: Any = self.server
        with server.lock:
            count = server.counts[prompt] = server.counts.get(prompt, 0) + 1
            server.bodies.append(body)
            server.keys.add(self.headers["Authorization"])
            server.active += 1
            server.most = max(server.most, server.active)
        try:
            action = server.script(prompt, count)
            if callable(action):
                action(self)
            else:
                self.reply(200, action)
        finally:
            with server.lock:
                server.active -= 1

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", "Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def status(code: int, **headers: str) -> Callable[[Handler], None]:
    return lambda handler: handler.reply(code, b'{"error": {"message": "no"}}', **headers)


def reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """A byte at a time, each well within any limit between two bytes."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.close_connection = True
    try:
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass  # the client has left


def sleep(handler: Handler) -> None:
    time.sleep(1.0)
    handler.close_connection = True


@pytest.fixture(name="server")
def _server() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # connections that the client has given up
    server.daemon_threads, server.lock = True, threading.Lock()
    server.counts, server.bodies, server.keys, server.active, server.most = {}, [], set(), 0, 0
    server.script = lambda prompt, count: completion("Judgement: 1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(name="client")
def _client(server: Any) -> Callable[..., JudgeClient]:
    def client(**options: Any) -> JudgeClient:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        return JudgeClient(**{"base_url": url, "model": "m", "retries": 2, "backoff": 0.01, "timeout": 0.5, **options})

    return client


def test_verdicts_in_order(server, client) -> None:
    server.script = lambda prompt, count: completion(f"Reasons. Judgement: {int(prompt[-1]) % 2}")
    prompts = [f"prompt {i}" for i in range(9)]
    assert client().ask_all(prompts, read_judgement) == [i % 2 == 1 for i in range(9)]
    assert {body["model"] for body in server.bodies} == {"m"}
    assert client().ask("prompt 3", str) == "Reasons. Judgement: 1"
    assert client().ask_all([], read_judgement) == []


@pytest.mark.parametrize(
    "fault", [status(500), status(503), status(429), reset, sleep, drip, b"<html>", b"[[[", b"{}", completion(None), b"[" * 9999]
)
def test_passing_faults_are_tried_again(server, client, fault) -> None:
    server.script = lambda prompt, count: fault if count == 1 else completion("Judgement: 0")
    assert client().ask_all(["x"], read_judgement) == [False]
    assert server.counts == {"x": 2}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (status(500), "status 500"),
        (status(429), "status 429"),
        (reset, "connection failed"),
        (sleep, "no reply within 0.5 s"),
        (drip, "no reply within 0.5 s"),
        (b"nonsense", "cannot be read|holds no text"),
        (completion("Well, who can say?"), "no clear verdict in 'Well, who can say\\?'"),
    ],
)
def test_one_that_fails_leaves_the_others(server, client, fault, reason) -> None:
    server.script = lambda prompt, count: fault if prompt == "bad" else completion("Judgement: 1")
    good, bad, also_good = client().ask_all(["good", "bad", "also good"], read_judgement)
    assert good is True
    assert also_good is True
    assert isinstance(bad, NotJudgedError)
    assert server.counts == {"good": 1, "bad": 3, "also good": 1}
    with pytest.raises(NotJudgedError, match=reason):
        client().ask("bad", read_judgement)


@pytest.mark.parametrize("code", [400, 401, 404])
def test_lasting_errors_are_not_tried_again(server, client, code) -> None:
    server.script = lambda prompt, count: status(code)
    (failed,) = client().ask_all(["x"], read_judgement)
    assert isinstance(failed, NotJudgedError)
    assert f"status {code} (1 try)" in str(failed)
    assert server.counts == {"x": 1}


def test_waits_double(server, client) -> None:
    times = []
    server.script = lambda prompt, count: times.append(time.monotonic()) or status(500)
    client(backoff=0.1).ask_all(["x"], read_judgement)
    assert times[1] - times[0] >= 0.1
    assert times[2] - times[1] >= 0.2


def test_waits_as_long_as_the_server_asks(server, client) -> None:
    times = []
    server.script = lambda prompt, count: (
        times.append(time.monotonic()) or (status(429, Retry_After="0.3") if count == 1 else completion("Judgement: 1"))
    )
    assert client().ask_all(["x"], read_judgement) == [True]
    assert times[1] - times[0] >= 0.3


def test_at_most_so_many_at_a_time(server, client) -> None:
    server.script = lambda prompt, count: time.sleep(0.05) or completion("Judgement: 1")
    assert client(concurrency=3, timeout=10.0).ask_all([str(i) for i in range(12)], read_judgement) == [True] * 12
    assert server.most == 3


def test_waiting_for_a_place_is_not_waiting_for_a_reply(server, client) -> None:
    server.script = lambda prompt, count: time.sleep(0.2) or completion("Judgement: 1")
    assert client(concurrency=1, timeout=0.5, retries=0).ask_all([str(i) for i in range(5)], read_judgement) == [True] * 5


def test_nobody_listens(client) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (failed,) = client(base_url=f"http://127.0.0.1:{free.getsockname()[1]}/v1").ask_all(["x"], read_judgement)
    assert "connection failed" in str(failed)
    assert "(3 tries)" in str(failed)


def test_key_comes_from_the_environment(server, client, monkeypatch) -> None:
    monkeypatch.setenv("EVR1_TEST_KEY", "sesame")
    client(api_key_env="EVR1_TEST_KEY").ask_all(["x"], read_judgement)
    assert server.keys == {"Bearer sesame"}
    assert "sesame" not in repr(client(api_key_env="EVR1_TEST_KEY"))
    monkeypatch.delenv("EVR1_TEST_KEY")
    with pytest.raises(ConfigError, match="EVR1_TEST_KEY"):
        client(api_key_env="EVR1_TEST_KEY").check()


def test_other_keys_stay_at_home(server, client, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of somebody else")
    client().ask_all(["x"], read_judgement)
    assert server.keys == {"Bearer none"}


def test_inside_an_event_loop(server, client) -> None:
    import asyncio

    async def main() -> list[Any]:
        return client().ask_all(["x"], read_judgement)

    assert asyncio.run(main()) == [True]


def test_text_that_is_no_unicode(server, client) -> None:
    assert client().ask_all(["\ud83d"], read_judgement) == [True]


def test_without_the_package(client, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match=r"pip install 'evr1\[judge\]'"):
        client().check()


def test_without_endpoint_and_model() -> None:
    with pytest.raises(ConfigError, match=r"rewards\.x\.judge\.base_url(?s:.)*rewards\.x\.judge\.model"):
        JudgeClient().check("rewards.x.judge")


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"retries": -1}, {"timeout": 0.0}, {"backoff": -1.0}, {"max_tokens": 0}])
def test_settings_are_checked(client, options) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        client(**options)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Judgement: 1", True),
        ("**Judgment**: 0", False),
        ("Judgement: 0, no wait. Judgement: 1", True),
        ('{"judgement": 1}', True),
        ("Judgement: 10", None),
        ("Judgement: 0.5", None),
        ('{"correct": "yes"}', True),
        ('{"extracted_answer": "B", "correct": false}', False),
        ("The answer is incorrect.", False),
        ("The answer is not correct.", False),
        ("Correct", True),
        ("correctness", None),
        ("1", None),
        ("", None),
    ],
)
def test_read_judgement(reply, said) -> None:
    assert read_judgement(reply) is said
