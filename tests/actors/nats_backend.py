"""A backend that speaks NATS with the unmodified nats-py: it writes, and reads what it wrote as events.

    nats_backend.py NATS_URL        prints one JSON object: what it was answered, told and refused
"""

import asyncio
import json
import sys

import nats
from nats.js.api import ConsumerConfig, DeliverPolicy

PATIENT = 60  # seconds for an answer: a machine under load is slow
FROM_THE_START = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)


async def read(stream, subject, count):
    """The first messages of a stream: their subjects, headers and data."""
    subscription = await stream.subscribe(subject, ordered_consumer=True, config=FROM_THE_START)
    messages = [await subscription.next_msg(timeout=PATIENT) for _ in range(count)]
    await subscription.unsubscribe()
    return messages


async def main(url):
    connection = await nats.connect(url)
    stream = connection.jetstream(timeout=PATIENT)

    async def put(subject, body, key=None):
        headers = {"Nats-Msg-Id": key} if key else None
        data = b"" if body is None else json.dumps(body).encode()
        return await stream.publish(f"feed.in.{subject}", data, headers=headers)

    await put("follow.ann.bob%2Esmith", None)
    post = {"author": "bob.smith", "body": {"text": "one"}, "foreign_id": "post/1"}
    again = [(await put("publish", post, key="order-7")).duplicate for _ in range(2)]
    await put("edit.foreign:post/1", {"body": {"text": "two"}})
    await put("publish", {"author": "not a user", "body": 1})
    [refused] = await read(stream, "feed.refused.>", 1)
    call = {"author": "eve", "body": {"text": "asked"}}
    answer = await connection.request("feed.call.publish", json.dumps(call).encode(), timeout=PATIENT)
    events = await read(stream, "feed.event.>", 4)
    print(json.dumps({
        "duplicates": [bool(duplicate) for duplicate in again],
        "refused": json.loads(refused.headers["Feed-Problem"]),
        "answered": {"status": answer.headers["Feed-Status"], "id": json.loads(answer.data)["id"]},
        "events": [{"subject": event.subject, **json.loads(event.data)} for event in events],
    }))
    await connection.close()


asyncio.run(main(sys.argv[1]))
