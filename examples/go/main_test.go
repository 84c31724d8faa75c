package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge-go"
	"github.com/gorilla/websocket"
)

// command is what the SDK sends; one of its fields says what is asked.
type command struct {
	ID        uint32
	Connect   *struct{}
	Subscribe *struct{}
	RPC       *struct{ Method string }
}

// gateway answers one device. It tells what it was asked, and gives these answers to `ack`, one after another.
func gateway(t *testing.T, acks []string) (url string, asked chan string) {
	asked = make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		socket, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer socket.Close()
		for {
			_, frame, err := socket.ReadMessage()
			if err != nil {
				return
			}
			for lines := json.NewDecoder(bytes.NewReader(frame)); ; {
				var c command
				if lines.Decode(&c) != nil {
					break
				}
				answer := map[string]any{"id": c.ID}
				switch {
				case c.Connect != nil:
					answer["connect"] = json.RawMessage(`{"client":"app"}`)
				case c.Subscribe != nil:
					asked <- "subscribe"
					answer["subscribe"] = json.RawMessage(`{"data":{"epoch":"a","offset":7}}`)
				case c.RPC.Method == "page":
					asked <- "page"
					answer["rpc"] = json.RawMessage(`{"data":{"items":[],"next":null,"position":{"epoch":"a","offset":7}}}`)
				default:
					asked <- c.RPC.Method
					answer["rpc"] = json.RawMessage(`{"data":{}}`)
					if len(acks) > 0 {
						delete(answer, "rpc")
						answer["error"] = json.RawMessage(acks[0])
						acks = acks[1:]
					}
				}
				if socket.WriteJSON(answer) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// TestResume looks at what the app asks, from where its list stands until it is subscribed.
func TestResume(t *testing.T) {
	const refused, temporary = `{"code":112,"message":"unknown position"}`, `{"code":100,"message":"no answer","temporary":true}`
	for name, test := range map[string]struct {
		begin func(*app)
		acks  []string
		asked []string
	}{
		"the server takes the position":            {(*app).resume, nil, []string{"ack", "subscribe"}},
		"the server is away for a moment":          {(*app).resume, []string{temporary}, []string{"ack", "ack", "subscribe"}},
		"the server does not know the position":    {(*app).resume, []string{refused}, []string{"ack", "page", "ack", "subscribe"}},
		"a second try finds page one being loaded": {func(a *app) { a.load(); a.resume() }, nil, []string{"page", "ack", "subscribe"}},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := gateway(t, test.acks)
			a := &app{do: make(chan func(), 64), feed: Feed{Position: &Position{"a", 7}}}
			a.client = centrifuge.NewJsonClient(strings.Replace(url, "http", "ws", 1), centrifuge.Config{})
			t.Cleanup(a.client.Close)
			if err := a.listen(); err != nil {
				t.Fatal(err)
			}
			if err := a.client.Connect(); err != nil {
				t.Fatal(err)
			}
			test.begin(a)
			var saw []string
			for late := time.After(time.Minute); !slices.Contains(saw, "subscribe"); {
				select {
				case next := <-a.do:
					next()
				case what := <-asked:
					saw = append(saw, what)
				case <-late:
					t.Fatalf("it asked %v, and not to subscribe", saw)
				}
			}
			if !slices.Equal(saw, test.asked) {
				t.Errorf("it asked %v, not %v", saw, test.asked)
			}
		})
	}
}
