"""A phone that runs the unmodified centrifuge-python SDK.

    python_phone.py WEBSOCKET_URL {CHANNEL: POSITION, ...}      (TOKEN in the environment)

It prints a line of JSON for each change, each subscription and each error, until it is killed. With
FEEDGATE_PROTOCOL=protobuf it speaks Protobuf, and `data` is JSON as bytes.
"""

import asyncio
import json
import os
import sys

from centrifuge import Client, ClientEventHandler, StreamPosition, SubscriptionEventHandler


PROTOBUF = os.environ.get("FEEDGATE_PROTOCOL") == "protobuf"


def pack(value):
    return json.dumps(value).encode() if PROTOBUF else value


def unpack(data):
    return json.loads(data) if PROTOBUF else data


def tell(**line):
    print(json.dumps(line), flush=True)


class Connection(ClientEventHandler):
    async def on_error(self, ctx):
        tell(error=str(ctx.error))

    async def on_disconnected(self, ctx):
        tell(error=f"disconnected {ctx.code} {ctx.reason}")


class Subscription(SubscriptionEventHandler):
    def __init__(self, channel):
        self.channel = channel

    async def on_subscribed(self, ctx):
        tell(channel=self.channel, subscribed={"recovered": ctx.recovered, "was_recovering": ctx.was_recovering})

    async def on_publication(self, ctx):
        tell(channel=self.channel, offset=ctx.pub.offset, change=unpack(ctx.pub.data))

    async def on_error(self, ctx):
        tell(error=str(ctx.error))


async def main():
    url, positions = sys.argv[1], json.loads(sys.argv[2])

    async def get_state(channel):
        return StreamPosition(**positions[channel])

    client = Client(
        url,
        events=Connection(),
        token=os.environ["TOKEN"],
        min_reconnect_delay=0.05,
        max_reconnect_delay=0.2,
        use_protobuf=PROTOBUF,
    )
    await client.connect()
    for channel in positions:
        subscription = client.new_subscription(
            channel,
            events=Subscription(channel),
            data=pack({"deliver": "items"}),
            min_resubscribe_delay=0.05,
            max_resubscribe_delay=0.2,
            get_state=get_state,
        )
        await subscription.subscribe()
    await asyncio.Event().wait()


asyncio.run(main())
