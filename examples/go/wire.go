package main

import (
	"cmp"
	"encoding/json"
)

// Position is a place in the change log of a feed.
type Position struct {
	Epoch  string `json:"epoch"`
	Offset uint64 `json:"offset"`
}

// place is where an item stands in a list: by rank, ties by id.
type place struct {
	Rank int64  `json:"rank"`
	ID   uint64 `json:"id,string"`
}

// compare is positive if p is newer than other.
func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.Rank, other.Rank), cmp.Compare(p.ID, other.ID))
}

// Item is what an author published.
type Item struct {
	place
	Author      string          `json:"author"`
	Kind        string          `json:"kind,omitempty"`
	ForeignID   string          `json:"foreign_id,omitempty"`
	Body        json.RawMessage `json:"body"`
	PublishedAt int64           `json:"published_at"` // Unix time in milliseconds
	Direct      bool            `json:"direct,omitempty"`
	Narrowed    bool            `json:"narrowed,omitempty"` // it is for some of the author's followers
	Version     uint64          `json:"version"`
	Ref         string          `json:"ref,omitempty"`      // the id of the item that this one reposts
	Mentions    []string        `json:"mentions,omitempty"` // the users whom it mentions
	around
}

// around is what pages say of an item besides; a pushed change says none of it.
type around struct {
	Counts  map[string]uint64 `json:"counts,omitempty"`   // how many reacted, by kind, and how many comments and reposts there are
	Own     []string          `json:"own,omitempty"`      // the kinds with which the reader has reacted
	RefItem *Item             `json:"ref_item,omitempty"` // the original of a repost, as it was when the page was read
	RefGone bool              `json:"ref_gone,omitempty"` // the original of a repost is not to be seen
}

// Person is how a user is shown.
type Person struct {
	Name   string `json:"name,omitempty"`
	Avatar string `json:"avatar,omitempty"`
}

// Page is a stretch of a feed in display order.
type Page struct {
	Items    []Item            `json:"items"`
	Next     *string           `json:"next"`
	Position Position          `json:"position"`
	People   map[string]Person `json:"people"` // by user
}

// Change is one entry of the change log. Which fields it has depends on Op.
type Change struct {
	Op     string `json:"op"`
	Item   *Item  `json:"item"`
	ItemID uint64 `json:"item_id,string"`
	Author string `json:"author"`
	Floor  *place `json:"floor"` // of a forget: pages from Next on have more than the changes after it
	Next   string `json:"next"`
}

// heldMax is how many changes a Feed holds at most while page one is loading.
const heldMax = 1000

// held is a change that came while a Feed had no position.
type held struct {
	change Change
	offset uint64
	epoch  string
}

// stored is how a Feed is kept between two runs of an app.
type stored struct {
	Items    []Item            `json:"items"`
	Next     *string           `json:"next"`
	Position *Position         `json:"position"`
	Bottom   *place            `json:"bottom"`
	People   map[string]Person `json:"people"`
}

// MarshalJSON answers the feed, but for its limits and for what it holds back.
func (f *Feed) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{f.sorted(), f.Next, f.Position, f.bottom, f.people})
}

// UnmarshalJSON takes a feed as MarshalJSON wrote it, and keeps the limits.
func (f *Feed) UnmarshalJSON(text []byte) error {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*f = Feed{Cap: f.Cap, TTL: f.TTL, Next: s.Next, Position: s.Position, bottom: s.Bottom, items: map[uint64]Item{}}
	for _, item := range s.Items {
		f.items[item.ID] = item
	}
	f.people = s.People
	if f.people == nil {
		f.people = map[string]Person{}
	}
	if s.Position != nil {
		f.rewritten = s.Position.Offset
	}
	return nil
}
