"""Counts the bytes that a device gets, and prints them as the table of docs/app-guide.md.

    target/tools/python/bin/python tests/benches/wire_bytes.py target/debug/feedgate

Feedgate's frames are those of the real server. Centrifugo's are not measured: they are put together from its protocol,
with the same bodies. Pushes have the number of the channel in both, as SDKs offer it by `flag` bit 1. A frame counts with its WebSocket header, and without TCP and TLS.
"""

import base64
import io
import json
import pathlib
import socket as sockets
import subprocess
import sys
import tempfile
import time
import urllib.request

from centrifuge.protocol import client_pb2
from google.protobuf import json_format, proto
from websockets.sync.client import connect

BODY = {"text": "x" * 140}
CATCH_UP, PAGE = 100, 20
ROWS = ["ping", "notification", "item", f"catch-up of {CATCH_UP}", f"page of {PAGE}"]


def on_the_wire(payload):
    """The bytes of an unmasked WebSocket frame with this payload."""
    size = len(payload)
    return size + (2 if size < 126 else 4 if size < 65536 else 10)


class Server:
    """The real program on a free port, with data of its own."""

    def __init__(self, program, folder):
        with sockets.create_server(("127.0.0.1", 0)) as free:
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        config = pathlib.Path(folder, "feedgate.toml")
        config.write_text("[gateway]\nping_interval_secs = 1\n", "utf-8")
        command = [program, "serve", "--data", f"{folder}/data", "--config", str(config), "--listen", self.address]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while "Ctrl-C stops the server" not in self.process.stdout.readline():
            if self.process.poll() is not None:
                sys.exit(f"{program} ended with {self.process.returncode}")
        self.key = pathlib.Path(folder, "data", "secrets", "api_key").read_text("utf-8").strip()

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.address}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read() or "null")

    def publish(self, count):
        """Publishes, and waits until every post is in the feed."""
        before = self.position()["offset"]
        for _ in range(count):
            self.call("POST", "/v1/items", {"author": "ann", "body": BODY})
        while self.position()["offset"] < before + count:
            time.sleep(0.01)

    def position(self):
        return self.call("GET", "/v1/users/bob/feed?limit=1")["position"]


class Json:
    """The format of `centrifuge-json`: text, one object per line."""

    subprotocol = "centrifuge-json"

    @staticmethod
    def encode(message):
        return json.dumps(message, separators=(",", ":"))

    @staticmethod
    def replies(payload):
        return [json.loads(line) for line in payload.splitlines()]

    centrifugo = encode


class Protobuf:
    """The format of `centrifuge-protobuf`: each message after its length; `data` is JSON as bytes."""

    subprotocol = "centrifuge-protobuf"

    @staticmethod
    def encode(command):
        return Protobuf.message(client_pb2.Command(), command)

    @staticmethod
    def centrifugo(reply):
        return Protobuf.message(client_pb2.Reply(), reply)

    @staticmethod
    def message(message, fields):
        json_format.ParseDict(Protobuf.with_bytes(fields), message)
        out = io.BytesIO()
        proto.serialize_length_prefixed(message, out)
        return out.getvalue()

    @staticmethod
    def with_bytes(value):
        """The same fields, with `data` as JSON writes bytes: base64."""
        if isinstance(value, list):
            return [Protobuf.with_bytes(one) for one in value]
        if not isinstance(value, dict):
            return value
        def packed(data):
            return base64.b64encode(Json.encode(data).encode()).decode()

        return {name: packed(one) if name == "data" else Protobuf.with_bytes(one) for name, one in value.items()}

    @staticmethod
    def replies(payload):
        read = io.BytesIO(payload)
        found = []
        while read.tell() < len(payload):
            reply = proto.parse_length_prefixed(client_pb2.Reply, read)
            found.append(json_format.MessageToDict(reply, preserving_proto_field_name=True))
        return found


