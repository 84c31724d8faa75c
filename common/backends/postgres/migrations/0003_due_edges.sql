-- Outstanding edges by reader: a worker brings all those of a reader together.
--
-- It only adds. Nodes of the version before go on beside this one.

CREATE INDEX edges_due_of ON edges (reader, author) WHERE due IS NOT NULL;
