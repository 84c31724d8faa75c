-- Reposts: items that show another item.

-- The item that a repost shows; null for any other item. It stands as it was published, also once that item is deleted,
-- and refers to no row: an import may bring the repost first.
ALTER TABLE items ADD COLUMN repost_of bigint;
