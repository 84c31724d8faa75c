-- Own posts in one's own feed, and what users have sent.

-- Whether authors have an edge to themselves: no row while the store was never told. The edge is a row of edges with
-- author = reader, which no list and no count shows.
CREATE TABLE own_posts (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    own_posts boolean NOT NULL,
    -- The last author to whom it is carried out; null if it is for all.
    at        integer
);

-- Whether the author has an edge to itself that is on or held back. A publish reads it under the lock of this row.
ALTER TABLE authors ADD COLUMN own_edge boolean NOT NULL DEFAULT false;

-- The living items that a user has addressed to readers, in display order. Notifications are not among them: the ids
-- that the server gives them begin with this prefix.
CREATE INDEX items_sent ON items (author, rank, id)
    WHERE route = 0 AND body IS NOT NULL AND (foreign_id IS NULL OR left(foreign_id, 9) <> 'feedgate:');
