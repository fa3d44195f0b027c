package plugin

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"
)

// Figures are what was counted of a plugin. They can be kept between processes.
type Figures struct {
	Hooked   int             `json:"hooked"`         // calls of its hooks
	Called   int             `json:"called"`         // calls of its tools
	Failures int             `json:"failures"`       // of hooks and tools, of handlers of events, and ends of its process
	Took     []time.Duration `json:"took,omitempty"` // of the last calls of its hooks
	// Sent are the bytes of requests that the next request of their conversation began with before this plugin saw it, and Kept how many of
	// them were still the same, in the same place, after it.
	Sent int64 `json:"sent,omitempty"`
	Kept int64 `json:"kept,omitempty"`
}

// took notes how long a hook took.
func (f *Figures) took(d time.Duration) {
	if len(f.Took) < samples {
		f.Took = append(f.Took, d)
	} else {
		f.Took[f.Hooked%samples] = d
	}
}

// Slow returns how long half of the last calls of hooks took at most, and 99 of 100.
func (f *Figures) Slow() (p50, p99 time.Duration) {
	if len(f.Took) == 0 {
		return 0, 0
	}
	all := slices.Sorted(slices.Values(f.Took))
	return all[len(all)/2], all[len(all)*99/100]
}

// Figures returns what was counted of the plugins, by name.
func (h *Host) Figures() map[string]Figures {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]Figures{}
	for _, p := range h.plugs {
		f := p.f
		f.Took = slices.Clone(f.Took)
		out[p.name] = f
	}
	return out
}

// transform is the hook whose output a provider may have cached.
const transform = "experimental.chat.messages.transform"

const maxMeasured = 200 // conversations of one plugin

// sent is a history as a plugin got it and as it left it.
type history struct{ got, left []piece }

// piece stands for a message.
type piece struct{ sum, bytes uint64 }

// measure notes how much of a conversation's last request stayed as it was in the next one. The lock of the host is not held.
func (h *Host) measure(p *plug, input, got, left json.RawMessage) {
	var in struct {
		Session string `json:"sessionID"`
	}
	if json.Unmarshal(input, &in) != nil {
		return
	}
	now := history{pieces(got), pieces(left)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, had := p.sent[in.Session]; had && shared(was.got, now.got) == total(was.got) { // else it was not this plugin that changed it
		p.f.Sent, p.f.Kept = p.f.Sent+total(was.left), p.f.Kept+shared(was.left, now.left)
	}
	if p.sent == nil || len(p.sent) >= maxMeasured {
		p.sent = map[string]history{}
	}
	p.sent[in.Session] = now
}

// pieces are the messages of a history, whatever wrote its JSON.
func pieces(raw json.RawMessage) (out []piece) {
	var all struct {
		Messages []struct {
			Info struct {
				Role string `json:"role"`
			} `json:"info"`
			Parts any `json:"parts"`
		} `json:"messages"`
	}
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, m := range all.Messages {
		b, _ := json.Marshal(m.Parts)
		sum := fnv.New64a()
		_, _ = sum.Write(append([]byte(m.Info.Role+"\n"), b...))
		out = append(out, piece{sum.Sum64(), uint64(len(b))})
	}
	return out
}

// shared are the bytes with which both histories begin.
func shared(a, b []piece) (bytes int64) {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		bytes += int64(a[i].bytes)
	}
	return bytes
}

func total(all []piece) int64 { return shared(all, all) }
