import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/**
 * The list that a device shows, kept from pages and changes as they come in JSON. feed.js explains the rules. It is not
 * safe for use by several threads.
 */
public final class Feed {
    /** A change that came while there was no position; `epoch` is null where the SDK does not tell it. */
    private record Held(JsonObject change, long offset, String epoch) {}

    private static final int HELD_MAX = 1000;
    /** The fields of an item that only pages have. */
    static final List<String> AROUND = List.of("counts", "own", "ref_item", "ref_gone");
    private static final Comparator<JsonObject> NEWEST_FIRST = Comparator.<JsonObject>comparingLong(item -> item.get("rank").getAsLong())
            .thenComparing(item -> item.get("id").getAsBigInteger())
            .reversed();

    private final Limits limits;
    private final Map<String, JsonObject> items = new HashMap<>();
    private final Map<String, JsonObject> people = new HashMap<>(); // author -> name and avatar
    private final Queue<Held> held = new ArrayDeque<>();
    private Position position; // that of the last change taken in; null: page one is missing
    private String next; // the cursor of the next older page; null at the end
    private JsonObject bottom; // the last item of the last page; null if that was the end
    private long rewritten; // an older page read before this offset lacks what the list knows, or has what is gone
    private JsonObject removed; // what the last change deleted: the next one adds it again if it moves; else null

    public Feed(Limits limits) {
        this.limits = limits;
    }

    /** A feed as {@link #stored} gave it. */
    public Feed(Limits limits, JsonObject stored) {
        this(limits);
        stored.getAsJsonArray("items").forEach(item -> keep(item.getAsJsonObject()));
        position = stored.get("position").isJsonNull() ? null : Position.of(stored.getAsJsonObject("position"));
        if (stored.has("people")) people(stored).forEach((user, person) -> people.put(user, person.getAsJsonObject()));
        next = text(stored.get("next"));
        bottom = stored.get("bottom").isJsonNull() ? null : stored.getAsJsonObject("bottom");
        rewritten = position == null ? 0 : position.offset();
    }

    public Position position() { return position; }

    public String next() { return next; }

    /** The name and the avatar as the last page with an item of this author, or with a repost of one, had them, or null. */
    public JsonObject person(String author) { return people.get(author); }

    /** Starts over from page one, then takes in what came meanwhile. False if the list is newer already. */
    public boolean reset(JsonObject page) throws FeedGap {
        Position at = Position.of(page.getAsJsonObject("position"));
        if (isOf(at.epoch()) && at.offset() < position.offset()) return false;
        items.clear();
        people.clear();
        position = at;
        rewritten = at.offset();
        removed = null;
        bottom = null;
        extend(page);
        List<Held> waiting = List.copyOf(held);
        held.clear();
        for (Held one : waiting) if (one.epoch == null || isOf(one.epoch)) apply(one.change, one.offset, one.epoch);
        return true;
    }

    /**
     * Adds an older page, which was asked for with `cursor`. False if it goes on from another place than the end of the
     * list, or was read before changes that the list holds: ask again, with the `next` of now.
     */
    public boolean append(JsonObject page, String cursor) {
        Position at = Position.of(page.getAsJsonObject("position"));
        if (!cursor.equals(next) || !isOf(at.epoch()) || at.offset() < rewritten) return false;
        extend(page);
        return true;
    }

    /** The position is worth nothing any more. What is shown stays until {@link #reset}. */
    public void lost() {
        position = null;
        held.clear();
    }

    /** Takes in one change. True if it was new; throws FeedGap if the one before it is missing. */
    public boolean apply(JsonObject change, long offset, String epoch) throws FeedGap {
        String op = change.get("op").getAsString();
        if (op.equals("behind") || op.equals("seen")) return false;
        if (position == null) {
            if (held.size() == HELD_MAX) held.remove();
            held.add(new Held(change, offset, epoch));
            return false;
        }
        if (epoch != null && !isOf(epoch)) throw new FeedGap("epoch " + epoch + " after " + position.epoch());
        if (offset <= position.offset()) return false;
        if (offset != position.offset() + 1) throw new FeedGap("change " + offset + " after " + position.offset());
        change(change);
        position = new Position(position.epoch(), offset);
        if (!op.equals("add") || !reaches(change.getAsJsonObject("item"))) rewritten = offset;
        return true;
    }

