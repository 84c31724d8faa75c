/** What the server's settings say of a named feed: items shown at most, and the milliseconds that an item is shown. */
public record Limits(int cap, long ttl) {
    /** The main feed has no limits. */
    public static final Limits NONE = new Limits(Integer.MAX_VALUE, Long.MAX_VALUE);
}
