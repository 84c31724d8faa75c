//! The checks of the rows of a database, as SQL.
//!
//! The id of an item is shown as the API shows it: the column is a bigint whose sign bit is flipped.

/// A check of rows.
pub(super) struct Rule {
    /// What the check is about, in words.
    pub(super) name: &'static str,
    /// The table that is looked at.
    pub(super) rows: &'static str,
    /// Gives a row with the column `finding` for each thing that is wrong.
    pub(super) wrong: &'static str,
}

/// The id of an item from its column.
macro_rules! id {
    ($column:literal) => {
        concat!("(", $column, "::numeric + 9223372036854775808)")
    };
}

/// Whether the item that a column names lives.
macro_rules! lives {
    ($column:literal) => {
        concat!("EXISTS (SELECT FROM items i WHERE i.id = ", $column, " AND i.body IS NOT NULL)")
    };
}

/// Finds items that do not live and have rows in a table of reactions or comments for ever. Such rows are removed in
/// steps; until all are removed, the item has a row in `reaction_ends`, for comments too.
macro_rules! endless {
    ($table:literal) => {
        concat!(
            "SELECT format('item %s has ",
            $table,
            ", does not live and has no end', ",
            id!("gone.item"),
            ")
FROM (SELECT DISTINCT item FROM ",
            $table,
            ") AS gone
WHERE NOT ",
            lives!("gone.item"),
            " AND NOT EXISTS (SELECT FROM reaction_ends e WHERE e.item = gone.item)"
        )
    };
}

pub(super) const CHECKS: [Rule; 14] = [
    Rule { name: "names of users", rows: "users", wrong: USERS },
    Rule { name: "items", rows: "items", wrong: ITEMS },
    Rule { name: "outboxes", rows: "records", wrong: OUTBOXES },
    Rule { name: "what is addressed to readers", rows: "direct", wrong: DIRECT },
    Rule { name: "edges", rows: "edges", wrong: EDGES },
    Rule { name: "follower counts", rows: "follower_counts", wrong: FOLLOWERS },
    Rule { name: "reactions", rows: "reactions", wrong: REACTIONS },
    Rule { name: "comments", rows: "comments", wrong: COMMENTS },
    Rule { name: "reposts", rows: "repost_counts", wrong: REPOSTS },
    Rule { name: "versions of items", rows: "item_versions", wrong: VERSIONS },
    Rule { name: "lines of notifications", rows: "lines", wrong: LINES },
    Rule { name: "audiences", rows: "audiences", wrong: AUDIENCES },
    Rule { name: "push notices", rows: "push_notices", wrong: NOTICES },
    Rule { name: "the index of search", rows: "search_marks", wrong: SEARCH },
];

const USERS: &str = r#"
SELECT format('%s users have a name, and %s numbers were given', named.n, c.value) AS finding
FROM (SELECT count(*) AS n FROM users) AS named, counters c WHERE c.name = 'users' AND c.value <> named.n
UNION ALL
SELECT format('user %s has rows in %s and no name', used.no, used.place) FROM (
    SELECT author AS no, 'authors' AS place FROM authors
    UNION SELECT reader, 'readers' FROM readers
    UNION SELECT reader, 'edges' FROM edges UNION SELECT author, 'edges' FROM edges
    UNION SELECT owner, 'shields' FROM shields UNION SELECT other, 'shields' FROM shields
    UNION SELECT owner, 'lists' FROM lists UNION SELECT member, 'lists' FROM lists
    UNION SELECT "user", 'people' FROM people
    UNION SELECT "user", 'pins' FROM pins
    UNION SELECT reader, 'reactions' FROM reactions
    UNION SELECT author, 'comments' FROM comments
    UNION SELECT reader, 'push_devices' FROM push_devices
) AS used WHERE NOT EXISTS (SELECT FROM users u WHERE u.no = used.no)"#;

const ITEMS: &str = concat!(
    "SELECT format('item %s has no add at record %s of author %s', ",
    id!("i.id"),
    ", i.seq, i.author) AS finding
FROM items i WHERE i.route <> 0
    AND NOT EXISTS (SELECT FROM records r WHERE r.author = i.author AND r.seq = i.seq AND r.op = 1 AND r.item = i.id)
UNION ALL
SELECT format('item %s and its add differ in whether it lives', ",
    id!("i.id"),
    ")
FROM items i JOIN records r ON r.author = i.author AND r.seq = i.seq
WHERE i.route <> 0 AND (i.body IS NULL) <> (r.deleted_by IS NOT NULL)"
);

/// The add of an imported item that is deleted has the greatest bigint as `deleted_by` until the import reads the line
/// of the delete.
const OUTBOXES: &str = concat!(
    "SELECT format('the outbox of author %s has %s records and ends at %s, and its head is %s',
              author, coalesce(r.n, 0), coalesce(r.last, 0), coalesce(a.head, 0)) AS finding
FROM (SELECT author, count(*) AS n, max(seq) AS last FROM records GROUP BY author) AS r
FULL JOIN authors a USING (author)
WHERE coalesce(r.n, 0) <> coalesce(a.head, 0) OR coalesce(r.last, 0) <> coalesce(a.head, 0)
UNION ALL
SELECT format('record %s of author %s is of item %s, which is not there', r.seq, r.author, ",
    id!("r.item"),
    ")
FROM records r WHERE NOT EXISTS (SELECT FROM items i WHERE i.id = r.item)
UNION ALL
SELECT format('the add of item %s at record %s of author %s is ended by record %s, which is no delete of it', ",
    id!("r.item"),
    ", r.seq, r.author, r.deleted_by)
FROM records r WHERE r.deleted_by < 9223372036854775807 AND NOT EXISTS (
    SELECT FROM records d WHERE d.author = r.author AND d.seq = r.deleted_by AND d.op = 3 AND d.item = r.item
)"
);

/// After a ranked item was deleted, it is removed from rankings in steps. Until that is done, the item has a row in
/// `ranking_due`.
const DIRECT: &str = concat!(
    "SELECT format('what was addressed to reader %s ends at %s, and the last number given is %s',
              d.reader, d.last, coalesce(r.direct, 0)) AS finding
FROM (SELECT reader, max(seq) AS last FROM direct GROUP BY reader) AS d LEFT JOIN readers r USING (reader)
WHERE d.last > coalesce(r.direct, 0)
UNION ALL
SELECT format('record %s addressed to reader %s is of item %s, which is not there', d.seq, d.reader, ",
    id!("d.item"),
    ")
FROM direct d WHERE NOT EXISTS (SELECT FROM items i WHERE i.id = d.item)
UNION ALL
SELECT format('item %s is deleted, and its add to reader %s is not', ",
    id!("d.item"),
    ", d.reader)
FROM direct d JOIN items i ON i.id = d.item
WHERE d.op = 1 AND NOT d.deleted AND i.body IS NULL
    AND NOT (d.ranked AND EXISTS (SELECT FROM ranking_due w WHERE w.item = d.item))"
);

/// The bits of `shields` are those of the edge: 1 muted, 2 hidden, 4 and 8 blocked by reader and author.
const EDGES: &str = "
SELECT format('the edge from %s to %s is in bucket %s', e.reader, e.author, e.bucket) AS finding
FROM edges e, layout WHERE e.bucket <> e.reader % layout.buckets
UNION ALL
SELECT format('the edge from %s to %s has generation %s, and the counter of its reader is %s',
              e.reader, e.author, e.generation, coalesce(r.counter, 0))
FROM edges e LEFT JOIN readers r USING (reader) WHERE e.generation > coalesce(r.counter, 0)
UNION ALL
SELECT format('the edge from %s to %s begins at %s, and the outbox ends at %s',
              e.reader, e.author, e.from_seq, coalesce(a.head, 0))
FROM edges e LEFT JOIN authors a USING (author) WHERE e.is_on AND e.from_seq > coalesce(a.head, 0)
UNION ALL
SELECT format('the row of author %s says %s of its edge to itself, and the edge says %s', a.author, a.own_edge,
              coalesce(e.is_on OR e.held_back, false))
FROM authors a LEFT JOIN edges e ON e.reader = a.author AND e.author = a.author
WHERE a.own_edge <> coalesce(e.is_on OR e.held_back, false)
UNION ALL
SELECT format('the edge from %s to %s is a request, and %s', reader, author,
              CASE WHEN is_on OR held_back THEN 'a follow' ELSE 'behind a block' END)
FROM edges WHERE asked AND (is_on OR held_back OR shields & 12 <> 0)
UNION ALL
SELECT format('author %s is private, and everyone follows it', author)
FROM authors WHERE private AND everyone_since IS NOT NULL
UNION ALL
SELECT format('the edge from %s to %s has the shields %s, and the lists say %s', reader, author, e.shields, s.shields)
FROM edges e FULL JOIN (
    SELECT reader, author, sum(DISTINCT bit)::smallint AS shields FROM (
        SELECT owner AS reader, other AS author, CASE kind WHEN 1 THEN 1 ELSE 4 END AS bit
        FROM shields WHERE kind IN (1, 3)
        UNION ALL
        SELECT other, owner, CASE kind WHEN 2 THEN 2 ELSE 8 END FROM shields WHERE kind IN (2, 3)
    ) AS bits GROUP BY reader, author
) AS s USING (reader, author)
WHERE coalesce(e.shields, 0) <> coalesce(s.shields, 0)";

/// An author has an edge to itself if own posts are on, and is no follower of itself.
const FOLLOWERS: &str = "
SELECT format('author %s has %s followers, and %s are counted', author, coalesce(e.n, 0), coalesce(c.n, 0)) AS finding
FROM (SELECT author, count(*) AS n FROM edges WHERE is_on AND reader <> author GROUP BY author) AS e
FULL JOIN (SELECT author, sum(followers) AS n FROM follower_counts GROUP BY author) AS c USING (author)
WHERE coalesce(e.n, 0) <> coalesce(c.n, 0)";

const REACTIONS: &str = concat!(
    "SELECT format('%s users have given %L to item %s, and %s are counted', coalesce(r.n, 0), kind, ",
    id!("item"),
    ", coalesce(c.n, 0)) AS finding
FROM (SELECT item, kind, count(*) AS n FROM reactions GROUP BY item, kind) AS r
FULL JOIN (SELECT item, kind, sum(count) AS n FROM reaction_counts GROUP BY item, kind) AS c USING (item, kind)
WHERE coalesce(r.n, 0) <> coalesce(c.n, 0) AND ",
    lives!("item"),
    "
UNION ALL
",
    endless!("reactions")
);

/// A comment stands in its list if it lives or has answers that stand. One that was deleted before its answers goes on
/// standing, with one answer counted, when the last of them goes.
const COMMENTS: &str = concat!(
    "SELECT format('item %s has %s comments, and %s are counted', ",
    id!("item"),
    ", coalesce(c.n, 0), coalesce(t.count, 0)) AS finding
FROM (SELECT item, count(body) AS n FROM comments GROUP BY item) AS c FULL JOIN talks t USING (item)
WHERE coalesce(c.n, 0) <> coalesce(t.count, 0)
    AND ",
    lives!("item"),
    "
UNION ALL
SELECT format('comment %s on item %s has %s answers, and %s are counted', ",
    id!("c.id"),
    ", ",
    id!("c.item"),
    ", coalesce(a.n, 0), c.replies)
FROM comments c LEFT JOIN (
    SELECT reply_to, count(*) AS n FROM comments WHERE body IS NOT NULL OR replies > 0 GROUP BY reply_to
) AS a ON a.reply_to = c.id
WHERE c.replies <> coalesce(a.n, 0) AND NOT (c.body IS NULL AND c.replies = 1 AND a.n IS NULL)
    AND ",
    lives!("c.item"),
    "
UNION ALL
",
    endless!("comments")
);

/// A shard is chosen by the id of the repost. Reposts of an item that does not live are counted too.
const REPOSTS: &str = concat!(
    "SELECT format('item %s has %s reposts in shard %s, and %s are counted', ",
    id!("item"),
    ", coalesce(r.n, 0), shard, coalesce(c.n, 0)) AS finding
FROM (SELECT repost_of AS item, (id & 31)::smallint AS shard, count(*) AS n FROM items
      WHERE repost_of IS NOT NULL AND body IS NOT NULL GROUP BY 1, 2) AS r
FULL JOIN (SELECT item, shard, count AS n FROM repost_counts) AS c USING (item, shard)
WHERE coalesce(r.n, 0) <> coalesce(c.n, 0)"
);

/// Of an item that lives, the newest twenty bodies are kept.
const VERSIONS: &str = concat!(
    "SELECT format('version %s of item %s is kept, and the item has version %s', v.version, ",
    id!("v.item"),
    ", coalesce(i.version, 0)) AS finding
FROM item_versions v LEFT JOIN items i ON i.id = v.item AND i.body IS NOT NULL
WHERE v.version > coalesce(i.version, 0)
UNION ALL
SELECT format('item %s has %s versions', ",
    id!("item"),
    ", count(*))
FROM item_versions GROUP BY item HAVING count(*) > 20"
);

/// If the item of a line was deleted by itself, the count may differ from the members. So only lines whose item lives
/// are compared.
const LINES: &str = concat!(
    "SELECT format('line %s has %s members, and %s are counted', ",
    id!("l.id"),
    ", coalesce(m.n, 0), l.count) AS finding
FROM lines l LEFT JOIN (SELECT line, count(*) AS n FROM line_members GROUP BY line) AS m ON m.line = l.id
WHERE l.count <> coalesce(m.n, 0) AND ",
    lives!("l.item"),
    "
UNION ALL
SELECT format('line %s has a member and is not there', ",
    id!("m.line"),
    ")
FROM (SELECT DISTINCT line FROM line_members) AS m WHERE NOT EXISTS (SELECT FROM lines l WHERE l.id = m.line)
UNION ALL
SELECT format('line %s is told by item %s, which is not there', ",
    id!("l.id"),
    ", ",
    id!("l.item"),
    ")
FROM lines l WHERE NOT EXISTS (SELECT FROM items i WHERE i.id = l.item)"
);

/// Route 3 is that of items with an audience.
const AUDIENCES: &str = concat!(
    "SELECT format('item %s is for an audience and has none', ",
    id!("i.id"),
    ") AS finding
FROM items i WHERE i.route = 3 AND i.body IS NOT NULL AND NOT EXISTS (SELECT FROM audiences a WHERE a.item = i.id)
UNION ALL
SELECT format('the audience of item %s is of no item that has one', ",
    id!("a.item"),
    ")
FROM audiences a WHERE NOT EXISTS (SELECT FROM items i WHERE i.id = a.item AND i.route = 3)"
);

const NOTICES: &str = "
SELECT format('user %s has a device, and is not known to have one', d.reader) AS finding
FROM (SELECT DISTINCT reader FROM push_devices) AS d
WHERE NOT EXISTS (SELECT FROM readers r WHERE r.reader = d.reader AND r.listens)
UNION ALL
SELECT format('the notice of user %s in feed %s is of a user who is not there', n.reader, n.feed)
FROM push_notices n WHERE NOT EXISTS (SELECT FROM users u WHERE u.no = n.reader)";

/// Subject 0 is items. An item that the index has yet to take in or to drop has a row in `search_due`. An index that is
/// being built (another stage than 0) lacks items, so the first query skips it.
const SEARCH: &str = concat!(
    "SELECT format('item %s lives and is not in the index', ",
    id!("i.id"),
    ") AS finding
FROM items i, search_state s
WHERE s.stage = 0 AND i.body IS NOT NULL
    AND NOT EXISTS (SELECT FROM search_marks m WHERE m.subject = 0 AND m.id = i.id)
    AND NOT EXISTS (SELECT FROM search_due d WHERE d.subject = 0 AND d.id = i.id)
UNION ALL
SELECT format('item %s is in the index and does not live', ",
    id!("m.id"),
    ")
FROM search_marks m
WHERE m.subject = 0 AND NOT ",
    lives!("m.id"),
    "
    AND NOT EXISTS (SELECT FROM search_due d WHERE d.subject = 0 AND d.id = m.id)"
);