    /** What to show, newest first. `now`: Unix time in milliseconds. */
    public List<JsonObject> items(long now) {
        return sorted().stream().limit(limits.cap()).filter(item -> now - item.get("published_at").getAsLong() <= limits.ttl()).toList();
    }

    /** The feed as JSON, to keep it between two runs of an app. */
    public JsonObject stored() {
        JsonArray all = new JsonArray();
        sorted().forEach(all::add);
        JsonObject stored = new JsonObject();
        stored.add("items", all);
        stored.addProperty("next", next);
        stored.add("position", position == null ? JsonNull.INSTANCE : position.toJson());
        stored.add("bottom", bottom);
        JsonObject known = new JsonObject();
        people.forEach(known::add);
        stored.add("people", known);
        return stored;
    }

    private boolean isOf(String epoch) {
        return position != null && position.epoch().equals(epoch);
    }

    private List<JsonObject> sorted() {
        return items.values().stream().sorted(NEWEST_FIRST).toList();
    }

    private void extend(JsonObject page) {
        List<JsonElement> older = page.getAsJsonArray("items").asList();
        Map<String, JsonElement> told = people(page);
        for (JsonElement element : older) {
            JsonObject item = element.getAsJsonObject();
            keep(item);
            meet(item, told);
            if (item.has("ref_item")) meet(item.getAsJsonObject("ref_item"), told);
        }
        next = text(page.get("next"));
        if (next == null) bottom = null;
        else if (!older.isEmpty()) bottom = older.get(older.size() - 1).getAsJsonObject();
    }

    /** Whether a place is in the loaded stretch, and not below it. */
    private boolean reaches(JsonObject place) {
        return bottom == null || NEWEST_FIRST.compare(place, bottom) <= 0;
    }

    /** Changes the items; those that are addressed to the reader outlive a `forget` of their author. */
    private void change(JsonObject change) {
        JsonObject item = change.getAsJsonObject("item");
        JsonObject before = removed;
        removed = null;
        switch (change.get("op").getAsString()) {
            case "add" -> {
                boolean moves = before != null && before.get("id").equals(item.get("id"));
                if (reaches(item)) keep(moves ? withAround(item, before) : item);
            }
            case "update" -> {
                JsonObject shown = items.get(item.get("id").getAsString());
                if (shown != null) keep(withAround(item, shown));
            }
            case "delete" -> removed = items.remove(change.get("item_id").getAsString());
            case "forget" -> {
                items.values().removeIf(one -> one.get("author").equals(change.get("author")) && !isDirect(one));
                JsonObject floor = change.getAsJsonObject("floor");
                if (floor != null && reaches(floor)) cut(floor, change.get("next").getAsString());
            }
            default -> throw new IllegalArgumentException("a change has op add, update, delete, forget or behind, not " + change.get("op"));
        }
    }

    /** Ends the loaded stretch above `floor`; the page of `following` goes on with it. */
    private void cut(JsonObject floor, String following) {
        items.values().removeIf(one -> NEWEST_FIRST.compare(floor, one) <= 0);
        bottom = floor;
        next = following;
    }

    /** The item of a pushed change, with what the last page said around the one that is shown. */
    private static JsonObject withAround(JsonObject item, JsonObject shown) {
        JsonObject whole = item.deepCopy();
        for (String name : AROUND) {
            if (shown.has(name)) whole.add(name, shown.get(name));
            else whole.remove(name);
        }
        return whole;
    }

    /** Keeps what a page says of the author of an item on it. */
    private void meet(JsonObject item, Map<String, JsonElement> told) {
        String author = item.get("author").getAsString();
        if (told.containsKey(author)) people.put(author, told.get(author).getAsJsonObject());
        else people.remove(author);
    }

    private static boolean isDirect(JsonObject item) {
        return item.has("direct") && item.get("direct").getAsBoolean();
    }

    private static Map<String, JsonElement> people(JsonObject page) {
        return page.has("people") ? page.getAsJsonObject("people").asMap() : Map.of();
    }

    /** A page may know a later version than a change that comes after it. */
    private void keep(JsonObject item) {
        items.merge(item.get("id").getAsString(), item, (shown, one) -> shown.get("version").getAsLong() <= one.get("version").getAsLong() ? one : shown);
    }

    private static String text(JsonElement value) {
        return value.isJsonNull() ? null : value.getAsString();
    }
}
