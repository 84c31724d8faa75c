-- Whom items and comments mention: names of users with a space between two, as they were given. Names never change, and
-- none has a space. Null if nobody is mentioned, and once the item or the comment is deleted.
ALTER TABLE items ADD COLUMN mentions text;
ALTER TABLE comments ADD COLUMN mentions text;
