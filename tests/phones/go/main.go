// A phone that runs the unmodified centrifuge-go SDK, as tests/actors/foreign.js tells it to.
//
//	go-phone WEBSOCKET_URL      (CONNECT in the environment)
//
// With FEEDGATE_PROTOCOL=json it speaks JSON, otherwise Protobuf. It ends when its stdin does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

const (
	soon    = 20 * time.Millisecond
	later   = 200 * time.Millisecond
	patient = time.Minute // for an answer: a machine under load is slow
)

type fields map[string]any

type position struct {
	Epoch  string `json:"epoch"`
	Offset uint64 `json:"offset"`
}

// message is what the journey tells this program; which fields it has depends on Do.
type message struct {
	Do      string          `json:"do"`
	ID      uint64          `json:"id"`
	Channel string          `json:"channel"`
	Method  string          `json:"method"`
	Data    json.RawMessage `json:"data"`
	Since   position        `json:"since"`
	Limit   int32           `json:"limit"`
	Value   string          `json:"value"`
	Error   string          `json:"error"`
}

var (
	out   sync.Mutex
	asked sync.Map // what the SDK asks the app for, by number: a channel for the answer
	count uint64   // of what was asked; only the SDK's own goroutine asks
)

func tell(line fields) {
	out.Lock()
	defer out.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		os.Exit(1)
	}
}

// failure is an error as the journeys get it; the code is 0 if the server did not send it.
func failure(err error) fields {
	var refused *centrifuge.Error
	if errors.As(err, &refused) {
		return fields{"code": refused.Code, "message": err.Error()}
	}
	return fields{"code": 0, "message": err.Error()}
}

func with(event string, more fields) fields {
	more["event"] = event
	return more
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url string) error {
	client, err := connection(url)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var told message
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			return err
		}
		if err := carryOut(client, told); err != nil {
			return err
		}
	}
	return lines.Err()
}

func carryOut(client *centrifuge.Client, told message) error {
	switch told.Do {
	case "connect":
		go connect(client) // it asks for a token first, and the answer comes by stdin
	case "disconnect":
		return client.Disconnect()
	case "subscribe":
		return subscribe(client, told)
	case "answer":
		answer, _ := asked.LoadAndDelete(told.ID)
		answer.(chan message) <- told
	default:
		go reply(client, told)
	}
	return nil
}

func connect(client *centrifuge.Client) {
	if err := client.Connect(); err != nil {
		tell(with("error", failure(err)))
	}
}

func connection(url string) (*centrifuge.Client, error) {
	var connect struct {
		Data  json.RawMessage
		Token string
	}
	if err := json.Unmarshal([]byte(os.Getenv("CONNECT")), &connect); err != nil {
		return nil, err
	}
	config := centrifuge.Config{
		Data: connect.Data, Token: connect.Token, MinReconnectDelay: soon, MaxReconnectDelay: later,
		HandshakeTimeout: patient, ReadTimeout: patient, WriteTimeout: patient,
	}
	if connect.Token == "" {
		config.GetToken = func(centrifuge.ConnectionTokenEvent) (string, error) { return token() }
	}
	open := centrifuge.NewProtobufClient
	if os.Getenv("FEEDGATE_PROTOCOL") == "json" {
		open = centrifuge.NewJsonClient
	}
	client := open(url, config)
	client.OnConnecting(func(to centrifuge.ConnectingEvent) {
		tell(fields{"event": "connecting", "code": to.Code, "reason": to.Reason})
	})
	client.OnConnected(func(centrifuge.ConnectedEvent) { tell(fields{"event": "connected"}) })
	client.OnDisconnected(func(to centrifuge.DisconnectedEvent) {
		tell(fields{"event": "disconnected", "code": to.Code, "reason": to.Reason})
	})
	client.OnError(func(event centrifuge.ErrorEvent) { tell(with("error", failure(event.Error))) })
	return client, nil
}

// token asks the app for a token.
func token() (string, error) {
	answer := make(chan message, 1)
	count++
	asked.Store(count, answer)
	tell(fields{"event": "ask", "id": count})
	told := <-answer
	if told.Error != "" {
		return "", errors.New(told.Error)
	}
	return told.Value, nil
}

func subscribe(client *centrifuge.Client, told message) error {
	channel := told.Channel
	subscription, err := client.NewSubscription(channel, centrifuge.SubscriptionConfig{
		Data:                told.Data,
		MinResubscribeDelay: soon,
		MaxResubscribeDelay: later,
	})
	if err != nil {
		return err
	}
	subscription.OnSubscribed(func(event centrifuge.SubscribedEvent) {
		tell(fields{
			"event": "subscribed", "channel": channel, "recovered": event.Recovered,
			"wasRecovering": event.WasRecovering, "data": json.RawMessage(event.Data),
		})
	})
	subscription.OnUnsubscribed(func(event centrifuge.UnsubscribedEvent) {
		tell(fields{"event": "unsubscribed", "channel": channel, "code": event.Code, "reason": event.Reason})
	})
	subscription.OnPublication(func(event centrifuge.PublicationEvent) {
		tell(fields{"event": "publication", "channel": channel, "offset": event.Offset, "data": json.RawMessage(event.Data)})
	})
	subscription.OnError(func(event centrifuge.SubscriptionErrorEvent) {
		failed := failure(event.Error)
		failed["channel"] = channel
		tell(with("error", failed))
	})
	return subscription.Subscribe()
}

// reply makes a call and tells what came of it.
func reply(client *centrifuge.Client, told message) {
	within, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	value, err := call(within, client, told)
	if err != nil {
		tell(fields{"event": "reply", "id": told.ID, "error": failure(err)})
		return
	}
	tell(fields{"event": "reply", "id": told.ID, "value": value})
}

func call(within context.Context, client *centrifuge.Client, told message) (fields, error) {
	if told.Do == "rpc" {
		answer, err := client.RPC(within, told.Method, told.Data)
		return fields{"data": json.RawMessage(answer.Data)}, err
	}
	since := centrifuge.StreamPosition{Offset: told.Since.Offset, Epoch: told.Since.Epoch}
	options := []centrifuge.HistoryOption{centrifuge.WithHistorySince(&since), centrifuge.WithHistoryLimit(told.Limit)}
	found, err := client.History(within, told.Channel, options...)
	publications := []fields{}
	for _, one := range found.Publications {
		publications = append(publications, fields{"offset": one.Offset, "data": json.RawMessage(one.Data)})
	}
	return fields{"publications": publications, "offset": found.Offset}, err
}
