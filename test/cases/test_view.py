# SPDX-License-Identifier: Apache-2.0
"""`gpuprof view` serves page and trace to browsers of this machine, and nothing else to anybody."""

import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import subprocess
import time

import conftest
import pytest


class Server:
    """One that runs: its port, its secret, and raw and whole requests to it."""

    def __init__(self, process):
        self.process = process
        readable, _, _ = select.select([process.stdout], [], [], 60)
        self.address = process.stdout.readline().strip() if readable else ""
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", self.address)
        assert found, self.address
        self.port, self.secret = int(found[1]), found[2]
        self.host = f"127.0.0.1:{self.port}"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def raw(self, data):
        """Everything that is answered to these bytes, until the connection is closed."""
        with self.connect() as there:
            there.sendall(data)
            answer = b""
            while chunk := there.recv(1 << 16):
                answer += chunk
        return answer.decode("latin-1")

    def status(self, data):
        return int(self.raw(data).split(" ", 2)[1])

    def get(self, path, method="GET", host=None):
        there = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        there.putrequest(method, path, skip_host=True)
        there.putheader("Host", host or self.host)
        there.endheaders()
        answer = there.getresponse()
        body = answer.read()
        there.close()
        return answer, body


@pytest.fixture
def view(collector, tmp_path):
    """view(arguments...): a context with a Server."""
    @contextlib.contextmanager
    def start(*arguments, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        with conftest.Program([collector, "view", *arguments], cwd=tmp_path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
            server = Server(process)
            yield server
            process.terminate()
    return start


@pytest.fixture
def data(make_gpu):
    return make_gpu("train", 2, 3)


def test_serves(view, data, run_collector):
    trace = run_collector("merge", "-o", "-", data).stdout
    with view(data) as server:
        for method in ("GET", "HEAD"):
            for name, kind, expected in (
                    ("", "text/html", b"perfetto.js"),
                    ("perfetto.js", "text/javascript", b"PONG"), ("view.css", "text/css", b"main"),
                    ("page.html", "text/html", b"<script>"),
                    ("trace.json", "application/json", trace.encode())):
                answer, body = server.get(f"/{server.secret}/{name}", method)
                assert answer.status == 200 and answer.headers.get_content_type() == kind
                assert (expected in body) == (method == "GET") == bool(body)
                if method == "HEAD":
                    assert int(answer.headers["Content-Length"]) >= len(expected)
                for header, value in (("X-Content-Type-Options", "nosniff"),
                                      ("Referrer-Policy", "no-referrer"),
                                      ("X-Frame-Options", "DENY"),
                                      ("Cross-Origin-Resource-Policy", "same-origin"),
                                      ("Cache-Control", "no-store")):
                    assert answer.headers[header] == value
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert "Access-Control-Allow-Origin" not in answer.headers
        assert json.loads(body or trace)["traceEvents"]
        assert server.get(f"/{server.secret}/", host=f"localhost:{server.port}")[0].status == 200
        listening = subprocess.run(["ss", "-ltnH", f"sport = :{server.port}"], check=False,
                                   capture_output=True, text=True).stdout
        assert not listening or re.search(rf"\s127\.0\.0\.1:{server.port}\s", listening)
        server.process.send_signal(signal.SIGINT)
        said = server.process.stderr.read()
        assert server.process.wait() == 0
        assert f"ssh -L {server.port}:127.0.0.1:{server.port} " in said


def test_names_are_text(view, make_gpu):
    folder = make_gpu("train", 1, 1, name="<script>alert('&\")")
    with view(folder) as server:
        _, body = server.get(f"/{server.secret}/")
        assert b"<script>alert" not in body
        assert b"&lt;script&gt;alert(&#39;&amp;&quot;)" in body


def requests(server):
    """What is sent, and the status that it gets."""
    line = f"GET /{server.secret}/ HTTP/1.1\r\n"
    host = f"Host: {server.host}\r\n"
    end = "Connection: close\r\n\r\n"
    other = "0" * 32
    yield line + host + end, 200
    for path in ("/", "//", f"/{server.secret}", f"/{server.secret[:-1]}/", f"/{other}/",
                 f"/{other}/trace.json", f"/{server.secret}//", f"/{server.secret}/../",
                 f"/{server.secret}/../../../etc/passwd", f"/{server.secret}/%2e%2e/",
                 f"/{server.secret}//etc/passwd", f"/{server.secret}/trace.json/",
                 f"/{server.secret}/TRACE.JSON", f"/{server.secret}/?x", f"/{server.secret}/index",
                 f"/{server.secret.upper()}x/", f"/x{server.secret}/", "/a\x80", "/" + "a" * 5000):
        yield f"GET {path} HTTP/1.1\r\n{host}{end}", 404
    for name in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "localhost",
                 f"127.0.0.1:{server.port + 1}", f"127.0.0.1.evil.example:{server.port}",
                 f"[::1]:{server.port}", f"{server.host}.", f"{server.host},evil", ""):
        yield f"{line}Host: {name}\r\n{end}", 403
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "X"):
        yield f"{method} /{server.secret}/ HTTP/1.1\r\n{host}{end}", 405
    for bad in (line + end, line + host + host + end, line + host + "Host: x\r\n" + end,
                line + "Host : " + server.host + "\r\n" + end, line + " " + host + end,
                f"GET /{server.secret}/ HTTP/2.0\r\n{host}{end}",
                line.replace("\r\n", "\n") + host + end, line + host.replace("\r\n", "\r") + end,
                line + host + "X: a\0b\r\n" + end,
                f"GET  /{server.secret}/ HTTP/1.1\r\n{host}{end}",
                f"GET /{server.secret}/ HTTP/1.1 \r\n{host}{end}",
                f"GET http://{server.host}/{server.secret}/ HTTP/1.1\r\n{host}{end}",
                f"GET * HTTP/1.1\r\n{host}{end}", f"GET /{server.secret}/\r\n{host}{end}",
                "\r\n\r\n", "\x16\x03\x01\r\n\r\n", " \r\n\r\n"):
        yield bad, 400
    yield line + host + "X: " + "a" * 100000 + "\r\n" + end, 431
    yield "a" * 100000, 431


