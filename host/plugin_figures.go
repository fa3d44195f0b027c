package host

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"centurion/guard"
	"centurion/guard/durable"
	"centurion/plugin"
)

// counted are the figures of a project's plugins, by name. The process that hosts the project keeps them, for itself and for
// others that list them.
type counted struct {
	Since   time.Time                 `json:"since"`
	Plugins map[string]plugin.Figures `json:"plugins"`
}

func (p *Plugins) figuresFile() string { return filepath.Join(p.state, "figures.json") }

func (p *Plugins) counted() (c counted) {
	if b, err := os.ReadFile(p.figuresFile()); err != nil || json.Unmarshal(b, &c) != nil || c.Plugins == nil {
		return counted{time.Now().UTC(), map[string]plugin.Figures{}}
	}
	return c
}

// countEvery is how often what plugins do is kept. A crash loses at most that much of it.
const countEvery = 10 * time.Second

// count keeps what plugins do, until the host ends.
func (p *Plugins) count(host *plugin.Host) error {
	var kept map[string]plugin.Figures
	for {
		ended := guard.Sleep(p.life, countEvery) != nil
		if now := host.Figures(); !reflect.DeepEqual(kept, now) {
			kept = now
			_ = p.keep(now) // the figures are then those of before
		}
		if ended {
			return nil
		}
	}
}

func (p *Plugins) keep(now map[string]plugin.Figures) error {
	all := p.counted()
	for name, f := range now {
		if !reflect.DeepEqual(f, plugin.Figures{}) {
			all.Plugins[name] = f
		}
	}
	b, err := json.Marshal(all)
	if err != nil || len(all.Plugins) == 0 {
		return err
	}
	return errors.Join(os.MkdirAll(p.state, 0o700), durable.Replace(p.figuresFile(), b, 0o600))
}
