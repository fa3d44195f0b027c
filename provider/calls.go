package provider

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"centurion"
)

// calls puts the calls of one answer together from fragments.
//
// A fragment belongs to the call at its index. Real endpoints deviate: no index, no id, an empty id or the name in every
// fragment, a name in pieces, two calls at the same index, one call at two, the same id twice, all in one fragment. A
// call starts for the reader when its name is complete, that is with the first piece of its arguments.
type calls struct {
	all     []*call
	started int
	ids     map[string]bool // that were told
}

type call struct {
	index int    // the provider's; -1 if it gave none
	given string // the provider's id; may be empty
	name  string
	args  strings.Builder
	sent  int  // bytes of args that were told
	begun bool // CallStart was told
	told  int  // its index for the reader
}

// add takes a fragment and tells what can be told.
func (cs *calls) add(f wireCall, emit func(Delta)) {
	c := cs.find(f)
	if c == nil {
		return
	}
	if name := string(f.Function.Name); name != "" && !c.begun && name != c.name {
		c.name += name
	}
	c.args.WriteString(string(f.Function.Arguments))
	if c.name != "" && c.args.Len() > 0 {
		cs.tell(c, emit)
	}
}

// find returns the call that a fragment belongs to, a new one if it begins one, or nil for a repetition.
func (cs *calls) find(f wireCall) *call {
	id, name, args := string(f.ID), string(f.Function.Name), string(f.Function.Arguments)
	if f.Index == nil {
		switch last := cs.last(func(*call) bool { return true }); {
		case id != "":
			if c := cs.last(func(c *call) bool { return c.given == id }); c != nil {
				return c
			}
		case last != nil && (name == "" || last.name == ""):
			return last
		}
		return cs.start(-1, id)
	}
	c := cs.last(func(c *call) bool { return c.index == *f.Index })
	switch {
	case c == nil:
		// An id goes on under another index, or, with a name, is used again.
		if same := cs.last(func(c *call) bool { return id != "" && c.given == id }); same != nil && name == "" {
			return same
		}
		return cs.start(*f.Index, id)
	case id == c.given || id == "":
		if name == "" || args == "" || !c.whole() {
			return c
		}
		if id != "" && args == c.args.String() {
			return nil // the whole call once more
		}
		return cs.start(*f.Index, id)
	case c.given == "" && (name == "" || c.name == "" && c.args.Len() == 0):
		if !c.begun {
			c.given = id // late, but it is the same call
		}
		return c
	}
	return cs.start(*f.Index, id)
}

func (cs *calls) start(index int, id string) *call {
	c := &call{index: index, given: id}
	cs.all = append(cs.all, c)
	return c
}

func (cs *calls) last(is func(*call) bool) *call {
	for _, c := range slices.Backward(cs.all) {
		if is(c) {
			return c
		}
	}
	return nil
}

// whole reports whether the arguments are a complete object.
func (c *call) whole() bool {
	s := strings.TrimSpace(c.args.String())
	return strings.HasSuffix(s, "}") && json.Valid([]byte(s))
}

// tell starts c, and those with a name that came before it, and tells what it has of its arguments.
func (cs *calls) tell(c *call, emit func(Delta)) {
	if !c.begun {
		for _, earlier := range cs.all {
			if earlier == c {
				break
			}
			if !earlier.begun && earlier.name != "" {
				cs.begin(earlier, emit)
			}
		}
		cs.begin(c, emit)
	}
	if rest := c.args.String()[c.sent:]; rest != "" {
		c.sent += len(rest)
		emit(Delta{Type: CallInput, Index: c.told, Text: rest})
	}
}

func (cs *calls) begin(c *call, emit func(Delta)) {
	id := c.given
	if id == "" || cs.ids[id] {
		id = "call_" + rand.Text()
	}
	if cs.ids == nil {
		cs.ids = map[string]bool{}
	}
	cs.ids[id] = true
	c.begun, c.told = true, cs.started
	cs.started++
	emit(Delta{Type: CallStart, Index: c.told, CallID: id, Name: c.name})
}

// errNameless is the error for what nameless reports.
var errNameless = &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the answer has a call without a name: events were lost"}

// nameless reports whether arguments came for a call whose name did not: its beginning was lost. Nobody can run it, and
// a history with it in is refused.
func (cs *calls) nameless() bool {
	return slices.ContainsFunc(cs.all, func(c *call) bool { return c.name == "" && c.args.Len() > 0 })
}

// end tells what is left and returns how many calls there were. If the answer did not end cleanly, only calls whose
// arguments are complete beyond doubt end.
func (cs *calls) end(clean bool, emit func(Delta)) int {
	for _, c := range cs.all {
		if !c.begun && c.name == "" && c.args.Len() == 0 {
			continue // an empty entry is no call
		}
		cs.tell(c, emit)
		if !clean && !c.whole() {
			continue
		}
		if strings.TrimSpace(c.args.String()) == "" {
			emit(Delta{Type: CallInput, Index: c.told, Text: "{}"})
		}
		emit(Delta{Type: CallEnd, Index: c.told})
	}
	return cs.started
}
