"""A phone that runs the unmodified centrifuge-python SDK.

    python_phone.py WEBSOCKET_URL POSITION      (TOKEN in the environment)

It prints a line of JSON for each change, each subscription and each error, until it is killed.
"""

import asyncio
import json
import os
import sys

from centrifuge import Client, ClientEventHandler, StreamPosition, SubscriptionEventHandler


def tell(**line):
    print(json.dumps(line), flush=True)


class Connection(ClientEventHandler):
    async def on_error(self, ctx):
        tell(error=str(ctx.error))

    async def on_disconnected(self, ctx):
        tell(error=f"disconnected {ctx.code} {ctx.reason}")


class Subscription(SubscriptionEventHandler):
    async def on_subscribed(self, ctx):
        tell(subscribed={"recovered": ctx.recovered, "was_recovering": ctx.was_recovering})

    async def on_publication(self, ctx):
        tell(offset=ctx.pub.offset, change=ctx.pub.data)

    async def on_error(self, ctx):
        tell(error=str(ctx.error))


async def main():
    url, position = sys.argv[1], json.loads(sys.argv[2])

    async def get_state(_channel):
        return StreamPosition(offset=position["offset"], epoch=position["epoch"])

    client = Client(url, events=Connection(), token=os.environ["TOKEN"], min_reconnect_delay=0.05, max_reconnect_delay=0.2)
    subscription = client.new_subscription(
        "feed",
        events=Subscription(),
        data={"deliver": "items"},
        min_resubscribe_delay=0.05,
        max_resubscribe_delay=0.2,
        get_state=get_state,
    )
    await client.connect()
    await subscription.subscribe()
    await asyncio.Event().wait()


asyncio.run(main())
