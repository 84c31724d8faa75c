-- An item whose rank has changed has an add for each rank that it had, in "direct" too. So an item has several adds for
-- one reader, of which one is not deleted.

-- Whether the record is of a ranking of the reader: then the item is not addressed to the reader by itself.
ALTER TABLE direct ADD COLUMN ranked boolean NOT NULL DEFAULT false;

CREATE INDEX direct_adds ON direct (item, reader) WHERE op = 1 AND NOT ranked;
DROP INDEX direct_recipients;
-- The rankings that hold an item.
CREATE INDEX direct_ranked ON direct (item, reader, feed) WHERE ranked AND op = 1 AND NOT deleted;
-- The records of a ranking that are of no use once all inboxes have them.
CREATE INDEX direct_over ON direct (reader, feed, seq) WHERE ranked AND (op <> 1 OR deleted);

-- Edits and deletes of items that rankings hold, as long as a ranking may not have heard of them; and behind which
-- ranking to go on.
CREATE TABLE ranking_due (
    n      bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item   bigint   NOT NULL,
    reader integer  NOT NULL DEFAULT -1,
    feed   smallint NOT NULL DEFAULT -1
);
