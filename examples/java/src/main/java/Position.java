import com.google.gson.JsonObject;

/** A place in the change log of a feed. */
public record Position(String epoch, long offset) {
    public static Position of(JsonObject json) {
        return new Position(json.get("epoch").getAsString(), json.get("offset").getAsLong());
    }

    public JsonObject toJson() {
        JsonObject json = new JsonObject();
        json.addProperty("epoch", epoch);
        json.addProperty("offset", offset);
        return json;
    }
}
