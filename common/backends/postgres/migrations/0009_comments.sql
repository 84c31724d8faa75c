-- Comments on items, and how many there are. The rows of an item that does not live are not shown.

-- What the comments of an item have in common. Whoever changes them locks this row first, so they are numbered in the order
-- of commits, and the count is never off.
CREATE TABLE talks (
    item    bigint PRIMARY KEY,
    -- How many comments live.
    count   bigint NOT NULL DEFAULT 0,
    -- The last place that was given.
    last_at bigint,
    last_id bigint
) WITH (fillfactor = 50);

-- A row for each comment. It stays until the item is deleted, so that a retry finds it.
CREATE TABLE comments (
    id          bigint  PRIMARY KEY,
    item        bigint  NOT NULL,
    at          bigint  NOT NULL,
    author      integer NOT NULL,
    reply_to    bigint,
    -- How many comments that stand in the list answer it.
    replies     bigint  NOT NULL,
    version     integer NOT NULL,
    fingerprint bytea   NOT NULL,
    key         text    COLLATE "C",
    -- JSON, byte for byte as it came; null once the comment is deleted.
    body        text
);
CREATE INDEX comments_listed ON comments (item, at, id);
CREATE UNIQUE INDEX comments_keys ON comments (item, author, key) WHERE key IS NOT NULL;

-- The low bits of the ids that are given to comments.
CREATE SEQUENCE comment_ids CACHE 64;
