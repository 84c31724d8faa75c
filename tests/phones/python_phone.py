"""A phone that runs the unmodified centrifuge-python SDK, as tests/actors/foreign.js tells it to.

    python_phone.py WEBSOCKET_URL      (CONNECT in the environment)

With FEEDGATE_PROTOCOL=protobuf it speaks Protobuf, and `data` is JSON as bytes.
"""

import asyncio
import json
import os
import sys

from centrifuge import CentrifugeError, Client, ClientEventHandler, ReplyError, StreamPosition, SubscriptionEventHandler

PROTOBUF = os.environ.get("FEEDGATE_PROTOCOL") == "protobuf"
PATIENT = 60  # seconds for an answer: a machine under load is slow
QUICK = {"min_resubscribe_delay": 0.02, "max_resubscribe_delay": 0.2}


def pack(value):
    return json.dumps(value).encode() if PROTOBUF else value


def unpack(data):
    return json.loads(data) if PROTOBUF and data is not None else data


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def failure(error):
    """An error as the journeys get it; the code is 0 if the server did not send it."""
    while error.__cause__ is not None and not isinstance(error, ReplyError):
        error = error.__cause__
    return {"code": getattr(error, "code", 0) or 0, "message": f"{type(error).__name__}: {error}"}


class Connection(ClientEventHandler):
    async def on_connecting(self, ctx):
        tell("connecting", code=ctx.code, reason=ctx.reason)

    async def on_connected(self, ctx):
        tell("connected")

    async def on_disconnected(self, ctx):
        tell("disconnected", code=ctx.code, reason=ctx.reason)

    async def on_error(self, ctx):
        tell("error", **failure(ctx.error))


class Channel(SubscriptionEventHandler):
    def __init__(self, channel):
        self.channel = channel

    async def on_subscribed(self, ctx):
        how = {"recovered": ctx.recovered, "wasRecovering": ctx.was_recovering, "data": unpack(ctx.data)}
        tell("subscribed", channel=self.channel, **how)

    async def on_unsubscribed(self, ctx):
        tell("unsubscribed", channel=self.channel, code=ctx.code, reason=ctx.reason)

    async def on_publication(self, ctx):
        tell("publication", channel=self.channel, offset=ctx.pub.offset, data=unpack(ctx.pub.data))

    async def on_error(self, ctx):
        tell("error", channel=self.channel, **failure(ctx.error))


class Phone:
    def __init__(self, url, connect):
        self.asked = {}
        self.tasks = set()
        token = {"token": connect["token"]} if "token" in connect else {"get_token": self.ask}
        self.client = Client(
            url,
            events=Connection(),
            data=pack(connect["data"]),
            min_reconnect_delay=0.02,
            max_reconnect_delay=0.2,
            timeout=PATIENT,
            use_protobuf=PROTOBUF,
            **token,
        )

    async def ask(self, **what):
        """What the app answers when the SDK asks it for a token or a position."""
        answer = asyncio.get_running_loop().create_future()
        self.asked[len(self.asked) + 1] = answer
        tell("ask", id=len(self.asked), **what)
        return await answer

    async def state(self, channel):
        return StreamPosition(**await self.ask(channel=channel))

    def answer(self, id, value=None, error=None):
        if error is None:
            self.asked[id].set_result(value)
        else:
            self.asked[id].set_exception(RuntimeError(error))

    async def reply(self, id, call):
        try:
            tell("reply", id=id, value=await call)
        except CentrifugeError as error:
            tell("reply", id=id, error=failure(error))

    async def rpc(self, method, data):
        return {"data": unpack((await self.client.rpc(method, pack(data))).data)}

    async def history(self, channel, since, limit):
        subscription = self.client.get_subscription(channel)
        found = await subscription.history(limit=limit, since=StreamPosition(**since))
        publications = [{"offset": one.offset, "data": unpack(one.data)} for one in found.publications]
        return {"publications": publications, "offset": found.offset}

    async def subscribe(self, channel, data, state, since=None):
        assert since is None, "this SDK takes a position by get_state alone"
        subscription = self.client.new_subscription(
            channel, events=Channel(channel), data=pack(data), get_state=self.state if state else None, **QUICK
        )
        await subscription.subscribe()

    def carry_out(self, message):
        verb = message.pop("do")
        if verb == "answer":
            return self.answer(**message)
        if verb in ("rpc", "history"):
            id = message.pop("id")
            step = self.reply(id, getattr(self, verb)(**message))
        elif verb == "subscribe":
            step = self.subscribe(**message)
        else:
            step = getattr(self.client, verb)()
        task = asyncio.create_task(step)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


async def main():
    phone = Phone(sys.argv[1], json.loads(os.environ["CONNECT"]))
    stdin = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    while line := await stdin.readline():
        phone.carry_out(json.loads(line))


asyncio.run(main())
