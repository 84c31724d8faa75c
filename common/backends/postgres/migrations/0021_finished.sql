-- Up to which record every bucket has got what an author has pushed, as far as a worker has said so; null until one has. A
-- worker begins there, without a question to the inboxes.
ALTER TABLE authors ADD COLUMN finished bigint;
