package notify

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gen2brain/beeep"

	"centurion"
	"centurion/guard"
)

// SendTimeout is how long a notice may take. A desktop answers in milliseconds; otherwise it hangs.
const SendTimeout = 2 * time.Second

// Desktop sends notices to this machine's desktop. Its calls cannot be interrupted: one that takes longer than [SendTimeout] is
// abandoned, and nothing more is sent.
type Desktop struct {
	goos   string
	getenv func(string) string
	exists func(string) bool
	show   func(title, body string, urgent bool) error
	hung   atomic.Bool
	group  guard.Group // its goroutines end by themselves; a hung one must not block its owner
}

var _ Sender = (*Desktop)(nil)

// NewDesktop returns a sender for this machine's desktop. It does not connect yet.
func NewDesktop() *Desktop {
	return &Desktop{goos: runtime.GOOS, getenv: os.Getenv, show: show, exists: func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}}
}

// Available reports whether there is a desktop, and why not. Without a session bus it makes no call, because the bus library would
// start its own bus that outlives the program.
func (d *Desktop) Available() (bool, string) {
	switch d.goos {
	case "darwin", "windows":
		return true, ""
	case "linux", "freebsd", "netbsd", "openbsd":
	default:
		return false, "no notices on " + d.goos
	}
	if d.getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true, ""
	}
	dir := d.getenv("XDG_RUNTIME_DIR")
	if dir != "" && d.exists(filepath.Join(dir, "bus")) {
		return true, ""
	}
	return false, "no session bus: DBUS_SESSION_BUS_ADDRESS is not set and $XDG_RUNTIME_DIR/bus does not exist"
}

// Send shows one notice. Without a desktop it does nothing and returns no error. Errors are [centurion.KindTimeout] after
// [SendTimeout], and [centurion.KindInternal] for errors of the desktop.
func (d *Desktop) Send(ctx context.Context, title, body string, urgent bool) error {
	if ok, _ := d.Available(); !ok || d.hung.Load() || ctx.Err() != nil {
		return nil
	}
	done := make(chan error, 1)
	d.group.Go("desktop notice", func() error {
		done <- guard.Call("desktop notice", func() error { return d.show(Clean(title), Clean(body), urgent) })
		return nil
	})
	timer := time.NewTimer(SendTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return &centurion.Error{Op: "send notice", Kind: centurion.KindInternal, Err: err}
		}
		return nil
	case <-ctx.Done():
		return nil
	case <-timer.C:
		d.hung.Store(true)
		return &centurion.Error{Op: "send notice", Kind: centurion.KindTimeout,
			Msg: "the desktop did not answer in " + SendTimeout.String(), Hint: "notices stay off until the next start"}
	}
}

// nameOnce guards the library's one global, the name under which notices are grouped.
var nameOnce sync.Once

// show calls the desktop. An alert would also beep on Linux, which writes to the terminal.
func show(title, body string, urgent bool) error {
	nameOnce.Do(func() { beeep.AppName = "Centurion" })
	if urgent && (runtime.GOOS == "darwin" || runtime.GOOS == "windows") {
		return beeep.Alert(title, body, "")
	}
	return beeep.Notify(title, body, "")
}
