package session

import (
	"sync"
	"time"

	"centurion/event"
	"centurion/text"
)

// tellEvery is how often watchers are told what a command prints, at most.
const tellEvery = time.Second / 10

// printing tells watchers what a command prints while it runs; of much, only the end.
type printing struct {
	tell func(piece string)

	mu    sync.Mutex  // protects the fields below, and is held while telling, so that nothing is told after the end
	waits string      // what is not told yet
	told  time.Time   // when the last piece was told
	timer *time.Timer // tells what waits; nil when nothing does
	over  bool
}

// Write never fails.
func (p *printing) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = text.Tail(p.waits+string(b), event.MaxPrinted)
	if p.timer == nil && !p.over {
		p.timer = time.AfterFunc(time.Until(p.told.Add(tellEvery)), p.flush)
	}
	return len(b), nil
}

func (p *printing) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer = nil; p.over {
		return
	}
	piece := text.Whole(p.waits)
	p.waits, p.told = p.waits[len(piece):], time.Now()
	p.tell(piece)
}

// end drops what was not told: the result has it.
func (p *printing) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.timer != nil {
		p.timer.Stop()
	}
}
