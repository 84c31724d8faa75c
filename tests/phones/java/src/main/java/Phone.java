import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.centrifugal.centrifuge.Client;
import io.github.centrifugal.centrifuge.DisconnectedEvent;
import io.github.centrifugal.centrifuge.ErrorEvent;
import io.github.centrifugal.centrifuge.EventListener;
import io.github.centrifugal.centrifuge.Options;
import io.github.centrifugal.centrifuge.PublicationEvent;
import io.github.centrifugal.centrifuge.SubscribedEvent;
import io.github.centrifugal.centrifuge.Subscription;
import io.github.centrifugal.centrifuge.SubscriptionErrorEvent;
import io.github.centrifugal.centrifuge.SubscriptionEventListener;
import io.github.centrifugal.centrifuge.SubscriptionOptions;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * A phone that runs the unmodified centrifuge-java SDK, which speaks only Protobuf.
 *
 * <pre>java Phone WEBSOCKET_URL {CHANNEL: POSITION, ...}      (TOKEN in the environment)</pre>
 *
 * This SDK cannot start from a position that the app has stored. So the phone acknowledges each position first, and
 * subscribes with `resume: stored`. It prints a line of JSON for each change, each subscription and each error, until
 * it is killed.
 */
public final class Phone {
    public static void main(String[] arguments) throws Exception {
        Options options = new Options();
        options.setToken(System.getenv("TOKEN"));
        options.setMinReconnectDelay(50);
        options.setMaxReconnectDelay(200);
        Client client = new Client(arguments[0], options, new Connection());
        client.connect();
        for (Map.Entry<String, JsonElement> entry : parse(arguments[1]).entrySet()) {
            follow(client, entry.getKey(), entry.getValue().getAsJsonObject());
        }
        new CountDownLatch(1).await();
    }

    private static void follow(Client client, String channel, JsonObject position) throws Exception {
        SubscriptionOptions options = new SubscriptionOptions();
        options.setData("{\"deliver\":\"items\",\"resume\":\"stored\"}".getBytes(StandardCharsets.UTF_8));
        options.setMinResubscribeDelay(50);
        options.setMaxResubscribeDelay(200);
        Subscription subscription = client.newSubscription(channel, options, new Listener());
        position.addProperty("channel", channel);
        client.rpc("ack", position.toString().getBytes(StandardCharsets.UTF_8), (error, result) -> {
            if (error == null) {
                subscription.subscribe();
            } else {
                tell("error", "ack: " + error);
            }
        });
    }

    private static final class Connection extends EventListener {
        @Override
        public void onError(Client client, ErrorEvent event) {
            tell("error", String.valueOf(event.getError()));
        }

        @Override
        public void onDisconnected(Client client, DisconnectedEvent event) {
            tell("error", "disconnected " + event.getCode() + " " + event.getReason());
        }
    }

    private static final class Listener extends SubscriptionEventListener {
        @Override
        public void onSubscribed(Subscription subscription, SubscribedEvent event) {
            JsonObject how = new JsonObject();
            how.addProperty("recovered", event.getRecovered());
            how.addProperty("was_recovering", event.wasRecovering());
            JsonObject line = of(subscription);
            line.add("subscribed", how);
            line.add("data", parse(event.getData()));
            tell(line);
        }

        @Override
        public void onPublication(Subscription subscription, PublicationEvent event) {
            JsonObject line = of(subscription);
            line.addProperty("offset", event.getOffset());
            line.add("change", parse(event.getData()));
            tell(line);
        }

        @Override
        public void onError(Subscription subscription, SubscriptionErrorEvent event) {
            tell("error", String.valueOf(event.getError()));
        }

        private static JsonObject of(Subscription subscription) {
            JsonObject line = new JsonObject();
            line.addProperty("channel", subscription.getChannel());
            return line;
        }
    }

    private static JsonObject parse(byte[] json) {
        return parse(new String(json, StandardCharsets.UTF_8));
    }

    private static JsonObject parse(String json) {
        return JsonParser.parseString(json).getAsJsonObject();
    }

    private static void tell(String key, String value) {
        JsonObject line = new JsonObject();
        line.addProperty(key, value);
        tell(line);
    }

    private static synchronized void tell(JsonObject line) {
        System.out.println(line);
    }
}
