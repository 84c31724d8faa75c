-- Erasures of users.

-- All of them by number, also those that are finished: they are receipts.
CREATE TABLE erasures (
    id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    "user"      integer NOT NULL,
    accepted_at bigint  NOT NULL,
    -- JSON, byte for byte as it came: a worker goes on only from the state that it has read.
    state       text    NOT NULL,
    open        boolean NOT NULL DEFAULT true
);
-- A user has one under way at most.
CREATE UNIQUE INDEX erasures_open ON erasures ("user") WHERE open;
