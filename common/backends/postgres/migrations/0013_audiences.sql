-- Lists of users, and the audiences of items.

-- Who is on which list of whom. Lines of an owner change under the lock of its row in readers.
CREATE TABLE lists (
    owner  integer NOT NULL,
    list   text    COLLATE "C" NOT NULL,
    member integer NOT NULL,
    -- When the member was put on the list.
    since  bigint  NOT NULL,
    PRIMARY KEY (owner, list, member)
);
CREATE INDEX lists_of_members ON lists (member);

-- The readers of each item that is narrowed, ascending. The row stays when the item is deleted, for the record of that.
CREATE TABLE audiences (
    item    bigint    PRIMARY KEY,
    readers integer[] NOT NULL
);