def test_requests_that_are_refused(view, data):
    """Whoever lacks the secret, or comes by another name, learns nothing: not even a size."""
    with view(data) as server:
        tried = 0
        for text, status in requests(server):
            answer = server.raw(text.encode("latin-1"))
            assert answer.startswith(f"HTTP/1.1 {status} "), (text[:200], answer[:100])
            if status != 200:
                assert "Content-Length: 0\r\n" in answer and answer.endswith("\r\n\r\n")
                assert server.secret not in answer and "default-src 'none'" in answer
            tried += 1
        assert tried > 50
        assert "Allow: GET, HEAD" in server.raw(b"PUT / HTTP/1.1\r\n\r\n")


def test_requests_of_any_bytes(view, data):
    """Right ones with some bytes changed, doubled or gone: an answer, or a wait for more."""
    dice = random.Random(7)
    with view(data) as server:
        right = [text.encode("latin-1") for text, _ in requests(server) if len(text) < 2000]
        for _ in range(400):
            data = bytearray(dice.choice(right))
            for _ in range(dice.choice((1, 1, 2, 8))):
                at = dice.randrange(max(1, len(data)))
                data[at:at + dice.choice((0, 1, 1, 5))] = dice.choice(
                    (b"", b"\r\n", b"\0", b" ", b":", data[:20], bytes([dice.randrange(256)])))
            with server.connect() as there:
                there.sendall(data)
                there.shutdown(socket.SHUT_WR)
                answer = b""
                with contextlib.suppress(ConnectionResetError):
                    while chunk := there.recv(1 << 16):
                        answer += chunk
            assert not answer or re.match(rb"HTTP/1\.1 (200|40[0345]|431) ", answer), data
        assert server.get(f"/{server.secret}/")[0].status == 200


def test_requests_in_pieces_and_in_a_row(view, data):
    """A connection is for one request: what stands behind it is not looked at."""
    with view(data) as server:
        one = f"GET /{server.secret}/view.css HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()
        body = server.get(f"/{server.secret}/view.css")[1].decode()
        assert server.raw(one * 200).count(body) == 1
        with server.connect() as there:  # a byte at a time
            for byte in one:
                there.sendall(bytes([byte]))
            answer = b""
            while chunk := there.recv(1 << 16):
                answer += chunk
        assert answer.decode().endswith(body)
        assert server.raw(b"BAD\r\n\r\n" + one).count("HTTP/1.1") == 1


def test_many_connections(view, data):
    """Those that say nothing make room; one that reads nothing holds nobody up."""
    with view(data) as server:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(server.connect()) for _ in range(100)]
            for there in silent[::2]:
                with contextlib.suppress(OSError):
                    there.sendall(b"GET /")
            stuck = stack.enter_context(server.connect())
            stuck.sendall(f"GET /{server.secret}/trace.json HTTP/1.1\r\nHost: {server.host}\r\n\r\n"
                          .encode())
            for _ in range(20):
                assert server.get(f"/{server.secret}/")[0].status == 200
            files = os.listdir(f"/proc/{server.process.pid}/fd")
            assert len(files) < 50
        assert server.get(f"/{server.secret}/")[0].status == 200


