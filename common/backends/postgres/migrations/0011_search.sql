-- The index of search. All of it is derived from other tables, and may be built anew at any time.

-- What is indexed: one row, or none while search is off. Who changes it locks the table first.
CREATE TABLE search_state (
    one    boolean  PRIMARY KEY DEFAULT true CHECK (one),
    -- The fields that are the text of an item, and the rules by which it becomes words.
    recipe text     NOT NULL,
    -- 0: built; 1: items are taken in, from the greatest id down to "at"; 2: users are, up to the number "at".
    stage  smallint NOT NULL,
    at     bigint   NOT NULL
);

-- What was written and is still to be indexed. It is written in the transaction of the item or the person.
CREATE TABLE search_due (
    n       bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- 0: an item; 1: a user.
    subject smallint NOT NULL,
    id      bigint   NOT NULL
);

-- By what each item that lives, and each user of whom something is said, is found.
CREATE TABLE search_marks (
    subject smallint  NOT NULL,
    id      bigint    NOT NULL,
    -- When the item was published; 0 for a user.
    at      bigint    NOT NULL,
    -- The hashes of its words, its author and its kind, each once.
    marks   integer[] NOT NULL,
    PRIMARY KEY (subject, id)
);
CREATE INDEX search_newest ON search_marks (subject, at DESC, id DESC);
-- Rows come in groups and in the background, so what a search reads is kept in order at once.
CREATE INDEX search_found ON search_marks USING gin (marks) WITH (fastupdate = off);
