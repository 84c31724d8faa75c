import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.centrifugal.centrifuge.Client;
import io.github.centrifugal.centrifuge.ConnectionTokenEvent;
import io.github.centrifugal.centrifuge.ConnectionTokenGetter;
import io.github.centrifugal.centrifuge.DisconnectedEvent;
import io.github.centrifugal.centrifuge.EventListener;
import io.github.centrifugal.centrifuge.Options;
import io.github.centrifugal.centrifuge.PublicationEvent;
import io.github.centrifugal.centrifuge.ReplyError;
import io.github.centrifugal.centrifuge.SubscribedEvent;
import io.github.centrifugal.centrifuge.Subscription;
import io.github.centrifugal.centrifuge.SubscriptionEventListener;
import io.github.centrifugal.centrifuge.SubscriptionOptions;
import io.github.centrifugal.centrifuge.TokenCallback;
import io.github.centrifugal.centrifuge.UnauthorizedException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/**
 * An app in Java: it shows a feed, scrolls up, and goes on where it was after it was killed.
 *
 * <pre>
 * cd examples/java && mvn -q package
 * FEEDGATE_KEY=$(cat ../../data/secrets/api_key) java -cp 'target/app.jar:target/dependency/*' App bob bob.json
 * </pre>
 *
 * FILE holds the list and its position between two runs. The line `older` on stdin loads an older page.
 *
 * This SDK takes no position from the app. So the app acknowledges its position, and subscribes with `resume: stored`.
 * The reply tells where the server goes on; if that is not where the list stands, the app loads page one.
 */
public final class App {
    private static final int TICK_MS = 1000; // between two writes of the file, and between two attempts
    private static final Duration TOKEN_WITHIN = Duration.ofSeconds(10);
    private static final String DEFAULT_URL = "http://127.0.0.1:8080";

