"""An app in Python (3.9 or newer): it shows a feed, scrolls up, and goes on where it was after it was killed.

    pip install centrifuge-python
    FEEDGATE_KEY=$(cat data/secrets/api_key) python3 examples/app.py bob bob.json

FILE holds the list and its position between two runs. The line `older` on stdin loads an older page.
"""

import asyncio
import json
import os
import pathlib
import sys
import urllib.error
import urllib.request

from centrifuge import (
    CentrifugeError,
    Client,
    ClientEventHandler,
    StreamPosition,
    SubscriptionEventHandler,
    UnauthorizedError,
)
from feed import Feed, FeedGap

URL = os.environ.get("FEEDGATE_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("FEEDGATE_KEY", "")
SAVE_EVERY_SECS = 1


class App(ClientEventHandler, SubscriptionEventHandler):
    """One reader's feed on this device, and the events of its connection and its subscription."""

    def __init__(self, user, file):
        self.user, self.file = user, pathlib.Path(file)
        self.saved = None  # what the file holds
        self.feed = self.restored()
        self.offered = False  # whether the SDK was given a position before
        websocket = URL.replace("http", "ws", 1) + "/connection/websocket"
        self.client = Client(websocket, events=self, get_token=lambda: asyncio.to_thread(self.token))

    def restored(self):
        """The list that the last run left for this user, or a new one. A file that cannot be used counts as none."""
        try:
            self.saved = self.file.read_text("utf-8")
            kept = json.loads(self.saved)
            if kept["user"] == self.user:
                return Feed.restored(kept["feed"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, LookupError, TypeError) as error:
            print(f"{self.file} cannot be used: {error!r}", file=sys.stderr)
        return Feed()

    def token(self):
        """A real app asks its own backend for a token: only backends hold the key."""
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        address = f"{URL}/v1/users/{self.user}/token"
        request = urllib.request.Request(address, b'{"device_id": "app-python"}', headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)["token"]
        except urllib.error.HTTPError as refusal:
            if refusal.code in (401, 403):
                raise UnauthorizedError(str(refusal)) from refusal  # the SDK stops
            raise

    async def page(self, cursor=None):
        asked = {"limit": 20, "cursor": cursor} if cursor else {"limit": 20}
        return (await self.client.rpc("page", asked)).data

    async def load(self):
        """Page one again. Changes that come meanwhile are held by the feed."""
        self.feed.lost()
        self.feed.reset(await self.page())
        print("loaded page one", flush=True)

    async def repair(self):
        """A gap is repaired by page one, as soon as the connection lets it through."""
        while True:
            try:
                return await self.load()
            except (CentrifugeError, FeedGap) as error:
                print(error, file=sys.stderr)
                await asyncio.sleep(SAVE_EVERY_SECS)

    async def get_state(self, channel):
        """The SDK asks for a position at first, and again when the server cannot go on from that one."""
        if self.offered or self.feed.position is None:
            await self.load()
        else:
            print(f"going on from {self.feed.position['offset']}", flush=True)
        self.offered = True
        return StreamPosition(**self.feed.position)

    async def on_publication(self, ctx):
        try:
            if self.feed.apply(ctx.pub.data, ctx.pub.offset):
                print(ctx.pub.data["op"], ctx.pub.offset, flush=True)
        except FeedGap:
            self.repairing = asyncio.create_task(self.repair())

    async def on_error(self, ctx):
        print(ctx.error, file=sys.stderr)

    async def on_disconnected(self, ctx):
        print(f"stopped for good: {ctx.reason} ({ctx.code})", file=sys.stderr, flush=True)
        os._exit(1)  # sys.exit would wait for the thread that waits for a line

    def write(self, text):
        """Puts a text into the file. A crash leaves the old text there, or the new one, and never a part."""
        new = self.file.with_name(self.file.name + ".new")
        with new.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        new.replace(self.file)

    async def save(self):
        """Stores the list together with its position, and only then acknowledges."""
        text = json.dumps({"user": self.user, "feed": self.feed.stored()})
        if text == self.saved or self.feed.position is None:
            return
        self.write(text)
        self.saved = text
        await self.client.rpc("ack", dict(self.feed.position))

    async def keep_saving(self):
        while True:
            await asyncio.sleep(SAVE_EVERY_SECS)
            try:
                await self.save()
            except OSError as error:  # the next round tries again
                print(f"not saved: {error}", file=sys.stderr)
            except CentrifugeError as error:  # the next acknowledgement says as much
                print(error, file=sys.stderr)

    async def scroll(self):
        """Loads an older page for each line `older`."""
        while line := await asyncio.to_thread(sys.stdin.readline):
            cursor = self.feed.next
            if line.strip() == "older" and cursor is not None:
                try:
                    if not self.feed.append(await self.page(cursor), cursor):
                        print("the feed has changed meanwhile: ask again", flush=True)
                except CentrifugeError as error:
                    print(error, file=sys.stderr)

    async def run(self):
        """Runs until the SDK has stopped for good."""
        data = {"deliver": "items"}
        subscription = self.client.new_subscription("feed", events=self, data=data, get_state=self.get_state)
        await subscription.subscribe()
        await self.client.connect()
        await asyncio.gather(self.keep_saving(), self.scroll())


async def main():
    if len(sys.argv) != 3:
        sys.exit("usage: app.py USER FILE")
    if not KEY:
        sys.exit("set FEEDGATE_KEY to what stands in data/secrets/api_key")
    await App(*sys.argv[1:]).run()


if __name__ == "__main__":
    asyncio.run(main())
