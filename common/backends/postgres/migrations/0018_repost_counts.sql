-- How many living reposts items have, and which.

-- The sum over the shards, whether the item itself lives or not. A shard is chosen by the id of the repost, so that those
-- who repost one item at the same time do not all wait for one row. A row changes in the transaction that makes or deletes
-- the repost.
CREATE TABLE repost_counts (
    item  bigint   NOT NULL,
    shard smallint NOT NULL,
    count bigint   NOT NULL,
    PRIMARY KEY (item, shard)
) WITH (fillfactor = 50);

-- A shard is the rest of a division of the id as it is: the sign bit is flipped in the column, and 32 divides the bit.
INSERT INTO repost_counts
SELECT repost_of, (id & 31)::smallint, count(*) FROM items
WHERE repost_of IS NOT NULL AND body IS NOT NULL GROUP BY 1, 2;

-- The reposts of an item. Deleted ones are among them: this index has no column that an edit changes.
CREATE INDEX items_reposts ON items (repost_of, id) WHERE repost_of IS NOT NULL;
