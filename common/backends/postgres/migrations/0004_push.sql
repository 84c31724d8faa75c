-- Devices that push services reach, and what they are still to be told.

-- A device of a user. Rows of a user change under the lock of its row in readers.
CREATE TABLE push_devices (
    reader   integer    NOT NULL,
    device   text       COLLATE "C" NOT NULL,
    platform text       NOT NULL,
    token    text       NOT NULL,
    -- The feeds of which the device is told, ascending.
    feeds    smallint[] NOT NULL,
    -- When it was registered with this token.
    since    bigint     NOT NULL,
    PRIMARY KEY (reader, device)
);

-- Whether the reader has such a device: what a push step reads together with the edge.
ALTER TABLE readers ADD COLUMN listens boolean NOT NULL DEFAULT false;
-- Of a reader who has: the number up to which it was noted what is addressed to the reader.
ALTER TABLE readers ADD COLUMN noted bigint NOT NULL DEFAULT 0;

-- What a reader is still to be told of a feed, or was told of it a moment ago.
CREATE TABLE push_notices (
    reader integer  NOT NULL,
    feed   smallint NOT NULL,
    -- The newest item, and how many have come since the reader was told.
    item   bigint   NOT NULL,
    count  integer  NOT NULL,
    -- It changes with each note, and no other notice ever has it.
    number bigint   NOT NULL,
    tries  integer  NOT NULL DEFAULT 0,
    -- When it is due, or, if the reader was told, until when it is remembered.
    due    bigint   NOT NULL,
    sent   boolean  NOT NULL DEFAULT false,
    PRIMARY KEY (reader, feed)
) WITH (fillfactor = 70);
CREATE INDEX push_notices_due ON push_notices (due);

-- A number that is lost with a crash leaves a gap.
CREATE SEQUENCE push_numbers;

-- What nobody took.
CREATE TABLE push_dead (
    reader integer  NOT NULL,
    feed   smallint NOT NULL,
    item   bigint   NOT NULL,
    count  integer  NOT NULL,
    number bigint   NOT NULL,
    tries  integer  NOT NULL,
    -- Why the last try was in vain, and when that was.
    why    text     NOT NULL,
    at     bigint   NOT NULL,
    PRIMARY KEY (reader, feed)
);
