"""Makes the frames that the SDKs of iOS and Flutter send and are sent, which do not run where the tests do.

    target/tools/python/bin/python tests/phones/frames.py > gateway/src/protocol/protobuf/phones.txt

The SDKs' sources say which fields they set and read. Google's Protobuf for Python makes the bytes of it, by the schema
that centrifuge-python ships. `phones.rs` beside the table holds the gateway's own code against every line.
"""

import io

from centrifuge.protocol import client_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, proto

DEVICE = b'{"device_id":"phone-1"}'
ITEMS = b'{"deliver":"items"}'
CHANGE = b'{"op":"delete","item_id":"9"}'
POSITION = b'{"epoch":"12","offset":6}'
FEED = dict(channel="feed")

# centrifuge-swift numbers its commands on from one connection to the next. Its writer leaves out defaults. Each
# subscribe carries flag 1, and flag 2 if the app has given a `stateGetter`.
SWIFT = {
    "connect": dict(id=9, connect=dict(token="J", data=DEVICE, name="swift")),
    "subscribe": dict(id=10, subscribe=dict(FEED, flag=1)),
    "subscribe since a position": dict(
        id=11, subscribe=dict(FEED, recover=True, epoch="12", offset=6, data=ITEMS, flag=1)
    ),
    "subscribe with a stateGetter, at offset 0, with every option": dict(
        id=12,
        subscribe=dict(
            FEED,
            token="T",
            recover=True,
            epoch="12",
            positioned=True,
            recoverable=True,
            join_leave=True,
            delta="fossil",
            flag=3,
        ),
    ),
    "subscribe after its state was invalidated": dict(id=13, subscribe=dict(FEED, recover=True, epoch="_", flag=1)),
    "unsubscribe": dict(id=14, unsubscribe=FEED),
    "history since offset 0": dict(id=15, history=dict(FEED, limit=50, since=dict(epoch="12"))),
    "history, all of it, newest first": dict(id=16, history=dict(FEED, limit=-1, reverse=True)),
    "presence": dict(id=17, presence=FEED),
    "presence stats": dict(id=18, presence_stats=FEED),
    "rpc ack": dict(id=300, rpc=dict(data=POSITION, method="ack")),
    "rpc page": dict(id=301, rpc=dict(method="page")),
    "refresh": dict(id=302, refresh=dict(token="J")),
    "send": dict(send=dict(data=b"{}")),
    "pong": dict(),
}

# centrifuge-dart counts from 1 on each connection. Its writer keeps what the SDK sets to a default. Unsubscribe,
# presence, refresh and pong are those of centrifuge-swift.
DART = {
    "connect": dict(id=1, connect=dict(token="J", data=DEVICE, name="dart", version="")),
    "connect from a web page": dict(
        id=1, connect=dict(token="J", data=DEVICE, name="dart", version="", headers={"X-App": "1"})
    ),
    "subscribe": dict(id=2, subscribe=dict(FEED, token="", positioned=False, recoverable=False, join_leave=False)),
    "subscribe since offset 0": dict(
        id=3,
        subscribe=dict(
            FEED,
            token="",
            recover=True,
            epoch="12",
            offset=0,
            data=ITEMS,
            positioned=False,
            recoverable=True,
            join_leave=False,
        ),
    ),
    "history since offset 0": dict(id=4, history=dict(FEED, limit=0, since=dict(offset=0, epoch="12"), reverse=False)),
    "rpc page": dict(id=5, rpc=dict(data=b"", method="page")),
}

CLIENT = dict(client="n-1", version="feedgate 0", expires=True, ttl=600)
PUBLICATION = dict(data=CHANGE, offset=7)

# What both SDKs read. A reply needs its result even if that is empty: centrifuge-dart throws without one. They expect
# pings if `ping` is set and answer them if `pong` is, ask the app for a token after `ttl` if `expires` is set, and keep
# a position if `recoverable` is. Without an id and a push, a message is a ping.
GATEWAY = {
    "connected": dict(id=9, connect=dict(CLIENT, ping=25, pong=True, session="n-1", node="n")),
    "subscribed": dict(
        id=11,
        subscribe=dict(
            recoverable=True, epoch="12", recovered=True, offset=6, positioned=True, data=POSITION, was_recovering=True
        ),
    ),
    "subscribed, with a number for the channel": dict(
        id=10, subscribe=dict(recoverable=True, epoch="12", offset=6, positioned=True, data=POSITION, id=4)
    ),
    "unsubscribed": dict(id=14, unsubscribe=dict()),
    "pushed": dict(push=dict(FEED, pub=PUBLICATION)),
    "pushed, with a number for the channel": dict(push=dict(id=4, pub=PUBLICATION)),
    "history": dict(id=15, history=dict(publications=[PUBLICATION], epoch="12", offset=7)),
    "presence": dict(id=17, presence=dict(presence={"n-1": dict(user="ann", client="n-1", conn_info=b"{}")})),
    "presence stats": dict(id=18, presence_stats=dict(num_clients=1, num_users=1)),
    "acknowledged": dict(id=300, rpc=dict(data=b"{}")),
    "refreshed": dict(id=302, refresh=CLIENT),
    "refused": dict(id=9, error=dict(code=109, message="token expired", temporary=True)),
    "ping": dict(),
}


def keeping_defaults(name):
    """The message type `name`, whose writer keeps a field that was set to its default, as Dart's does."""
    file = descriptor_pb2.FileDescriptorProto.FromString(client_pb2.DESCRIPTOR.serialized_pb)
    file.syntax = "proto2"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}"))


def frame(message):
    """The frame of this one message, in hexadecimal."""
    out = io.BytesIO()
    proto.serialize_length_prefixed(message, out)
    return out.getvalue().hex()


print("# Made by tests/phones/frames.py: who sends it | what it is | the frame.")
for sender, kind, messages in [
    ("centrifuge-swift 0.9.0 at a194bd7", client_pb2.Command, SWIFT),
    ("centrifuge-dart 0.16.0 at 969c3c9", keeping_defaults("Command"), DART),
    ("gateway", client_pb2.Reply, GATEWAY),
]:
    for what, fields in messages.items():
        print(f"{sender} | {what} | {frame(kind(**fields))}")
