-- What readers have seen of their feeds.

-- A row for each reader and feed of which anything was ever seen. Times are in Unix ms. Rows are changed in place again
-- and again, so each page has room for that.
CREATE TABLE sights (
    reader        integer  NOT NULL,
    feed          smallint NOT NULL,
    epoch         bigint   NOT NULL,
    "offset"      bigint   NOT NULL,
    until         bigint   NOT NULL,
    earlier_until bigint   NOT NULL,
    earlier_upto  bigint   NOT NULL,
    PRIMARY KEY (reader, feed)
) WITH (fillfactor = 80);
