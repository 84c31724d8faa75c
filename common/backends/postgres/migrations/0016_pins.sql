-- What users have pinned to their profiles, the last first. Items that were deleted since may be among them.
CREATE TABLE pins (
    "user" integer    PRIMARY KEY,
    items  bigint[]   NOT NULL,
    -- The feed of each of them.
    feeds  smallint[] NOT NULL
);
