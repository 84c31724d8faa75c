// An app in Go: it shows a feed, scrolls up, and goes on where it was after it was killed.
//
//	cd examples/go
//	FEEDGATE_KEY=$(cat ../../data/secrets/api_key) go run . bob bob.json
//
// FILE holds the list and its position between two runs. The line `older` on stdin loads an older page.
//
// This SDK takes no position from the app. So the app acknowledges its position, and subscribes with `resume: stored`.
// The reply tells where the server goes on; if that is not where the list stands, the app loads page one.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

const (
	tick     = time.Second      // between two writes of the file, and between two attempts
	patience = 10 * time.Second // for the answer to a request
)

// app is one reader's feed on this device. Only the goroutine of run touches it; the others send it what to do.
type app struct {
	url, user, file string
	feed            Feed
	saved           []byte // what the file holds
	do              chan func()
	client          *centrifuge.Client
	subscription    *centrifuge.Subscription
}

// kept is what the file holds: a list, and the user whose it is.
type kept struct {
	User string `json:"user"`
	Feed *Feed  `json:"feed"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run . USER FILE")
		os.Exit(2)
	}
	a := app{url: os.Getenv("FEEDGATE_URL"), user: os.Args[1], file: os.Args[2], do: make(chan func(), 64)}
	if a.url == "" {
		a.url = "http://127.0.0.1:8080"
	}
	if err := a.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (a *app) run() error {
	a.restore()
	stopped := make(chan error, 1)
	a.client = centrifuge.NewJsonClient(strings.Replace(a.url, "http", "ws", 1)+"/connection/websocket", centrifuge.Config{GetToken: a.token})
	a.client.OnError(func(event centrifuge.ErrorEvent) { fmt.Fprintln(os.Stderr, event.Error) })
	a.client.OnDisconnected(func(event centrifuge.DisconnectedEvent) {
		stopped <- fmt.Errorf("stopped for good: %s (%d)", event.Reason, event.Code)
	})
	if err := a.listen(); err != nil {
		return err
	}
	_ = a.client.Connect() // an error was told to OnError, and the SDK tries again
	if a.feed.Position == nil {
		a.load()
	} else {
		fmt.Println("going on from", a.feed.Position.Offset)
		a.resume()
	}
	go a.scroll()
	for ticks := time.Tick(tick); ; {
		select {
		case next := <-a.do:
			next()
		case <-ticks:
			a.save()
		case err := <-stopped:
			return err
		}
	}
}

// listen makes the subscription and sends its events to the goroutine of run.
func (a *app) listen() (err error) {
	data := []byte(`{"deliver":"items","resume":"stored"}`)
	a.subscription, err = a.client.NewSubscription("feed", centrifuge.SubscriptionConfig{Data: data})
	if err != nil {
		return err
	}
	a.subscription.OnError(func(event centrifuge.SubscriptionErrorEvent) { fmt.Fprintln(os.Stderr, event.Error) })
	a.subscription.OnSubscribed(func(event centrifuge.SubscribedEvent) { a.do <- func() { a.subscribed(event.Data) } })
	a.subscription.OnPublication(func(event centrifuge.PublicationEvent) {
		a.do <- func() { a.published(event.Data, event.Offset) }
	})
	return nil
}

// subscribed compares where the server goes on with where the list stands.
func (a *app) subscribed(data []byte) {
	var from Position
	if err := json.Unmarshal(data, &from); err != nil || a.feed.Position != nil && *a.feed.Position != from {
		a.load()
	}
}

func (a *app) published(data []byte, offset uint64) {
	var change Change
	err := json.Unmarshal(data, &change)
	if err == nil {
		_, err = a.feed.Apply(change, offset, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		a.load()
		return
	}
	fmt.Println(change.Op, offset)
}

// load asks for page one again. Changes that come meanwhile are held by the feed.
func (a *app) load() {
	a.feed.Lost()
	a.page(nil, func(page Page, err error) {
		if err == nil {
			_, err = a.feed.Reset(page)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.AfterFunc(tick, func() { a.do <- a.load })
			return
		}
		fmt.Println("loaded page one")
		a.resume()
	})
}

// resume acknowledges the position and subscribes; a subscription that is there already stays.
func (a *app) resume() {
	if a.feed.Position == nil {
		return // page one is being loaded again, and resumes after that
	}
	a.call("ack", a.feed.Position, func(_ []byte, err error) {
		var refused *centrifuge.Error
		switch {
		case errors.As(err, &refused) && !refused.Temporary:
			a.load() // the server does not know this position any more
		case err != nil:
			time.AfterFunc(tick, func() { a.do <- a.resume })
		default:
			_ = a.subscription.Subscribe() // fails only once the client is closed
		}
	})
}

// scroll loads an older page for each line `older`.
func (a *app) scroll() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "older" {
			a.do <- a.older
		}
	}
}

func (a *app) older() {
	cursor := a.feed.Next
	if cursor == nil {
		return
	}
	a.page(cursor, func(page Page, err error) {
		if err != nil || !a.feed.Append(page, *cursor) {
			fmt.Println("ask again: the feed has changed meanwhile, or there was no answer", err)
		}
	})
}

// page asks for a page; run's goroutine gets the answer.
func (a *app) page(cursor *string, then func(Page, error)) {
	asked := map[string]any{"limit": 20}
	if cursor != nil {
		asked["cursor"] = *cursor
	}
	a.call("page", asked, func(data []byte, err error) {
		var page Page
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		then(page, err)
	})
}

// call makes a remote call beside the goroutine of run, which gets the answer.
func (a *app) call(method string, asked any, then func([]byte, error)) {
	data, err := json.Marshal(asked)
	if err != nil {
		panic(err) // these values are made of strings and numbers
	}
	go func() {
		within, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		answer, err := a.client.RPC(within, method, data)
		a.do <- func() { then(answer.Data, err) }
	}()
}

// token asks for a token. A real app asks its own backend: only backends hold the key.
func (a *app) token(centrifuge.ConnectionTokenEvent) (string, error) {
	body := bytes.NewBufferString(`{"device_id":"app-go"}`)
	request, err := http.NewRequest(http.MethodPost, a.url+"/v1/users/"+a.user+"/token", body)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("FEEDGATE_KEY"))
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return "", centrifuge.ErrUnauthorized // the SDK stops
	default:
		why, _ := io.ReadAll(response.Body)
		return "", fmt.Errorf("no token: %s %s", response.Status, why)
	}
	var answer struct{ Token string }
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Token, err
}

// restore takes the list that the last run left for this user. A file that cannot be used counts as none.
func (a *app) restore() {
	text, err := os.ReadFile(a.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var last kept
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, a.file, "cannot be used:", err)
	} else if last.User == a.user && last.Feed != nil {
		a.feed, a.saved = *last.Feed, text
	}
}

// save stores the list together with its position, and only then acknowledges. A write that fails is tried again.
func (a *app) save() {
	text, err := json.Marshal(kept{a.user, &a.feed})
	if err == nil && (a.feed.Position == nil || bytes.Equal(text, a.saved)) {
		return
	}
	if err == nil {
		err = a.write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "not saved:", err)
		return
	}
	a.saved = text
	a.call("ack", a.feed.Position, func([]byte, error) {}) // the next one says as much
}

// write puts a text into the file. A crash leaves the old text there, or the new one, and never a part.
func (a *app) write(text []byte) error {
	out, err := os.OpenFile(a.file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(a.file+".new", a.file)
}
