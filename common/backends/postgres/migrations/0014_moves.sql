-- An item whose rank has changed has an add for each rank that it had, in "direct" too. So an item has several adds for
-- one reader, of which one is not deleted.
CREATE INDEX direct_adds ON direct (item, reader) WHERE op = 1;
DROP INDEX direct_recipients;