def test_without_room_for_files_it_waits(view, data):
    """Where no connection can be accepted it takes no processor time, and goes on when it can."""
    others = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
    with view(data, pass_fds=range(3, 64)) as server:  # poll wants a limit that is no lower
        pid = server.process.pid
        used = set(map(int, os.listdir(f"/proc/{pid}/fd")))
        lowest = min(set(range(len(used) + 1)) - used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, 4096))
        with server.connect() as there:
            there.sendall(f"GET /{server.secret}/ HTTP/1.1\r\n"
                          f"Host: {server.host}\r\n\r\n".encode())
            before = cpu_seconds(pid)
            time.sleep(1)
            assert cpu_seconds(pid) - before < 0.2
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (4096, 4096))
            assert there.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    for fd in others:
        os.close(fd)


def cpu_seconds(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_slow_clients_are_left(view, data):
    """Ten seconds for a request, however slowly it comes; nothing that was had is lost by it."""
    with view(data) as server, server.connect() as there:
        begin = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - begin < 60:
                there.sendall(b"a")
                if select.select([there], [], [], 0.5)[0] and not there.recv(100):
                    break
        assert 8 < time.monotonic() - begin < 40
        assert server.get(f"/{server.secret}/")[0].status == 200


def test_memory_is_bounded(view, make_gpu):
    """What is served lies in a file: the server is as small with a trace of 28 MB."""
    with view(make_gpu("bench", 30000)) as server:
        assert len(server.get(f"/{server.secret}/trace.json")[1]) > 20e6
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        assert int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) < 8000


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
def test_ends_and_leaves_nothing(view, data, tmp_path, number):
    (tmp_path / "tmp").mkdir()
    with view(data, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}) as server:
        assert server.get(f"/{server.secret}/trace.json")[0].status == 200
        assert not list((tmp_path / "tmp").iterdir())
        server.process.send_signal(number)
        assert server.process.wait() == (-9 if number == signal.SIGKILL else 0)
        assert not list((tmp_path / "tmp").iterdir())
        with pytest.raises(OSError):
            server.connect()


def test_full_folder_for_temporary_files(collector, data, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    done = subprocess.run([collector, "view", data], env={**os.environ, "TMPDIR": str(tmp_path)},
                          preexec_fn=limit, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == (
        f"gpuprof: cannot write a temporary file in {tmp_path}: File too large; raise ulimit -f")


def test_ends_with_its_input(view, data):
    """As of an ssh without a terminal that is gone."""
    with view(data, stdin=subprocess.PIPE) as server:
        assert server.get(f"/{server.secret}/")[0].status == 200
        server.process.stdin.close()
        assert server.process.wait() == 0


def test_ends_with_its_terminal(view, data):
    ours, theirs = os.openpty()
    with view(data, stdin=theirs) as server:
        os.close(theirs)
        assert server.get(f"/{server.secret}/")[0].status == 200
        os.close(ours)
        assert server.process.wait() == 0


def test_opens_a_browser_by_an_address_that_works_once(view, data, tmp_path):
    """Arguments of processes are everybody's to read."""
    asked = tmp_path / "asked"
    (tmp_path / "xdg-open").write_text(f"#!/bin/sh\necho \"$@\" > {asked}.new\n"
                                       f"mv {asked}.new {asked}\n")
    (tmp_path / "xdg-open").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    with view(data, "--open", env={**os.environ, "PATH": path}) as server:
        deadline = time.monotonic() + 60
        while not asked.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        address = asked.read_text().strip()
        assert server.secret not in address
        once = address.removeprefix(f"http://{server.host}")
        assert re.fullmatch("/[0-9a-f]{32}", once)
        assert server.get(once, "HEAD")[0].status == 404
        answer, _ = server.get(once)
        assert (answer.status, answer.headers["Location"]) == (303, f"/{server.secret}/")
        assert server.get(once)[0].status == 404
    asked.unlink()
    with view(data, env={**os.environ, "PATH": path}) as server:
        assert server.get("/")[0].status == 404
    assert not asked.exists()


def test_ports(view, run_collector, data):
    with view(data) as server:
        taken = run_collector("view", "--port", str(server.port), data)
        assert taken.returncode == 1 and f"127.0.0.1:{server.port}: Address already in use; name " \
            "another --port, or leave it out\n" in taken.stderr
        port = server.port
    with view(data, f"--port={port}") as server:
        assert server.port == port
    for wrong in ("65536", "x", "-1", ""):
        refused = run_collector("view", f"--port={wrong}", data)
        assert refused.returncode == 2 and "--port" in refused.stderr


def test_nothing_to_show(run_collector, tmp_path):
    result = run_collector("view", tmp_path)
    assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1
