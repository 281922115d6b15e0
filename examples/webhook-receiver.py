# Receives the deliveries of a webhook with Python's standard library alone, as webhook-receiver.mjs does with a client.
# WEBHOOK_SECRET is the secret that was shown when the webhook was created; PORT is where it listens (default 4000).
import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
# In your service: a unique column of your database, written in the transaction that handles the event.
handled = set()


def is_signed(body, headers):
    """Whether the delivery is signed with the secret, and no more than five minutes old."""
    sent_at = headers.get("webhook-timestamp", "")
    if not (sent_at.isdecimal() and len(sent_at) <= 12 and abs(time.time() - int(sent_at)) <= 300):
        return False
    content = f"{headers.get('webhook-id')}.{sent_at}.".encode() + body
    own = b"v1," + base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest())
    # While the secret is rotated there are two signatures.
    return any(hmac.compare_digest(own, one.encode()) for one in headers.get("webhook-signature", "").split())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        # The signature covers the bytes of the body as they came, so read them before you parse them.
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        signed = is_signed(body, self.headers)
        # Answer first, work later: an answer after 15 seconds counts as a failure.
        self.send_response(204 if signed else 400)
        self.end_headers()
        if not signed:
            return
        event = json.loads(body)
        # The same event may come twice: its id is the same then.
        is_new = event["id"] not in handled
        handled.add(event["id"])
        # Types that you do not know may come at any time: ignore them.
        if is_new:
            print(event["type"], event["id"], flush=True)

    def log_message(self, *_):
        """The standard library prints each request."""


server = HTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Receiver)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
