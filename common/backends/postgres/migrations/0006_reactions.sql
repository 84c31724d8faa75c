-- Reactions to items, and how many there are. The rows of an item that does not live are not shown.

-- A set: a row for each (item, kind, user).
CREATE TABLE reactions (
    item   bigint  NOT NULL,
    kind   text    COLLATE "C" NOT NULL,
    reader integer NOT NULL,
    -- When the user reacted.
    at     bigint  NOT NULL,
    PRIMARY KEY (item, reader, kind)
);
-- The list of those who reacted, by kind.
CREATE INDEX reactions_listed ON reactions (item, kind, at, reader);

-- How many there are: the sum over the shards. A shard is chosen by the number of the user, so that those who react to
-- one item at the same time do not all wait for one row. A row changes in the statement that changes the set.
CREATE TABLE reaction_counts (
    item  bigint   NOT NULL,
    kind  text     COLLATE "C" NOT NULL,
    shard smallint NOT NULL,
    count bigint   NOT NULL,
    PRIMARY KEY (item, kind, shard)
) WITH (fillfactor = 50);

-- Deleted items whose reactions are still to be removed, and since when.
CREATE TABLE reaction_ends (
    item bigint PRIMARY KEY,
    at   bigint NOT NULL
);
CREATE INDEX reaction_ends_at ON reaction_ends (at);
