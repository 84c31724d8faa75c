-- The truth: users, outboxes, items, follow edges.
--
-- Later migrations only add, so that the version before this one goes on working beside it during a deploy.
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
INSERT INTO counters VALUES ('users', 0), ('epoch', 0);

-- Names never change and are never taken back. Numbers are dense from 1.
CREATE TABLE users (
    no   integer PRIMARY KEY,
    name text    COLLATE "C" NOT NULL UNIQUE
);

-- A row for each user. Its lock is held by whoever appends to the outbox, and shared by whoever needs the head to
-- stand still: that makes outboxes dense and in commit order.
CREATE TABLE authors (
    author     integer PRIMARY KEY,
    head       bigint  NOT NULL DEFAULT 0,
    -- Since when push is outstanding: null is not, 0 is reopened. This is the event of an append.
    due        bigint,
    -- The greatest display key among adds of lane 0, and whether any add stands in lane 1.
    last_rank  bigint,
    last_item  bigint,
    has_aside  boolean NOT NULL DEFAULT false,
    -- The greatest id that was given to an item of this author.
    last_given bigint
) WITH (fillfactor = 70);
CREATE INDEX authors_due ON authors (due, author) WHERE due IS NOT NULL;

-- A row for each user. Its lock is held by whoever changes one of the reader's edges.
CREATE TABLE readers (
    reader  integer PRIMARY KEY,
    -- The generation of the newest change of an edge of this reader.
    counter bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

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
    PRIMARY KEY (author, seq)
);
-- Adds in outbox order: the backfill of a follow.
CREATE INDEX records_adds ON records (author, seq) WHERE op = 1;
-- Living adds in display order: every page.
CREATE INDEX records_shown ON records (author, lane, rank, item) INCLUDE (seq, route)
    WHERE op = 1 AND deleted_by IS NULL;

-- What the items say. A deleted one keeps its row, so that its id and its foreign id stay taken.
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
    body         text
) WITH (fillfactor = 90);

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
    is_on      boolean  NOT NULL,
    PRIMARY KEY (reader, author)
) WITH (fillfactor = 90);
-- Push: the followers of a bucket, by number.
CREATE INDEX edges_recipients ON edges (author, bucket, reader) INCLUDE (generation, from_seq) WHERE is_on;
CREATE INDEX edges_following ON edges (reader, generation) WHERE is_on;
CREATE INDEX edges_followers ON edges (author, listed) WHERE is_on;
CREATE INDEX edges_due ON edges (due, reader, author) WHERE due IS NOT NULL;
