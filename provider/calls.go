package provider

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"centurion"
)

// calls assembles the calls of one answer from fragments.
//
// A fragment belongs to the call at its index. Real endpoints deviate: no index, no id, an empty id or the name in every fragment, a
// name in pieces, two calls at the same index, one call at two, the same id twice, everything in one fragment. For the reader a call
// starts when its name is complete, that is with the first piece of its arguments.
type calls struct {
	all     []*call
	started int
	ids     map[string]bool // already yielded
}

type call struct {
	index int    // the provider's; -1 without one
	given string // the provider's id; may be empty
	name  string
	args  strings.Builder
	sent  int  // yielded bytes of args
	begun bool // CallStart was yielded
	told  int  // its index for the reader
}

// add takes a fragment and yields complete parts.
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

// find returns the call of a fragment, a new one if it begins one, or nil for a repetition.
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
		// An id continues under another index, or, with a name, is reused.
		if same := cs.last(func(c *call) bool { return id != "" && c.given == id }); same != nil && name == "" {
			return same
		}
		return cs.start(*f.Index, id)
	case id == c.given || id == "":
		if name == "" || args == "" || !c.whole() {
			return c
		}
		if id != "" && args == c.args.String() {
			return nil // the whole call again
		}
		return cs.start(*f.Index, id)
	case c.given == "" && (name == "" || c.name == "" && c.args.Len() == 0):
		if !c.begun {
			c.given = id // late, but the same call
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

// tell starts c, and earlier calls with a name, and yields its arguments so far.
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

// nameless reports whether there are arguments for a call without a name, whose beginning was lost. It cannot be run, and providers
// refuse a history with it.
func (cs *calls) nameless() bool {
	return slices.ContainsFunc(cs.all, func(c *call) bool { return c.name == "" && c.args.Len() > 0 })
}

// end yields the rest and returns the number of calls. If the answer did not end cleanly, only calls with definitely complete arguments
// end.
func (cs *calls) end(clean bool, emit func(Delta)) int {
	for _, c := range cs.all {
		if !c.begun && c.name == "" && c.args.Len() == 0 {
			continue // an empty entry is not a call
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
