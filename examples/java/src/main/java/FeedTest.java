import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Holds the reducer to feed-vectors.json, whose path is the argument; it ends with an error where they differ. */
public final class FeedTest {
    public static void main(String[] arguments) throws Exception {
        JsonArray vectors = JsonParser.parseString(Files.readString(Path.of(arguments[0]))).getAsJsonArray();
        for (JsonElement vector : vectors) walk(vector.getAsJsonObject());
        System.out.println(vectors.size() + " vectors");
    }

    private static void walk(JsonObject vector) {
        Limits limits = limits(vector.getAsJsonObject("limits"));
        Feed feed = new Feed(limits);
        for (JsonElement element : vector.getAsJsonArray("steps")) {
            JsonObject step = element.getAsJsonObject();
            JsonElement answers = JsonNull.INSTANCE;
            if (step.has("restart")) feed = new Feed(limits, JsonParser.parseString(feed.stored().toString()).getAsJsonObject());
            else answers = take(feed, step);
            JsonObject seen = see(feed, answers, step.has("now") ? step.get("now").getAsLong() : 0);
            for (String what : seen.keySet()) {
                boolean differs = step.has(what) && !step.get(what).equals(seen.get(what));
                if (differs) throw new AssertionError(vector.get("name") + ": " + what + " is " + seen.get(what) + " after " + step);
            }
        }
    }

    private static Limits limits(JsonObject told) {
        if (told == null) return Limits.NONE;
        int cap = told.has("cap") ? told.get("cap").getAsInt() : Limits.NONE.cap();
        return new Limits(cap, told.has("ttl") ? told.get("ttl").getAsLong() : Limits.NONE.ttl());
    }

    /** Takes one step and answers what it answered. */
    private static JsonElement take(Feed feed, JsonObject step) {
        try {
            if (step.has("reset")) return new JsonPrimitive(feed.reset(step.getAsJsonObject("reset")));
            if (step.has("append")) return new JsonPrimitive(feed.append(step.getAsJsonObject("append"), step.get("cursor").getAsString()));
            if (step.has("apply")) return new JsonPrimitive(apply(feed, step));
            feed.lost();
            return JsonNull.INSTANCE;
        } catch (FeedGap gap) {
            return new JsonPrimitive("gap");
        } catch (IllegalArgumentException error) {
            return new JsonPrimitive("unknown op");
        }
    }

    private static boolean apply(Feed feed, JsonObject step) throws FeedGap {
        JsonObject at = step.getAsJsonObject("at");
        return feed.apply(step.getAsJsonObject("apply"), at.get("offset").getAsLong(), at.has("epoch") ? at.get("epoch").getAsString() : null);
    }

    private static JsonObject see(Feed feed, JsonElement answers, long now) {
        List<JsonObject> items = feed.items(now);
        JsonObject seen = new JsonObject();
        seen.add("answers", answers);
        seen.add("shows", all(items, "id"));
        seen.add("bodies", all(items, "body"));
        seen.add("position", feed.position() == null ? JsonNull.INSTANCE : feed.position().toJson());
        seen.addProperty("next", feed.next());
        seen.add("items", all(items));
        JsonArray around = new JsonArray();
        items.forEach(item -> around.add(around(item)));
        seen.add("around", around);
        seen.add("people", feed.stored().get("people"));
        return seen;
    }

    private static JsonObject around(JsonObject item) {
        JsonObject around = new JsonObject();
        for (String name : Feed.AROUND) if (item.has(name)) around.add(name, item.get(name));
        return around;
    }

    private static JsonArray all(List<JsonObject> items) {
        JsonArray values = new JsonArray();
        items.forEach(values::add);
        return values;
    }

    private static JsonArray all(List<JsonObject> items, String field) {
        JsonArray values = new JsonArray();
        items.forEach(item -> values.add(item.get(field)));
        return values;
    }
}