class Device:
    """A connection of bob in one format; it counts the frames that it gets."""

    def __init__(self, server, wire, socket):
        self.wire, self.socket, self.commands = wire, socket, 0
        token = server.call("POST", "/v1/users/bob/token", {"device_id": wire.subprotocol})["token"]
        self.send(connect={"token": token, "name": "python"})
        self.until(lambda reply: "connect" in reply)

    def send(self, **command):
        self.commands += 1
        self.socket.send(self.wire.encode({"id": self.commands, **command}))

    def until(self, last):
        """The bytes of all frames, but for pings, up to the one with a reply that is the last."""
        total = 0
        while True:
            payload = self.socket.recv(timeout=10)
            replies = self.wire.replies(payload)
            if replies == [{}]:
                self.socket.send(payload)  # the pong is the same message
                continue
            total += on_the_wire(payload)
            if any(map(last, replies)):
                return total

    def ping(self):
        while self.wire.replies(payload := self.socket.recv(timeout=10)) != [{}]:
            pass
        self.socket.send(payload)
        return on_the_wire(payload)


def pushed(offset):
    """Whether a reply pushes the change with this offset."""
    return lambda reply: int(reply.get("push", {}).get("pub", {}).get("offset", 0)) == offset


def feedgate(server, wire):
    """The bytes of each row from the real server."""
    url = f"ws://{server.address}/connection/websocket"
    with connect(url, subprotocols=[wire.subprotocol], compression=None) as socket:
        return rows(server, Device(server, wire, socket))


def rows(server, device):
    device.send(rpc={"method": "page", "data": {"limit": PAGE}})
    page = device.until(lambda reply: "rpc" in reply)
    at = server.position()
    since = {"recover": True, "epoch": at["epoch"], "offset": at["offset"] - CATCH_UP}
    device.send(subscribe={"channel": "feed", "flag": 1, **since, "data": {"deliver": "items"}})
    catch_up = device.until(pushed(at["offset"]))
    server.publish(1)
    item = device.until(pushed(at["offset"] + 1))
    device.send(unsubscribe={"channel": "feed"})
    device.send(subscribe={"channel": "feed", "flag": 1, "data": {"deliver": "notify"}})
    device.until(lambda reply: "subscribe" in reply)
    server.publish(1)
    notification = device.until(pushed(at["offset"] + 2))
    return [device.ping(), notification, item, catch_up, page]


def centrifugo(server, wire):
    """The bytes of each row as Centrifugo's protocol has them; it has no pages."""
    items = server.call("GET", f"/v1/users/bob/feed?limit={CATCH_UP}")["items"]
    offset = server.position()["offset"]
    pubs = [{"data": {"op": "add", "item": item}, "offset": offset - at} for at, item in enumerate(items)]
    recovered = {"recoverable": True, "epoch": "abcd", "offset": offset, "positioned": True, "was_recovering": True, "recovered": True, "id": 1}

    def push(data):
        return wire.centrifugo({"push": {"id": 1, "pub": {"data": data, "offset": offset}}})

    frames = [
        wire.centrifugo({}),
        push({"op": "behind"}),
        push(pubs[0]["data"]),
        wire.centrifugo({"id": 2, "subscribe": {**recovered, "publications": pubs}}),
    ]
    return [*map(on_the_wire, frames), "–"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(sys.argv[1], folder)
        try:
            server.call("PUT", "/v1/users/bob/following/ann")
            server.publish(CATCH_UP + PAGE)
            columns = [measure(server, wire) for measure in (feedgate, centrifugo) for wire in (Json, Protobuf)]
        finally:
            server.process.terminate()
            server.process.wait()
    print("| bytes | JSON | Protobuf | Centrifugo, JSON | Centrifugo, Protobuf |\n|---|---|---|---|---|")
    for row in zip(ROWS, *columns):
        print("|", " | ".join(map(str, row)), "|")


if __name__ == "__main__":
    main()
