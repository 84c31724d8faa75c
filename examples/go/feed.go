package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	// ErrGap says that changes are missing between the position and what came: the app loads page one again.
	ErrGap = errors.New("changes are missing")
	// ErrUnknownOp says that a change has an op that this program does not know.
	ErrUnknownOp = errors.New("a change has op add, update, delete, forget or behind")
)

// Feed is the list that a device shows, kept from pages and changes, for use by one goroutine. feed.js has the rules.
type Feed struct {
	Cap int           // items shown at most; 0: no limit
	TTL time.Duration // how long an item is shown after its publication; 0: no limit

	Position *Position // that of the last change taken in; nil: page one is missing
	Next     *string   // the cursor of the next older page; nil at the end

	items     map[uint64]Item
	people    map[string]Person // as the last page had them, by user
	bottom    *place            // that of the last item of the last page, unless that was the end
	rewritten uint64            // an older page read before this offset lacks what the list knows, or has what is gone
	removed   *Item             // what the last change deleted: the next one adds it again if it moves
	held      []held            // what came while there was no position
}

// Reset starts over from page one, then takes in what came meanwhile. It answers false if the list is newer already.
func (f *Feed) Reset(page Page) (bool, error) {
	if f.isOf(page.Position.Epoch) && page.Position.Offset < f.Position.Offset {
		return false, nil
	}
	waiting := f.held
	*f = Feed{Cap: f.Cap, TTL: f.TTL, Position: &page.Position, items: map[uint64]Item{}, people: map[string]Person{},
		rewritten: page.Position.Offset}
	f.extend(page)
	for _, h := range waiting {
		if h.epoch != "" && !f.isOf(h.epoch) {
			continue
		}
		if _, err := f.Apply(h.change, h.offset, h.epoch); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Append adds an older page, which was asked for with cursor. It answers false if the page goes on from another place
// than the end of the list, or was read before changes that the list holds: ask again, with the Next of now.
func (f *Feed) Append(page Page, cursor string) bool {
	if f.Next == nil || *f.Next != cursor || !f.isOf(page.Position.Epoch) || page.Position.Offset < f.rewritten {
		return false
	}
	f.extend(page)
	return true
}

// Lost forgets the position. What is shown stays until Reset, and changes are held until then.
func (f *Feed) Lost() { f.Position, f.held = nil, nil }

// Apply takes in one change: true if it was new, ErrGap if the one before it is missing. An empty epoch is not compared.
func (f *Feed) Apply(change Change, offset uint64, epoch string) (bool, error) {
	if change.Op == "behind" || change.Op == "seen" {
		return false, nil
	}
	if f.Position == nil {
		f.held = append(f.held[max(0, len(f.held)-heldMax+1):], held{change, offset, epoch})
		return false, nil
	}
	switch {
	case epoch != "" && !f.isOf(epoch):
		return false, fmt.Errorf("%w: epoch %s after %s", ErrGap, epoch, f.Position.Epoch)
	case offset <= f.Position.Offset:
		return false, nil
	case offset != f.Position.Offset+1:
		return false, fmt.Errorf("%w: change %d after %d", ErrGap, offset, f.Position.Offset)
	}
	if err := f.change(change); err != nil {
		return false, err
	}
	f.Position = &Position{f.Position.Epoch, offset}
	if change.Op != "add" || !f.reaches(change.Item.place) {
		f.rewritten = offset
	}
	return true, nil
}

// Items answers what to show, newest first.
func (f *Feed) Items(now time.Time) []Item {
	items := f.sorted()
	if f.Cap > 0 {
		items = items[:min(f.Cap, len(items))]
	}
	return slices.DeleteFunc(items, func(i Item) bool { return f.TTL > 0 && now.Sub(time.UnixMilli(i.PublishedAt)) > f.TTL })
}

// Person answers how the last page with an item of this author, or with a repost of one, showed the author.
func (f *Feed) Person(author string) (Person, bool) {
	person, known := f.people[author]
	return person, known
}

func (f *Feed) isOf(epoch string) bool { return f.Position != nil && f.Position.Epoch == epoch }

func (f *Feed) sorted() []Item {
	items := make([]Item, 0, len(f.items))
	for _, item := range f.items {
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b Item) int { return b.compare(a.place) })
	return items
}

func (f *Feed) extend(page Page) {
	for _, item := range page.Items {
		f.keep(item)
		f.meet(item.Author, page.People)
		if item.RefItem != nil {
			f.meet(item.RefItem.Author, page.People)
		}
	}
	f.Next = page.Next
	if f.Next == nil {
		f.bottom = nil
	} else if n := len(page.Items); n > 0 {
		f.bottom = &page.Items[n-1].place
	}
}

// reaches answers whether a place is in the loaded stretch, and not below it.
func (f *Feed) reaches(p place) bool { return f.bottom == nil || p.compare(*f.bottom) >= 0 }

func (f *Feed) change(change Change) error {
	removed := f.removed
	f.removed = nil
	switch change.Op {
	case "add":
		item := *change.Item
		if removed != nil && removed.ID == item.ID {
			item.around = removed.around
		}
		if f.reaches(item.place) {
			f.keep(item)
		}
	case "update":
		if shown, ok := f.items[change.Item.ID]; ok {
			item := *change.Item
			item.around = shown.around
			f.keep(item)
		}
	case "delete":
		if item, ok := f.items[change.ItemID]; ok {
			f.removed = &item
		}
		delete(f.items, change.ItemID)
	case "forget": // items that are addressed to the reader stay
		for id, item := range f.items {
			if item.Author == change.Author && !item.Direct {
				delete(f.items, id)
			}
		}
		if change.Floor != nil && f.reaches(*change.Floor) {
			f.cut(*change.Floor, change.Next)
		}
	default:
		return fmt.Errorf("%w, not %q", ErrUnknownOp, change.Op)
	}
	return nil
}

// cut ends the loaded stretch above floor; the page of next goes on with it.
func (f *Feed) cut(floor place, next string) {
	for id, item := range f.items {
		if item.compare(floor) <= 0 {
			delete(f.items, id)
		}
	}
	f.bottom, f.Next = &floor, &next
}

// meet keeps what a page says of the author of an item on it.
func (f *Feed) meet(author string, people map[string]Person) {
	if person, known := people[author]; known {
		f.people[author] = person
	} else {
		delete(f.people, author)
	}
}

// keep takes an item, unless a page had a later version of it than a change that comes after that page.
func (f *Feed) keep(item Item) {
	if shown, ok := f.items[item.ID]; !ok || shown.Version <= item.Version {
		f.items[item.ID] = item
	}
}
