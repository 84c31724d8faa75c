-- Lines: notifications of one group that are told by one item.

-- What belongs to a reader changes under the lock of the reader's row in "readers".
CREATE TABLE lines (
    -- The id of the first item of the line.
    id     bigint  PRIMARY KEY,
    reader integer NOT NULL,
    -- A hash of what the deeds of the line have in common.
    grp    text    NOT NULL,
    kind   text    NOT NULL,
    -- The item that tells of it now.
    item   bigint  NOT NULL,
    -- How many members it has.
    count  bigint  NOT NULL,
    -- The place of the next member.
    next   bigint  NOT NULL,
    -- Whether it is the newest line of its reader and group, which further deeds may join.
    newest boolean NOT NULL
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX lines_newest ON lines (reader, grp) WHERE newest;
CREATE INDEX lines_of_reader ON lines (reader);

-- The deeds of which lines tell.
CREATE TABLE line_members (
    line  bigint  NOT NULL,
    seq   bigint  NOT NULL,
    -- The key of the deed: a foreign id of notifications.
    key   text    NOT NULL,
    actor integer NOT NULL,
    -- JSON: what a notification of this deed alone would say.
    told  text    NOT NULL,
    PRIMARY KEY (line, seq)
);
CREATE UNIQUE INDEX line_members_key ON line_members (key);
