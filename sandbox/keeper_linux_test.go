package sandbox

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion/guard"
	"centurion/sandbox/confine"
)

// piped is the host's end of a socket without a kernel.
type piped struct{ net.Conn }

func (p piped) ReadMsgUnix(b, _ []byte) (n, oobn, flags int, addr *net.UnixAddr, err error) {
	n, err = p.Read(b)
	return n, 0, 0, nil, err
}

func (p piped) WriteMsgUnix(b, _ []byte, _ *net.UnixAddr) (n, oobn int, err error) {
	n, err = p.Write(b)
	return n, 0, err
}

// A helper gets 20 s to confine itself, and then all the time that its commands take.
func TestHelperIsGreeted(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		says  fromHelper
		want  string
	}{
		"in time":    {19 * time.Second, fromHelper{}, ""},
		"too late":   {21 * time.Second, fromHelper{}, os.ErrDeadlineExceeded.Error()},
		"it refuses": {time.Millisecond, fromHelper{Error: "no namespaces"}, "no namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer ours.Close()
				var g guard.Group
				g.Go("helper", func() error {
					defer theirs.Close()
					var m toHelper
					d := json.NewDecoder(theirs)
					if err := d.Decode(&m); err != nil || m.Policy == nil || m.Way != confine.Files || m.Limits.Processes != 7 {
						return errors.Join(errors.New("not greeted"), err)
					}
					for _, wait := range []time.Duration{test.takes, time.Hour} {
						time.Sleep(wait)
						if err := json.NewEncoder(theirs).Encode(test.says); err != nil {
							return nil // the host has given up
						}
					}
					return nil
				})
				k, began := &keeper{conn: piped{ours}, way: confine.Files}, time.Now()
				err := k.greet(confine.Policy{}, confine.Limits{Processes: 7})
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took != min(test.takes, greetTime) || greetTime != 20*time.Second {
					t.Errorf("took %s", took)
				}
				if test.want == "" {
					if _, _, _, err := k.receive(); err != nil {
						t.Errorf("an hour later: %v", err)
					}
				}
				_ = ours.Close()
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
