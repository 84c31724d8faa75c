-- Private authors, and requests to follow them.

-- A follow of a private author is a request until the author accepts it. Changes under the lock of this row, which
-- whoever asks to follow shares.
ALTER TABLE authors ADD COLUMN private boolean NOT NULL DEFAULT false;

-- The reader has asked to follow and has no answer. Such an edge is neither on nor held back, and in no block; since
-- and listed are those of the request.
ALTER TABLE edges ADD COLUMN asked boolean NOT NULL DEFAULT false;
-- Who asks to follow an author, by time.
CREATE INDEX edges_asked ON edges (author, listed) WHERE asked;
