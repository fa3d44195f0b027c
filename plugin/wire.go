package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"centurion"
	"centurion/guard"
	"centurion/guard/peer"
)

const (
	// maxRate is how many messages a process may send in a second. What a tool shows of its progress comes 20 times a second at most.
	maxRate = 5000
	// maxNonsense is how many lines that are no message are skipped; a program may greet on its standard output.
	maxNonsense = 100
	queued      = 256
)

// Process is a started process.
type Process = peer.Process

// message is what the host sends.
type message struct {
	ID     int    `json:"id,omitempty"`
	Do     string `json:"do"`
	Plugin string `json:"plugin,omitempty"`
	Params any    `json:"params,omitempty"`
}

// answer is what a process sends: the end of a request with Result or Error, a sign of its progress, a question, or, without an id, a
// request of its own, or a fault that belongs to no request.
type answer struct {
	ID       int             `json:"id"`
	Result   json.RawMessage `json:"result"`
	Error    *string         `json:"error"`
	Kind     string          `json:"kind"` // "arguments": the call was refused before it began
	Progress *progress       `json:"progress"`
	Ask      json.RawMessage `json:"ask"`
	N        int             `json:"n"` // of a question, unique within its request; of a fetch, within the process
	Fetch    *fetch          `json:"fetch"`
	Fault    string          `json:"fault"`
	Plugin   string          `json:"plugin"`
}

type progress struct {
	Title    string          `json:"title"`
	Metadata json.RawMessage `json:"metadata"`
}

// parse reads one line of a process.
func parse(line []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return a, err
	}
	kinds := 0
	for _, has := range []bool{a.Result != nil, a.Error != nil, a.Progress != nil, a.Ask != nil, a.Fetch != nil, a.Fault != ""} {
		if has {
			kinds++
		}
	}
	if kinds != 1 || (a.ID <= 0) != (a.Fault != "" || a.Fetch != nil) {
		return a, errors.New("it is neither an answer nor a request nor a fault")
	}
	return a, nil
}

// lines writes messages to a process and reads its answers. Writing does not wait until the process has read.
type lines struct {
	*peer.Lines
	rate  peer.Rate
	skips int
}

func newLines(rwc io.ReadWriteCloser, group *guard.Group, last func()) *lines {
	return &lines{Lines: peer.New(rwc, group, queued, last), rate: peer.Rate{Max: maxRate}}
}

// why is why the host ended it; nil when the process did.
func (l *lines) why() error {
	if reason := l.Reason(); !errors.Is(reason, io.EOF) {
		return reason
	}
	return nil
}

// send queues a message. It returns false after the end, and when the process leaves more unread than fits; nothing was sent then.
func (l *lines) send(m message) (bool, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	if guard.Closed(l.Done) {
		return false, nil
	}
	select {
	case l.Out <- append(line, '\n'):
		return true, nil
	default:
		return false, nil
	}
}

// next returns the next answer. Lines that are none are skipped.
func (l *lines) next() (answer, error) {
	for {
		line, err := l.Next()
		if err == nil {
			err = l.rate.Hit(1)
		}
		if err != nil {
			return answer{}, err
		}
		if a, err := parse(line); err == nil {
			return a, nil
		}
		if err := l.skip(line); err != nil {
			return answer{}, err
		}
	}
}

// skip counts a line that means nothing, and returns an error when there were too many.
func (l *lines) skip(line []byte) error {
	if l.skips++; l.skips > maxNonsense {
		return fmt.Errorf("it sent more than %s of nonsense, such as %.100q", centurion.Count(maxNonsense, "line"), line)
	}
	return nil
}
