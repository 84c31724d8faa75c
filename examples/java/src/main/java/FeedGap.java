/** Changes are missing between the position and what came: the app loads page one again. */
public final class FeedGap extends Exception {
    FeedGap(String message) {
        super(message);
    }
}
