package main

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"
)

// step is one step of a vector: one action, what belongs to it, and what is then seen.
type step struct {
	Reset   *Page
	Append  *Page
	Cursor  string // that the appended page was asked for with
	Apply   *Change
	Lost    bool
	Restart bool
	At      struct {
		Offset uint64
		Epoch  string
	}
	Now int64
}

// take takes a step and answers what it answered.
func take(t *testing.T, feed *Feed, s step) any {
	switch {
	case s.Reset != nil:
		return answer(feed.Reset(*s.Reset))
	case s.Append != nil:
		return feed.Append(*s.Append, s.Cursor)
	case s.Apply != nil:
		return answer(feed.Apply(*s.Apply, s.At.Offset, s.At.Epoch))
	case s.Lost:
		feed.Lost()
	case s.Restart:
		again := Feed{Cap: feed.Cap, TTL: feed.TTL}
		if err := json.Unmarshal(encode(t, feed), &again); err != nil {
			t.Fatal(err)
		}
		*feed = again
	}
	return nil
}

func answer(taken bool, err error) any {
	switch {
	case errors.Is(err, ErrGap):
		return "gap"
	case errors.Is(err, ErrUnknownOp):
		return "unknown op"
	}
	return taken
}

// TestVectors holds the reducer to feed-vectors.json.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../feed-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name   string
		Limits struct{ Cap, TTL int }
		Steps  []json.RawMessage
	}
	decode(t, text, &vectors)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			feed := Feed{Cap: v.Limits.Cap, TTL: time.Duration(v.Limits.TTL) * time.Millisecond}
			for _, text := range v.Steps {
				var s step
				decode(t, text, &s)
				compare(t, text, see(&feed, take(t, &feed, s), time.UnixMilli(s.Now)))
			}
		})
	}
}

// see answers all that can be seen of a feed after a step.
func see(feed *Feed, answers any, now time.Time) map[string]any {
	shows, bodies, arounds := []json.RawMessage{}, []json.RawMessage{}, []around{}
	items := feed.Items(now)
	for _, item := range items {
		var fields map[string]json.RawMessage
		text, _ := json.Marshal(item)
		_ = json.Unmarshal(text, &fields)
		shows, bodies, arounds = append(shows, fields["id"]), append(bodies, item.Body), append(arounds, item.around)
	}
	return map[string]any{"answers": answers, "shows": shows, "bodies": bodies, "position": feed.Position, "next": feed.Next,
		"around": arounds, "people": feed.people, "items": items}
}

// compare compares what a step wants with what is seen.
func compare(t *testing.T, step []byte, seen map[string]any) {
	var all, wanted map[string]any
	decode(t, encode(t, seen), &all)
	decode(t, step, &wanted)
	for what, is := range all {
		if should, told := wanted[what]; told && !reflect.DeepEqual(is, should) {
			t.Fatalf("%s is %v after %s", what, is, step)
		}
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
