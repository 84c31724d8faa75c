"""The list that a device shows, kept from pages and changes. Python 3.9 or newer, without dependencies.

    feed = Feed(cap, ttl)                      both as the server's settings have them; the main feed has neither
    feed.reset(page)                           page one, from the HTTP API or rpc `page`
    feed.apply(change, offset, epoch)          a publication's data, or an entry of `history` or `changes`
    feed.append(page, cursor)                  an older page, and the `feed.next` that it was asked for with
    feed.lost()                                the position is gone: changes are held until `reset`
    feed.items(now)                            what to show: (rank, id) descending
    feed.people.get(author)                    {"name", "avatar"} as the last page had it, or None
    json.dumps(feed.stored()), Feed.restored(object) to keep it between two runs of an app

feed.js explains the rules; the tests hold all reducers to feed-vectors.json.
"""

import time

HELD_MAX = 1000  # changes held at most while page one is loading
AROUND = ("counts", "own", "ref_item", "ref_gone")  # fields of an item that only pages have


class FeedGap(Exception):
    """Changes are missing between the position and what came; the app loads page one again."""


def place(item):
    """Where an item stands: larger is newer. Ids are 64-bit numbers in strings."""
    return item["rank"], int(item["id"])


def edited(item, shown):
    """An item of a change, with what the last page said around the one that is shown. A change says none of that."""
    whole = {name: value for name, value in item.items() if name not in AROUND}
    return {**whole, **{name: shown[name] for name in AROUND if name in shown}}


class Feed:
    """One feed of one reader. `cap`: items shown at most; `ttl`: milliseconds that an item is shown."""

    def __init__(self, cap=None, ttl=None):
        self.cap, self.ttl = cap, ttl
        self.position = None  # {"epoch", "offset"} of the last change taken in, or None
        self.next = None  # the cursor of the next older page; None at the end
        self.people = {}  # author -> what the last page with an item of the author said of the author
        self._items = {}  # id -> item
        self._bottom = None  # the place of the last item of the last page, unless that was the end
        self._rewritten = 0  # an older page read before this offset lacks what the list knows, or has what is gone
        self._removed = None  # the item that the last change deleted: the next one adds it again if it moves
        self._held = []  # (change, offset, epoch) that came while there was no position

    def reset(self, page):
        """Starts over from page one, then takes in what came meanwhile. False if the list is newer already."""
        position = page["position"]
        if self._is_of(position["epoch"]) and position["offset"] < self.position["offset"]:
            return False
        self._items, self.people, self._bottom, self._removed = {}, {}, None, None
        self.position, self._rewritten = dict(position), position["offset"]
        self._extend(page)
        held, self._held = self._held, []
        for change, offset, epoch in held:
            if epoch is None or self._is_of(epoch):
                self.apply(change, offset, epoch)
        return True

    def append(self, page, cursor):
        """Adds an older page, which was asked for with `cursor`. False if it goes on from another place than the end of the
        list, or was read before changes that the list holds: ask again, with the `next` of now."""
        position = page["position"]
        if cursor != self.next or not self._is_of(position["epoch"]) or position["offset"] < self._rewritten:
            return False
        self._extend(page)
        return True

    def lost(self):
        """The position is worth nothing any more. What is shown stays until `reset`."""
        self.position, self._held = None, []

    def apply(self, change, offset, epoch=None):
        """Takes in one change. True if it was new; raises FeedGap if the one before it is missing."""
        if change["op"] in ("behind", "seen"):
            return False
        if self.position is None:
            self._held = [*self._held[-HELD_MAX + 1 :], (change, offset, epoch)]
            return False
        if epoch is not None and not self._is_of(epoch):
            raise FeedGap(f"epoch {epoch} after {self.position['epoch']}")
        if offset <= self.position["offset"]:
            return False
        if offset != self.position["offset"] + 1:
            raise FeedGap(f"change {offset} after {self.position['offset']}")
        self._change(change)
        self.position["offset"] = offset
        if change["op"] != "add" or not self._reaches(change["item"]):
            self._rewritten = offset
        return True

    def items(self, now=None):
        """What to show, newest first. `now`: Unix time in milliseconds."""
        now = time.time() * 1000 if now is None else now
        return [item for item in self._sorted()[: self.cap] if self.ttl is None or now - item["published_at"] <= self.ttl]

    def stored(self):
        """The feed as an object that JSON can hold."""
        items, people = self._sorted(), self.people
        return {"items": items, "next": self.next, "position": self.position, "bottom": self._bottom, "people": people}

    @classmethod
    def restored(cls, stored, cap=None, ttl=None):
        """A feed as `stored` gave it."""
        feed = cls(cap, ttl)
        feed._items = {item["id"]: item for item in stored["items"]}
        feed.next, feed.position, feed._bottom = stored["next"], stored["position"], stored["bottom"]
        feed.people = stored.get("people", {})
        feed._rewritten = feed.position["offset"] if feed.position else 0
        return feed

    def _is_of(self, epoch):
        return self.position is not None and self.position["epoch"] == epoch

    def _sorted(self):
        return sorted(self._items.values(), key=place, reverse=True)

    def _extend(self, page):
        for item in page["items"]:
            self._keep(item)
            for of in (item, item.get("ref_item")):
                self._meet(of, page.get("people", {}))
        self.next = page["next"]
        if self.next is None:
            self._bottom = None
        elif page["items"]:
            self._bottom = {name: page["items"][-1][name] for name in ("rank", "id")}

    def _reaches(self, item):
        """Whether the place of an item is in the loaded stretch, and not below it."""
        return self._bottom is None or place(item) >= place(self._bottom)

    def _change(self, change):
        op = change["op"]
        removed, self._removed = self._removed, None
        if op == "add":
            item = change["item"]
            if self._reaches(item):
                self._keep(edited(item, removed) if removed and removed["id"] == item["id"] else item)
        elif op == "update":
            shown = self._items.get(change["item"]["id"])
            if shown is not None:
                self._keep(edited(change["item"], shown))
        elif op == "delete":
            self._removed = self._items.pop(change["item_id"], None)
        elif op == "forget":  # items that are addressed to the reader stay
            kept = (item for item in self._items.values() if item["author"] != change["author"] or item.get("direct"))
            self._items = {item["id"]: item for item in kept}
            if "floor" in change and self._reaches(change["floor"]):
                self._cut(change["floor"], change["next"])
        else:
            raise ValueError(f"a change has op add, update, delete, forget or behind, not {op!r}")

    def _cut(self, floor, following):
        """Ends the loaded stretch above `floor`; the page of the cursor `following` goes on with it."""
        self._items = {id: item for id, item in self._items.items() if place(item) > place(floor)}
        self._bottom, self.next = dict(floor), following

    def _meet(self, item, people):
        """Keeps what a page says of the author of an item on it, if it has the item."""
        if item is None:
            return
        if item["author"] in people:
            self.people[item["author"]] = people[item["author"]]
        else:
            self.people.pop(item["author"], None)

    def _keep(self, item):
        """A page may know a later version than a change that comes after it."""
        held = self._items.get(item["id"])
        if held is None or held["version"] <= item["version"]:
            self._items[item["id"]] = item
