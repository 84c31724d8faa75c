"""The reducer of feed.py takes the steps of feed-vectors.json.

    python3 examples/feed_test.py
"""

import json
import pathlib
import unittest

from feed import AROUND, Feed, FeedGap

VECTORS = json.loads(pathlib.Path(__file__).with_name("feed-vectors.json").read_text("utf-8"))


def take(feed, step):
    """Takes one step other than `restart`, and answers what it answered."""
    try:
        if "reset" in step:
            return feed.reset(step["reset"])
        if "append" in step:
            return feed.append(step["append"], step["cursor"])
        if "lost" in step:
            return feed.lost()
        return feed.apply(step["apply"], **step["at"])
    except FeedGap:
        return "gap"
    except ValueError:
        return "unknown op"


class Vectors(unittest.TestCase):
    def test_every_vector(self):
        for vector in VECTORS:
            with self.subTest(vector["name"]):
                self.walk(vector.get("limits", {}), vector["steps"])

    def walk(self, limits, steps):
        feed = Feed(**limits)
        for step in steps:
            answers = None
            if "restart" in step:
                feed = Feed.restored(json.loads(json.dumps(feed.stored())), **limits)
            else:
                answers = take(feed, step)
            items = feed.items(step.get("now"))
            seen = {
                "answers": answers,
                "shows": [item["id"] for item in items],
                "bodies": [item["body"] for item in items],
                "around": [{name: item[name] for name in AROUND if name in item} for item in items],
                "people": feed.people,
                "position": feed.position,
                "next": feed.next,
                "items": items,
            }
            for what in seen.keys() & step.keys():
                self.assertEqual(seen[what], step[what], f"{what} after {step}")


if __name__ == "__main__":
    unittest.main()
