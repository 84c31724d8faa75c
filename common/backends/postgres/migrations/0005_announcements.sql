-- What other programs are to be told of accepted writes, until a relay has published it.

-- The number is drawn while the locks of the write are held, so the numbers of one user's announcements are in the order
-- of that user's writes. Announcements of different users may commit in another order than that of their numbers. A
-- number that is lost with a rollback leaves a gap.
CREATE TABLE announcements (
    number  bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint   NOT NULL,
    act     smallint NOT NULL,
    -- The author of the item, the reader of the edge, or the owner of the shield.
    "user"  integer  NOT NULL,
    other   integer,
    item    bigint,
    version integer,
    -- The foreign id of a new item, or the new class of an author.
    detail  text
);
-- Rows live for a moment, so the table stays small if what is dead is soon removed.
ALTER TABLE announcements SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- The relay that may publish, and until when. There is one row.
CREATE TABLE announcement_relay (
    relay text        NOT NULL,
    until timestamptz NOT NULL
);
INSERT INTO announcement_relay VALUES ('', '-infinity');
