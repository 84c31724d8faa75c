// A phone that runs the unmodified centrifuge-go SDK, over Protobuf.
//
//	go-phone WEBSOCKET_URL {CHANNEL: POSITION, ...}      (TOKEN in the environment)
//
// This SDK cannot start from a position that the app has stored. So the phone acknowledges each position first, and
// subscribes with `resume: stored`. It prints a line of JSON for each change, each subscription and each error, until
// it is killed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

type position struct {
	Channel string `json:"channel"`
	Offset  uint64 `json:"offset"`
	Epoch   string `json:"epoch"`
}

var out sync.Mutex

func tell(line map[string]any) {
	out.Lock()
	defer out.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		os.Exit(1)
	}
}

func main() {
	if err := run(os.Args[1], []byte(os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url string, positions []byte) error {
	var channels map[string]position
	if err := json.Unmarshal(positions, &channels); err != nil {
		return err
	}
	client := centrifuge.NewProtobufClient(url, centrifuge.Config{
		Token:             os.Getenv("TOKEN"),
		MinReconnectDelay: 50 * time.Millisecond,
		MaxReconnectDelay: 200 * time.Millisecond,
	})
	client.OnError(func(event centrifuge.ErrorEvent) { tell(map[string]any{"error": event.Error.Error()}) })
	client.OnDisconnected(func(event centrifuge.DisconnectedEvent) {
		tell(map[string]any{"error": fmt.Sprintf("disconnected %d %s", event.Code, event.Reason)})
	})
	if err := client.Connect(); err != nil {
		return err
	}
	for channel, at := range channels {
		at.Channel = channel
		ack, err := json.Marshal(at)
		if err != nil {
			return err
		}
		if _, err := client.RPC(context.Background(), "ack", ack); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
		if err := subscribe(client, channel); err != nil {
			return err
		}
	}
	select {}
}

func subscribe(client *centrifuge.Client, channel string) error {
	subscription, err := client.NewSubscription(channel, centrifuge.SubscriptionConfig{
		Data:                []byte(`{"deliver":"items","resume":"stored"}`),
		MinResubscribeDelay: 50 * time.Millisecond,
		MaxResubscribeDelay: 200 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	subscription.OnSubscribed(func(event centrifuge.SubscribedEvent) {
		tell(map[string]any{
			"channel":    channel,
			"subscribed": map[string]bool{"recovered": event.Recovered, "was_recovering": event.WasRecovering},
			"data":       json.RawMessage(event.Data),
		})
	})
	subscription.OnPublication(func(event centrifuge.PublicationEvent) {
		tell(map[string]any{"channel": channel, "offset": event.Offset, "change": json.RawMessage(event.Data)})
	})
	subscription.OnError(func(event centrifuge.SubscriptionErrorEvent) { tell(map[string]any{"error": event.Error.Error()}) })
	return subscription.Subscribe()
}
