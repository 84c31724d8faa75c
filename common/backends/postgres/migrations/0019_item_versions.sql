-- The bodies that living items had before they were edited: of each item the newest twenty.
CREATE TABLE item_versions (
    item        bigint  NOT NULL,
    -- The version that the item had until then.
    version     integer NOT NULL,
    -- When the body was replaced.
    replaced_at bigint  NOT NULL,
    -- JSON, byte for byte as it came.
    body        text    NOT NULL,
    PRIMARY KEY (item, version)
);
