import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.centrifugal.centrifuge.Client;
import io.github.centrifugal.centrifuge.ConnectedEvent;
import io.github.centrifugal.centrifuge.ConnectingEvent;
import io.github.centrifugal.centrifuge.ConnectionTokenEvent;
import io.github.centrifugal.centrifuge.ConnectionTokenGetter;
import io.github.centrifugal.centrifuge.DisconnectedEvent;
import io.github.centrifugal.centrifuge.ErrorEvent;
import io.github.centrifugal.centrifuge.EventListener;
import io.github.centrifugal.centrifuge.HistoryOptions;
import io.github.centrifugal.centrifuge.Options;
import io.github.centrifugal.centrifuge.Publication;
import io.github.centrifugal.centrifuge.PublicationEvent;
import io.github.centrifugal.centrifuge.RPCResult;
import io.github.centrifugal.centrifuge.ReplyError;
import io.github.centrifugal.centrifuge.StreamPosition;
import io.github.centrifugal.centrifuge.SubscribedEvent;
import io.github.centrifugal.centrifuge.Subscription;
import io.github.centrifugal.centrifuge.SubscriptionErrorEvent;
import io.github.centrifugal.centrifuge.SubscriptionEventListener;
import io.github.centrifugal.centrifuge.SubscriptionOptions;
import io.github.centrifugal.centrifuge.TokenCallback;
import io.github.centrifugal.centrifuge.UnsubscribedEvent;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * A phone that runs the unmodified centrifuge-java SDK, which speaks only Protobuf, as tests/actors/foreign.js tells it
 * to. It ends when its stdin does.
 *
 * <pre>java Phone WEBSOCKET_URL      (CONNECT in the environment)</pre>
 */
public final class Phone {
    private static final int SOON_MS = 20;
    private static final int LATER_MS = 200;
    /** For an answer: a machine under load is slow. */
    private static final int PATIENT_MS = 60_000;

