package report

import (
	"cmp"
	"strings"
	"time"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// The reasons why a provider delays a session, from provider.retrying.
const (
	waitRateLimit = "rate limit" // its own request was refused
	waitGate      = "gate"       // a request of another session was refused, and all users of the model wait
)

// hold is a time in which a provider accepted no requests to a model: from the first delayed session until the end of the last delay.
type hold struct {
	from     centurion.Time
	until    centurion.Time
	first    int // the index of its first event
	asked    int // refused requests
	longest  int64
	said     string // the provider's message at its first refusal
	sessions map[string]bool
}

// holds are the troubles with providers' delays, by the index of their first event: regardless of the number of waiting sessions, it is
// one trouble of the provider.
func holds(d Data) map[int]Trouble {
	models := modelsOf(d)
	open := map[string]*hold{} // the newest one by model
	out := map[int]Trouble{}
	for i, e := range d.Events {
		models.see(e)
		r, ok := held(e)
		if !ok {
			continue
		}
		model := cmp.Or(models[e.Session], d.Mission.Options.Model, "the model")
		h := open[model]
		if h == nil || e.Time.After(h.until.Add(holdGrace)) {
			h = &hold{from: e.Time, first: i, sessions: map[string]bool{}}
			open[model] = h
		}
		h.take(e, r)
		out[h.first] = h.trouble(model)
	}
	return out
}

// holdGrace is the time after a hold in which another delay still belongs to it: the sessions continue one after the other, and early
// ones are delayed again.
const holdGrace = time.Second

// held reads a delay requested by a provider.
func held(e centurion.Event) (view.Fact, bool) {
	if e.Type != centurion.EventProviderRetry {
		return view.Fact{}, false
	}
	r, err := view.Decode(e)
	return r, err == nil && (r.Reason == waitRateLimit || r.Reason == waitGate)
}

func (h *hold) take(e centurion.Event, r view.Fact) {
	h.sessions[e.Session] = true
	if end := e.Time.Add(text.Millis(r.WaitMS)); end.After(h.until.Time) {
		h.until = centurion.Time{Time: end}
	}
	if r.Reason == waitRateLimit {
		if h.asked++; h.asked == 1 {
			h.longest, h.said = 0, r.Error.Text // delays of the others were not requested
		}
	}
	if h.asked == 0 || r.Reason == waitRateLimit {
		h.longest = max(h.longest, r.WaitMS)
	}
}

func (h *hold) trouble(model string) Trouble {
	what := "asked " + text.If(h.asked > 1, itoa(h.asked)+" times to wait, at most ", "to wait ") + cmp.Or(span(h.longest), "for a moment")
	return Trouble{Time: h.from, Where: "the provider of " + model, What: what + suffix(": ", strings.TrimPrefix(h.said, "call "+model+": ")),
		Then: centurion.Count(len(h.sessions), "session") + " waited"}
}

// begunAgain finds the attempts that tasks began because the mission was resumed, after its host had gone or a person had stopped it:
// the index of the mission.resumed event by the index of the attempt's event. Nothing of the task had failed.
func begunAgain(events []centurion.Event) map[int]int {
	out := map[int]int{}
	resumed := -1
	since := map[string]bool{} // tasks that have begun since
	for i, e := range events {
		switch e.Type {
		case centurion.EventMissionResumed:
			resumed = i
			clear(since)
		case centurion.EventTaskStarted:
			since[e.Task] = true
		case centurion.EventTaskRetrying:
			k := view.Read(e)
			if k.TaskStatus() != centurion.TaskRunning { // a retry of one of its requests
				continue
			}
			if resumed >= 0 && !since[e.Task] && k.Reason == "" && k.Error == (view.Error{}) {
				out[i] = resumed
			}
			since[e.Task] = true
		}
	}
	return out
}

// attempts is the result of [begunAgain], computed once per report.
func (d Data) attempts() map[int]int {
	if d.again == nil {
		return begunAgain(d.Events)
	}
	return d.again
}

// begun describes how many tasks began another attempt because of the mission.resumed with index i.
func begun(attempts map[int]int, i int) string {
	n := 0
	for _, resumed := range attempts {
		if resumed == i {
			n++
		}
	}
	return text.When(n > 0, "; "+centurion.Count(n, "task")+" began another attempt")
}

// models are the current models of sessions, by session id; see updates them with an event.
type models map[string]string

func modelsOf(d Data) models {
	m := models{}
	for _, s := range d.Sessions {
		if own := s.Own(); own.ID != "" {
			m[s.ID] = own.String()
		}
	}
	return m
}

func (m models) see(e centurion.Event) {
	if e.Type != centurion.EventSessionCreated && e.Type != centurion.EventSessionModel {
		return
	}
	f, _ := view.Decode(e)
	if to := text.If(e.Type == centurion.EventSessionModel, f.To, f.Model); to != "" {
		m[e.Session] = to
	}
}
