-- The truth: users, outboxes, items, follow edges, shields, and what is addressed to readers.
--
-- A migration is never edited once it was released. Later ones only add, so that the version before them goes on
-- working beside the new one during a deploy.
--
-- Numbers: users are `integer` (two billion of them). Counts from 1 (seq, generation) are `bigint` as they are.
-- Item ids are all of u64 and stand here with their sign bit flipped, so that bigint sorts as u64 does:
-- id 0 is -9223372036854775808. Times are Unix milliseconds.

-- How the store is laid out, fixed when it is made.
CREATE TABLE layout (
    one     boolean  PRIMARY KEY DEFAULT true CHECK (one),
    buckets integer  NOT NULL CHECK (buckets > 0)
);

-- Not sequences: what a sequence gives may be given again after a crash unless its taker writes something too.
CREATE TABLE counters (
    name  text   COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO counters VALUES ('users', 0), ('epoch', 0), ('pull', 0);

-- Names never change and are never taken back. Numbers are dense from 1.
CREATE TABLE users (
    no   integer PRIMARY KEY,
    name text    COLLATE "C" NOT NULL UNIQUE
);

-- Names of feeds. They never change and are never taken back. Numbers are dense from 1; 0 is the main feed.
CREATE TABLE feeds (
    id   smallint PRIMARY KEY CHECK (id > 0),
    name text     COLLATE "C" NOT NULL UNIQUE
);

-- A row for each user. Its lock is held by whoever appends to the outbox, and shared by whoever needs the head to
-- stand still: that makes outboxes dense and in commit order.
CREATE TABLE authors (
    author     integer PRIMARY KEY,
    head       bigint  NOT NULL DEFAULT 0,
    -- Since when push is outstanding: null is not, 0 is reopened, -1 is reopened and somebody was told so. This is the
    -- event of an append.
    due        bigint,
    -- The last number that was given to somebody who was told of reopened work. Only who has that number finishes it.
    redo       bigint  NOT NULL DEFAULT 0,
    -- The greatest display key among adds of lane 0, and whether any add stands in lane 1.
    last_rank  bigint,
    last_item  bigint,
    has_aside  boolean NOT NULL DEFAULT false,
    -- The greatest id that was given to an item of this author.
    last_given bigint,
    -- 0 auto, 1 push, 2 pull, 3 everyone.
    class      smallint NOT NULL DEFAULT 0,
    -- The head when the author became everyone's: whoever has no edge follows from there.
    everyone_since bigint,
    -- The number of the newest record of route pull.
    last_pull  bigint  NOT NULL DEFAULT 0,
    -- The number of the newest of them that is not history.
    last_told  bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX authors_due ON authors (due, author) WHERE due IS NOT NULL;
-- Who has something new to pull, and who has something of which readers are told.
CREATE INDEX authors_pulled ON authors (last_pull, author) WHERE last_pull > 0;
CREATE INDEX authors_told ON authors (last_told, author) WHERE last_told > 0;
CREATE INDEX authors_everyone ON authors (author) WHERE everyone_since IS NOT NULL;

-- How many edges to an author are in effect: the sum of its rows, each of which may be negative. A connection of the
-- server counts in a row of its own, or nearly, so that follows of one author do not wait for each other.
-- To count again, in one transaction: LOCK TABLE edges IN SHARE MODE; DELETE FROM follower_counts;
-- INSERT INTO follower_counts SELECT author, 0, count(*) FROM edges WHERE is_on GROUP BY author.
CREATE TABLE follower_counts (
    author    integer  NOT NULL,
    slot      smallint NOT NULL,
    followers bigint   NOT NULL,
    PRIMARY KEY (author, slot)
) WITH (fillfactor = 50);

-- A row for each user. Its lock is held by whoever changes one of the reader's edges.
CREATE TABLE readers (
    reader  integer PRIMARY KEY,
    -- The generation of the newest change of an edge of this reader.
    counter      bigint  NOT NULL DEFAULT 0,
    -- The number of the newest thing that was addressed to the reader.
    direct       bigint  NOT NULL DEFAULT 0,
    -- Since when taking it in is outstanding: its event.
    direct_due   bigint,
    -- All that is outstanding of it is history: nobody is told of it.
    direct_quiet boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX readers_due ON readers (direct_due, reader) WHERE direct_due IS NOT NULL;

-- Outboxes.
CREATE TABLE records (
    author     integer  NOT NULL,
    seq        bigint   NOT NULL,
    item       bigint   NOT NULL,
    rank       bigint   NOT NULL,
    -- When it was accepted.
    at         bigint   NOT NULL,
    -- Of an add: the record that deleted it.
    deleted_by bigint,
    -- 1 add, 2 update, 3 delete.
    op         smallint NOT NULL,
    -- 1 push, 2 pull.
    route      smallint NOT NULL,
    -- Of an add: 0 if it is newer in display order than every add of lane 0 before it in the outbox; else 1. So in
    -- lane 0 both orders are one, and a window of the outbox is a stretch of display order.
    lane       smallint NOT NULL,
    feed       smallint NOT NULL DEFAULT 0,
    -- Of route pull: its number among all records of route pull of all authors, in commit order. See the counter 'pull'.
    pull_seq   bigint,
    -- It was imported: nobody is told of it.
    history    boolean  NOT NULL DEFAULT false,
    PRIMARY KEY (author, seq),
    CONSTRAINT records_pulled CHECK ((route = 2) = (pull_seq IS NOT NULL))
);
-- Adds in outbox order: the backfill of a follow.
CREATE INDEX records_adds ON records (author, feed, seq) WHERE op = 1;
-- Living adds in display order: every page.
CREATE INDEX records_shown ON records (author, feed, lane, rank, item) INCLUDE (seq, route)
    WHERE op = 1 AND deleted_by IS NULL;
CREATE INDEX records_pull ON records (author, feed, pull_seq) WHERE pull_seq IS NOT NULL;

-- What the items say. A deleted one keeps its row, so that its id and its idempotency key stay taken. Route 0 and seq 0
-- are those of a direct item.
CREATE TABLE items (
    id           bigint   PRIMARY KEY,
    author       integer  NOT NULL,
    -- Where its add stands.
    seq          bigint   NOT NULL,
    published_at bigint   NOT NULL,
    rank         bigint   NOT NULL,
    version      integer  NOT NULL,
    route        smallint NOT NULL,
    -- Of the payload it was accepted with.
    fingerprint  bytea    NOT NULL,
    kind         text,
    foreign_id   text     COLLATE "C" UNIQUE,
    -- JSON to the byte as it came; null once it is deleted.
    body         text,
    feed         smallint NOT NULL DEFAULT 0
) WITH (fillfactor = 90);
CREATE INDEX items_direct ON items (id) WHERE route = 0;

-- Idempotency keys: what a retry is told.
CREATE TABLE retries (
    author      integer NOT NULL,
    key         text    COLLATE "C" NOT NULL,
    item        bigint  NOT NULL,
    fingerprint bytea   NOT NULL,
    expires     bigint  NOT NULL,
    PRIMARY KEY (author, key)
);
CREATE INDEX retries_expires ON retries (expires);

-- What is addressed to readers, who count it each for themselves. The add of an item is in it for each of its
-- recipients, who never change.
CREATE TABLE direct (
    reader  integer  NOT NULL,
    seq     bigint   NOT NULL,
    item    bigint   NOT NULL,
    rank    bigint   NOT NULL,
    -- When it was accepted.
    at      bigint   NOT NULL,
    author  integer  NOT NULL,
    feed    smallint NOT NULL,
    -- 1 add, 2 update, 3 delete.
    op      smallint NOT NULL,
    -- Of an add: whether the item is gone.
    deleted boolean  NOT NULL,
    PRIMARY KEY (reader, seq)
);
-- The recipients of an item.
CREATE UNIQUE INDEX direct_recipients ON direct (item, reader) WHERE op = 1;
-- Living ones in display order: every page.
CREATE INDEX direct_shown ON direct (reader, feed, rank, item) INCLUDE (author) WHERE op = 1 AND NOT deleted;

-- Orders the list of followers. A number that is lost with a crash leaves a gap.
CREATE SEQUENCE follows;

-- Follow edges, those that were taken back too: their generation goes on.
CREATE TABLE edges (
    reader     integer  NOT NULL,
    author     integer  NOT NULL,
    generation bigint   NOT NULL,
    -- The author's head when it was set on.
    from_seq   bigint   NOT NULL,
    since      bigint   NOT NULL,
    listed     bigint   NOT NULL,
    -- Since when taking it in is outstanding: the event of a change.
    due        bigint,
    -- reader % layout.buckets
    bucket     smallint NOT NULL,
    -- The edge is in effect: the reader follows, and no shield is up. So a follow is is_on or held_back.
    is_on      boolean  NOT NULL,
    -- The bits of the shields that are up between the two: 1 muted, 2 hidden, 4 and 8 blocked by reader and author.
    shields    smallint NOT NULL DEFAULT 0,
    -- The reader follows, but a shield is up.
    held_back  boolean  NOT NULL DEFAULT false,
    -- All that is outstanding of it is history: nobody is told of it.
    quiet      boolean  NOT NULL DEFAULT false,
    -- Where what came before the follow ends, if that is below from_seq: the follow was imported. Only the follow's own
    -- door goes by it, for others may have records between the two in hand.
    past_seq   bigint,
    PRIMARY KEY (reader, author),
    CONSTRAINT edges_shielded CHECK (CASE WHEN shields = 0 THEN NOT held_back ELSE NOT is_on END)
) WITH (fillfactor = 90);
-- Push: the followers of a bucket, by number.
CREATE INDEX edges_recipients ON edges (author, bucket, reader) INCLUDE (generation, from_seq) WHERE is_on;
-- Whom a reader follows, by time: listed is milliseconds and then a count.
CREATE INDEX edges_follows ON edges (reader, listed) WHERE is_on OR held_back;
-- Who follows an author, by time; those with a shield up apart from the others.
CREATE INDEX edges_followers ON edges (author, listed) WHERE is_on;
CREATE INDEX edges_held_back ON edges (author, listed) WHERE held_back;
CREATE INDEX edges_due ON edges (due, reader, author) WHERE due IS NOT NULL;
-- Outstanding edges by reader: a worker brings all those of a reader together.
CREATE INDEX edges_due_of ON edges (reader, author) WHERE due IS NOT NULL;

-- Shields as those who put them up see them. What they do stands in edges.
CREATE TABLE shields (
    owner  integer  NOT NULL,
    -- 1 mute, 2 hide, 3 block.
    kind   smallint NOT NULL,
    other  integer  NOT NULL,
    since  bigint   NOT NULL,
    listed bigint   NOT NULL,
    PRIMARY KEY (owner, kind, other)
);
CREATE INDEX shields_listed ON shields (owner, kind, listed);
