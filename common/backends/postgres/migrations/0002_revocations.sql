-- Which tokens of users are refused: those that were issued before a time, in Unix ms.

-- A row for each user who ever had tokens revoked. The number is that of the newest revocation. It is taken from a
-- counter whose row is locked until the revocation commits, so numbers appear in commit order.
CREATE TABLE revocations (
    "user" integer PRIMARY KEY,
    before bigint  NOT NULL,
    number bigint  NOT NULL UNIQUE
);
INSERT INTO counters VALUES ('revocation', 0);
