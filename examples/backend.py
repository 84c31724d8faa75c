"""A backend in Python 3, without dependencies: bob follows ann, ann posts, bob may watch.

    FEEDGATE_KEY=$(cat data/secrets/api_key) python3 examples/backend.py "hello"
"""

import datetime
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("FEEDGATE_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("FEEDGATE_KEY", "")
WAIT_MAX_SECS = 10  # the longest wait that a server may ask for


class Later(SystemExit):
    """A server, or a proxy, cannot answer now: the request is to be sent again, after `wait` seconds at least."""

    def __init__(self, why, retry_after):
        super().__init__(why)
        self.wait = min(int(retry_after), WAIT_MAX_SECS) if retry_after.isdecimal() else 0


def call(method, path, body=None, headers=()):
    """One request. A refusal is a problem (RFC 9457) that says what was wrong. A proxy may answer other text."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **dict(headers)}
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            status, text, head = response.status, response.read().decode("utf-8", "replace"), response.headers
    except urllib.error.HTTPError as refusal:
        status, text, head = refusal.code, refusal.read().decode("utf-8", "replace"), refusal.headers
    try:
        answer = None if status < 300 and text == "" else json.loads(text)
        why = f"{answer['title']}: {answer['detail']}" if status >= 300 else None
    except ValueError:
        why = f"{status}: {text[:200]}"
    if why and (status == 429 or status >= 500):
        raise Later(why, head.get("Retry-After", ""))
    if why:
        raise SystemExit(why)
    return answer


def publish(author, body):
    """Accepted means on disk. Sent again with the same key, it stays one item."""
    key, wait = str(uuid.uuid4()), 0.2
    while True:
        try:
            return call("POST", "/v1/items", {"author": author, "body": body}, {"Idempotency-Key": key})
        except (OSError, Later) as error:  # it may or may not have been accepted
            if wait > 5:
                raise
            time.sleep(max(wait, getattr(error, "wait", 0)))
            wait *= 2


def feed_with(reader, item):
    """The newest of a reader's feed, once the item is there: a follow and a post arrive soon after they are accepted."""
    wait = 0.02
    while wait < 10:
        items = call("GET", f"/v1/users/{reader}/feed?limit=3")["items"]
        if any(shown["id"] == item for shown in items):
            return items
        time.sleep(wait)
        wait *= 2
    raise SystemExit(f"item {item} is not in the feed of {reader} yet")


if __name__ == "__main__":
    if not KEY:
        raise SystemExit("set FEEDGATE_KEY to what stands in data/secrets/api_key")
    call("PUT", "/v1/users/bob/following/ann")
    accepted = publish("ann", {"text": sys.argv[1] if len(sys.argv) > 1 else "hello"})
    print(f"accepted  {accepted['id']}")
    for shown in feed_with("bob", accepted["id"]):
        at = datetime.datetime.fromtimestamp(shown["published_at"] / 1000, datetime.timezone.utc)
        print(f"in feed   {at.isoformat(timespec='milliseconds')}  {shown['author']}: {shown['body']['text']}")
    token = call("POST", "/v1/users/bob/token", {"device_id": "web", "ttl": 3600})["token"]
    print(f"token     {token}")  # for page.html
