-- What the business says of its users.

-- A row for each user of whom anything is said. Nothing else refers to it: a user without a row is a user all the same.
CREATE TABLE people (
    "user" integer PRIMARY KEY,
    name   text,
    avatar text,
    -- JSON, byte for byte as it came, which neither json nor jsonb promises.
    attrs  text
);