    private final ScheduledExecutorService loop = Executors.newSingleThreadScheduledExecutor(); // owns all that follows
    private final String url = System.getenv().getOrDefault("FEEDGATE_URL", DEFAULT_URL);
    private final String user;
    private final Path file;
    private final Client client;
    private final Subscription subscription;
    private final Feed feed;
    private String saved = ""; // what the file holds

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("usage: App USER FILE");
            System.exit(2);
        }
        App app = new App(arguments[0], Path.of(arguments[1]));
        app.loop.execute(app::start);
        app.scroll();
    }

    private App(String user, Path file) throws Exception {
        this.user = user;
        this.file = file;
        feed = restored();
        Options options = new Options();
        options.setTokenGetter(new ConnectionTokenGetter() {
            @Override
            public void getConnectionToken(ConnectionTokenEvent event, TokenCallback answer) {
                askForToken(answer);
            }
        });
        client = new Client(url.replaceFirst("http", "ws") + "/connection/websocket", options, new Connection());
        SubscriptionOptions items = new SubscriptionOptions();
        items.setData(bytes("{\"deliver\":\"items\",\"resume\":\"stored\"}"));
        subscription = client.newSubscription("feed", items, new Changes());
    }

    /** The list that the last run left for this user, or a new one. A file that cannot be used counts as none. */
    private Feed restored() {
        if (!Files.exists(file)) return new Feed(Limits.NONE);
        try {
            saved = Files.readString(file);
            JsonObject kept = JsonParser.parseString(saved).getAsJsonObject();
            if (kept.get("user").getAsString().equals(user)) return new Feed(Limits.NONE, kept.getAsJsonObject("feed"));
        } catch (IOException | RuntimeException error) {
            System.err.println(file + " cannot be used: " + error);
        }
        return new Feed(Limits.NONE);
    }

    private void start() {
        client.connect();
        if (feed.position() == null) {
            load();
        } else {
            System.out.println("going on from " + feed.position().offset());
            resume();
        }
        loop.scheduleWithFixedDelay(this::save, TICK_MS, TICK_MS, TimeUnit.MILLISECONDS);
    }

    /** Asks for page one again. Changes that come meanwhile are held by the feed. */
    private void load() {
        feed.lost();
        page(null, (error, page) -> {
            try {
                if (error != null) throw error;
                feed.reset(page);
                System.out.println("loaded page one");
                resume();
            } catch (Throwable failed) {
                System.err.println(failed);
                later(this::load);
            }
        });
    }

    /** Acknowledges the position and subscribes; a subscription that is there already stays. */
    private void resume() {
        if (feed.position() == null) return;
        call("ack", feed.position().toJson(), (error, nothing) -> {
            if (error == null) subscription.subscribe();
            else if (error instanceof ReplyError refused && !refused.isTemporary()) load(); // the server does not know this position any more
            else later(this::resume);
        });
    }

    /** Loads an older page for each line `older`. */
    private void scroll() throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) if (line.equals("older")) loop.execute(this::older);
    }

    private void older() {
        String cursor = feed.next();
        if (cursor == null) return;
        page(cursor, (error, page) -> {
            if (error != null) System.err.println(error);
            else if (!feed.append(page, cursor)) System.out.println("the feed has changed meanwhile: ask again");
        });
    }

    /** Stores the list together with its position, and only then acknowledges. A write that fails is tried again. */
    private void save() {
        JsonObject kept = new JsonObject();
        kept.addProperty("user", user);
        kept.add("feed", feed.stored());
        String text = kept.toString();
        if (feed.position() == null || text.equals(saved)) return;
        try {
            write(text);
        } catch (IOException error) {
            System.err.println("not saved: " + error);
            return;
        }
        saved = text;
        call("ack", feed.position().toJson(), (error, nothing) -> {}); // the next one says as much
    }

    /** Puts a text into the file. A crash leaves the old text there, or the new one, and never a part. */
    private void write(String text) throws IOException {
        Path written = file.resolveSibling(file.getFileName() + ".new");
        try (FileChannel out = FileChannel.open(written, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            Channels.newOutputStream(out).write(bytes(text));
            out.force(true);
        }
        Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private void page(String cursor, BiConsumer<Throwable, JsonObject> then) {
        JsonObject asked = new JsonObject();
        asked.addProperty("limit", 20);
        if (cursor != null) asked.addProperty("cursor", cursor);
        call("page", asked, then);
    }

    /** Makes a remote call; the loop gets its answer. */
    private void call(String method, JsonObject asked, BiConsumer<Throwable, JsonObject> then) {
        client.rpc(method, bytes(asked.toString()), (error, result) -> loop.execute(() -> then.accept(error, error == null ? json(result.getData()) : null)));
    }

    private void later(Runnable what) {
        loop.schedule(what, TICK_MS, TimeUnit.MILLISECONDS);
    }

    /** A real app asks its own backend for a token: only backends hold the key. */
    private void askForToken(TokenCallback answer) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/v1/users/" + user + "/token"))
                .header("Authorization", "Bearer " + System.getenv("FEEDGATE_KEY"))
                .header("Content-Type", "application/json")
                .timeout(TOKEN_WITHIN)
                .POST(HttpRequest.BodyPublishers.ofString("{\"device_id\":\"app-java\"}"))
                .build();
        HttpClient.newHttpClient().sendAsync(request, HttpResponse.BodyHandlers.ofString()).whenComplete((response, error) -> {
            if (error != null) answer.Done(error, null);
            else if (response.statusCode() == 401 || response.statusCode() == 403) answer.Done(new UnauthorizedException(), null); // the SDK stops
            else if (response.statusCode() != 200) answer.Done(new IOException("no token: " + response.body()), null);
            else answer.Done(null, JsonParser.parseString(response.body()).getAsJsonObject().get("token").getAsString());
        });
    }

    private static JsonObject json(byte[] text) {
        JsonElement value = JsonParser.parseString(new String(text, StandardCharsets.UTF_8));
        return value.getAsJsonObject();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static final class Connection extends EventListener {
        @Override
        public void onDisconnected(Client client, DisconnectedEvent event) {
            System.err.println("stopped for good: " + event.getReason() + " (" + event.getCode() + ")");
            System.exit(1);
        }
    }

    private final class Changes extends SubscriptionEventListener {
        /** Compares where the server goes on with where the list stands. */
        @Override
        public void onSubscribed(Subscription subscription, SubscribedEvent event) {
            Position from = Position.of(json(event.getData()));
            loop.execute(() -> {
                if (feed.position() != null && !feed.position().equals(from)) load();
            });
        }

        @Override
        public void onPublication(Subscription subscription, PublicationEvent event) {
            JsonObject change = json(event.getData());
            loop.execute(() -> {
                try {
                    if (feed.apply(change, event.getOffset(), null)) System.out.println(change.get("op").getAsString() + " " + event.getOffset());
                } catch (FeedGap gap) {
                    load();
                }
            });
        }
    }
}
