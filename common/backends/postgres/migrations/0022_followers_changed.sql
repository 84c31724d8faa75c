-- The number of the state of an author's followers, as far as a push has to know of them: who they are, from which record on,
-- and which of them listen for notifications. It is the sum of the author's rows. Each change makes one of them greater: it
-- becomes the time in microseconds, or one more than it was. So no number is given twice, also not by a server that was set
-- back to an earlier time. A worker that has read the followers reads them again only if their number is another one.
--
-- Who changes edges counts first, for all authors in their order, and so locks their rows in one order. Triggers count what
-- was not counted: by programs of the version before, which change edges too while both versions run, and by hand.
ALTER TABLE follower_counts ADD COLUMN changed bigint NOT NULL DEFAULT 0;

-- Makes the number greater for each author for whom this transaction has not done so.
CREATE FUNCTION followers_changed(authors integer[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO follower_counts AS c (author, slot, followers, changed)
    SELECT author, pg_backend_pid() % 16, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    FROM (SELECT DISTINCT unnest(authors) AS author) AS n ORDER BY author
    ON CONFLICT (author, slot) DO UPDATE SET changed = greatest(c.changed + 1, excluded.changed)
    WHERE c.xmin <> pg_current_xact_id()::xid
$$;

CREATE FUNCTION edges_came_or_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM followers_changed(array_agg(author)) FROM edges_of_statement HAVING count(*) > 0;
    RETURN NULL;
END $$;

-- That an edge is no longer outstanding, its place in a list and what only its reader sees change nothing for a push.
CREATE FUNCTION edges_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM followers_changed(array_agg(n.author)) FROM updated n JOIN before o USING (reader, author)
    WHERE (n.is_on, n.generation, n.from_seq) <> (o.is_on, o.generation, o.from_seq)
    HAVING count(*) > 0;
    RETURN NULL;
END $$;

CREATE FUNCTION reader_listens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM followers_changed(array_agg(author)) FROM edges WHERE reader = NEW.reader AND is_on HAVING count(*) > 0;
    RETURN NULL;
END $$;

CREATE TRIGGER inserted AFTER INSERT ON edges REFERENCING NEW TABLE AS edges_of_statement
    FOR EACH STATEMENT EXECUTE FUNCTION edges_came_or_went();
CREATE TRIGGER updated AFTER UPDATE ON edges REFERENCING OLD TABLE AS before NEW TABLE AS updated
    FOR EACH STATEMENT EXECUTE FUNCTION edges_updated();
CREATE TRIGGER deleted AFTER DELETE ON edges REFERENCING OLD TABLE AS edges_of_statement
    FOR EACH STATEMENT EXECUTE FUNCTION edges_came_or_went();
CREATE TRIGGER listens AFTER UPDATE OF listens ON readers
    FOR EACH ROW WHEN (OLD.listens <> NEW.listens) EXECUTE FUNCTION reader_listens();
