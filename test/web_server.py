# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of a test's own, on the loopback interface."""

import contextlib
import http.server
import threading


@contextlib.contextmanager
def serve(find, take=None, tls=None):
    """The address of one. `find` is called with a path and returns the bytes there and their type,
    or None; `take` with what comes by POST. Both on threads of the server's. `tls` is its ssl
    context, if it is to have one."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, found):
            data, kind = found or (b"", "text/plain")
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self.answer(find(self.path.partition("?")[0]))

        def do_POST(self):
            take(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer((b"", "text/plain"))

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
