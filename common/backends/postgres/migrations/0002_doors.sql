-- Pull, direct items, shields and classes: what a feed holds that is not pushed, and what keeps things out of it. And feeds
-- that have a name, beside the main one.
--
-- It only adds. It runs in one transaction with the tables locked: everything waits for it, for as long as the server
-- takes to read edges twice and records three times (some minutes for 100 million of each). It indexes no record that is
-- there already: what is new has indexes of its own.
--
-- A deploy. Nodes of the version before go on beside this one: they read, publish, follow and push as they did.
--   1. Start this version node by node, with a pull threshold that no author reaches, and use nothing that is new
--      (classes, audiences, shields, named feeds): only nodes of this version have the routes for it.
--   2. Once every node is of this version: set the threshold, use what is new, and count followers again by the
--      statement at the end of this file, since follows through the old nodes are not in the counts. (Either route of an
--      item is right at any time, so a wrong count costs speed, never content.)
-- What an old node would do wrong to what is new, if it were used too early, the tables refuse: it answers an error and
-- nothing has happened.
--   - An edit or a delete of a pulled item without a number, which no reader would ever take in: records_pulled.
--   - A follow that sees no shield: edges_shielded.
--   - An edit or a delete of a direct item, which it would write into the author's outbox: it knows no route 0.
--   - An edit or a delete of an item of a named feed, which it would write into the main one: it knows no route below 0.
--   - A push of a record of a named feed, which it would bring to the main one: it knows no op below 0. For the same reason
--     no page and no rebuild of it shows such an item.
-- What they do not refuse: an old node pushes what an author of class pull or everyone publishes through it (readers who
-- follow only as everyone does would miss that), shows direct items to whoever knows their id, rebuilds inboxes without
-- saying how far they have pulled, and puts what it accepts into the main feed, whatever its kind. Hence step 1.
-- This version does not use edges_following; the next one may drop it.

INSERT INTO counters VALUES ('pull', 0);

-- Names of feeds. They never change and are never taken back. Numbers are dense from 1; 0 is the main feed.
CREATE TABLE feeds (
    id   smallint PRIMARY KEY CHECK (id > 0),
    name text     COLLATE "C" NOT NULL UNIQUE
);

ALTER TABLE authors
    -- 0 auto, 1 push, 2 pull, 3 everyone.
    ADD COLUMN class          smallint NOT NULL DEFAULT 0,
    -- The head when the author became everyone's: whoever has no edge follows from there.
    ADD COLUMN everyone_since bigint,
    -- The number of the newest record of route pull.
    ADD COLUMN last_pull      bigint   NOT NULL DEFAULT 0,
    -- The number of the newest of them that is not history.
    ADD COLUMN last_told      bigint   NOT NULL DEFAULT 0,
    -- due is -1 once somebody was told that it is reopened. The last number that such a one was given: who finishes it has it.
    ADD COLUMN redo           bigint   NOT NULL DEFAULT 0;
-- Who has something new to pull, and who has something of which readers are told.
CREATE INDEX authors_pulled ON authors (last_pull, author) WHERE last_pull > 0;
CREATE INDEX authors_told ON authors (last_told, author) WHERE last_told > 0;
CREATE INDEX authors_everyone ON authors (author) WHERE everyone_since IS NOT NULL;

-- How many edges to an author are in effect: the sum of its rows, each of which may be negative. A connection of the
-- server counts in a row of its own, or nearly, so that follows of one author do not wait for each other.
CREATE TABLE follower_counts (
    author    integer  NOT NULL,
    slot      smallint NOT NULL,
    followers bigint   NOT NULL,
    PRIMARY KEY (author, slot)
) WITH (fillfactor = 50);

ALTER TABLE readers
    -- The number of the newest thing that was addressed to the reader.
    ADD COLUMN direct       bigint  NOT NULL DEFAULT 0,
    -- Since when taking it in is outstanding: its event.
    ADD COLUMN direct_due   bigint,
    -- All that is outstanding of it is history: nobody is told of it.
    ADD COLUMN direct_quiet boolean NOT NULL DEFAULT false;
CREATE INDEX readers_due ON readers (direct_due, reader) WHERE direct_due IS NOT NULL;

-- The op of a record of a named feed stands with its sign turned, so that what is said of op = 1 is said of the main feed.
ALTER TABLE records
    ADD COLUMN feed     smallint NOT NULL DEFAULT 0,
    -- Of route pull: its number among all records of route pull of all authors, in commit order. See the counter 'pull'.
    ADD COLUMN pull_seq bigint,
    -- It was imported: nobody is told of it.
    ADD COLUMN history  boolean  NOT NULL DEFAULT false,
    ADD CONSTRAINT records_fed CHECK ((op < 0) = (feed <> 0)) NOT VALID,
    ADD CONSTRAINT records_pulled CHECK ((route = 2) = (pull_seq IS NOT NULL)) NOT VALID;
CREATE INDEX records_pull ON records (author, feed, pull_seq) WHERE pull_seq IS NOT NULL;
-- Of named feeds, what records_adds and records_shown are of the main one.
CREATE INDEX records_named_adds ON records (author, feed, seq) WHERE op = -1;
CREATE INDEX records_named_shown ON records (author, feed, lane, rank, item) INCLUDE (seq, route)
    WHERE op = -1 AND deleted_by IS NULL;

-- Route 0 and seq 0 are those of a direct item. The route of any other of a named feed stands with its sign turned.
ALTER TABLE items
    ADD COLUMN feed smallint NOT NULL DEFAULT 0,
    ADD CONSTRAINT items_fed CHECK (route = 0 OR (route < 0) = (feed <> 0)) NOT VALID;
CREATE INDEX items_direct ON items (id) WHERE route = 0;

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

-- is_on is the effect: the reader follows, and no shield is up. So a follow is is_on or held_back.
ALTER TABLE edges
    -- The bits of the shields that are up between the two: 1 muted, 2 hidden, 4 and 8 blocked by reader and author.
    ADD COLUMN shields   smallint NOT NULL DEFAULT 0,
    -- The reader follows, but a shield is up.
    ADD COLUMN held_back boolean  NOT NULL DEFAULT false,
    -- All that is outstanding of it is history: nobody is told of it.
    ADD COLUMN quiet     boolean  NOT NULL DEFAULT false,
    -- Where what came before the follow ends, if that is below from_seq: the follow was imported. Only the follow's own door
    -- goes by it, for others may have records between the two in hand.
    ADD COLUMN past_seq  bigint,
    ADD CONSTRAINT edges_shielded CHECK (CASE WHEN shields = 0 THEN NOT held_back ELSE NOT is_on END) NOT VALID;
-- Whom a reader follows, by time: listed is now milliseconds and then a count. Those of before, only a count, are older.
CREATE INDEX edges_follows ON edges (reader, listed) WHERE is_on OR held_back;
-- The rest of who follows an author, by time; see edges_followers.
CREATE INDEX edges_held_back ON edges (author, listed) WHERE held_back;

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

-- To count again, in one transaction: LOCK TABLE edges IN SHARE MODE; DELETE FROM follower_counts; and this.
INSERT INTO follower_counts SELECT author, 0, count(*) FROM edges WHERE is_on GROUP BY author;