    private final Client client;
    private final Map<Long, TokenCallback> asked = new ConcurrentHashMap<>();
    private final AtomicLong count = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        Phone phone = new Phone(arguments[0], parse(System.getenv("CONNECT")));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) phone.carryOut(parse(line));
        System.exit(0);
    }

    private Phone(String url, JsonObject connect) {
        Options options = new Options();
        options.setData(bytes(connect.get("data")));
        options.setMinReconnectDelay(SOON_MS);
        options.setMaxReconnectDelay(LATER_MS);
        options.setTimeout(PATIENT_MS);
        if (connect.has("token")) options.setToken(connect.get("token").getAsString());
        else options.setTokenGetter(new ConnectionTokenGetter() {
            @Override
            public void getConnectionToken(ConnectionTokenEvent event, TokenCallback answer) {
                ask(answer);
            }
        });
        client = new Client(url, options, new Connection());
    }

    private void carryOut(JsonObject told) throws Exception {
        switch (told.get("do").getAsString()) {
            case "connect" -> client.connect();
            case "disconnect" -> client.disconnect();
            case "subscribe" -> subscribe(told.get("channel").getAsString(), told.get("data"));
            case "answer" -> answer(told);
            case "rpc" -> client.rpc(told.get("method").getAsString(), bytes(told.get("data")),
                    (error, result) -> reply(told, error, result, Phone::answered));
            default -> client.history(told.get("channel").getAsString(), options(told),
                    (error, result) -> reply(told, error, result, found -> stretch(found.getPublications(), found.getOffset())));
        }
    }

    /** Asks the app for a token. */
    private void ask(TokenCallback answer) {
        long id = count.incrementAndGet();
        asked.put(id, answer);
        JsonObject line = event("ask");
        line.addProperty("id", id);
        tell(line);
    }

    private void answer(JsonObject told) {
        TokenCallback answer = asked.remove(told.get("id").getAsLong());
        if (told.has("error")) answer.Done(new IOException(told.get("error").getAsString()), null);
        else answer.Done(null, told.get("value").getAsString());
    }

    private void subscribe(String channel, JsonElement data) throws Exception {
        SubscriptionOptions options = new SubscriptionOptions();
        options.setData(bytes(data));
        options.setMinResubscribeDelay(SOON_MS);
        options.setMaxResubscribeDelay(LATER_MS);
        client.newSubscription(channel, options, new Listener()).subscribe();
    }

    private static HistoryOptions options(JsonObject told) {
        JsonObject since = told.getAsJsonObject("since");
        StreamPosition position = new StreamPosition(since.get("offset").getAsLong(), since.get("epoch").getAsString());
        return new HistoryOptions.Builder().withLimit(told.get("limit").getAsInt()).withSince(position).build();
    }

    private static <T> void reply(JsonObject told, Throwable error, T result, Function<T, JsonObject> value) {
        JsonObject line = event("reply");
        line.add("id", told.get("id"));
        if (error == null) line.add("value", value.apply(result));
        else line.add("error", failure(new JsonObject(), error));
        tell(line);
    }

    private static JsonObject answered(RPCResult result) {
        JsonObject value = new JsonObject();
        value.add("data", parse(result.getData()));
        return value;
    }

    private static JsonObject stretch(Iterable<Publication> found, long offset) {
        JsonArray publications = new JsonArray();
        for (Publication one : found) publications.add(change(new JsonObject(), one.getOffset(), one.getData()));
        JsonObject value = new JsonObject();
        value.add("publications", publications);
        value.addProperty("offset", offset);
        return value;
    }

    private static JsonObject change(JsonObject line, long offset, byte[] data) {
        line.addProperty("offset", offset);
        line.add("data", parse(data));
        return line;
    }

    /** Says what failed, with the code of the server's error among the causes, or 0. */
    private static JsonObject failure(JsonObject line, Throwable error) {
        int code = 0;
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof ReplyError refused) code = refused.getCode();
        }
        line.addProperty("code", code);
        line.addProperty("message", error + " " + error.getMessage());
        return line;
    }

    private static JsonObject event(String name) {
        JsonObject line = new JsonObject();
        line.addProperty("event", name);
        return line;
    }

    private static void told(JsonObject line, int code, String reason) {
        line.addProperty("code", code);
        line.addProperty("reason", reason);
        tell(line);
    }

    private static byte[] bytes(JsonElement json) {
        return json.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static JsonObject parse(byte[] json) {
        return parse(new String(json, StandardCharsets.UTF_8));
    }

    private static JsonObject parse(String json) {
        return JsonParser.parseString(json).getAsJsonObject();
    }

    private static synchronized void tell(JsonObject line) {
        System.out.println(line);
    }

    private static final class Connection extends EventListener {
        @Override
        public void onConnecting(Client client, ConnectingEvent event) {
            told(event("connecting"), event.getCode(), event.getReason());
        }

        @Override
        public void onConnected(Client client, ConnectedEvent event) {
            tell(event("connected"));
        }

        @Override
        public void onDisconnected(Client client, DisconnectedEvent event) {
            told(event("disconnected"), event.getCode(), event.getReason());
        }

        @Override
        public void onError(Client client, ErrorEvent event) {
            tell(failure(event("error"), event.getError()));
        }
    }

    private static final class Listener extends SubscriptionEventListener {
        @Override
        public void onSubscribed(Subscription subscription, SubscribedEvent event) {
            JsonObject line = of("subscribed", subscription);
            line.addProperty("recovered", event.getRecovered());
            line.addProperty("wasRecovering", event.wasRecovering());
            line.add("data", parse(event.getData()));
            tell(line);
        }

        @Override
        public void onUnsubscribed(Subscription subscription, UnsubscribedEvent event) {
            told(of("unsubscribed", subscription), event.getCode(), event.getReason());
        }

        @Override
        public void onPublication(Subscription subscription, PublicationEvent event) {
            tell(change(of("publication", subscription), event.getOffset(), event.getData()));
        }

        @Override
        public void onError(Subscription subscription, SubscriptionErrorEvent event) {
            tell(failure(of("error", subscription), event.getError()));
        }

        private static JsonObject of(String name, Subscription subscription) {
            JsonObject line = event(name);
            line.addProperty("channel", subscription.getChannel());
            return line;
        }
    }
}
