package host

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/server"
)

// hostElsewhere makes a project look as if another process hosted it. It answers with info, or not at all if that is nil.
func hostElsewhere(t *testing.T, info *server.Info) Place {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short: a socket's path has a limit that t.TempDir can pass
	if err != nil {
		t.Fatal(err)
	}
	p := Place{Dir: dir, State: dir, Token: "t"}
	lock := flock.New(p.lockFile())
	if got, err := lock.TryLock(); err != nil || !got {
		t.Fatal(got, err)
	}
	o := Owner{PID: 4711, Socket: filepath.Join(dir, "host.sock"), Since: centurion.Now()}
	b, err := json.Marshal(o)
	if err == nil {
		err = os.WriteFile(p.OwnerFile(), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var g guard.Group
	srv := &http.Server{}
	if info != nil {
		l, err := net.Listen("unix", o.Socket)
		if err != nil {
			t.Fatal(err)
		}
		srv.Handler = server.Handler(&server.Local{}, p.Token, *info, nil)
		g.Go("host", func() error { _ = srv.Serve(l); return nil })
	}
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), g.Wait(), lock.Unlock(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return p
}

// R16, issue «What works» 7: one owner a project. A host that answers is joined, one of another version is named and
// refused, and one that does not answer is named within a second.
func TestTakeSeat(t *testing.T) {
	const version = "1.2.3"
	for name, tt := range map[string]struct {
		info *server.Info
		how  string   // --sandbox
		want []string // of the error; none: it is joined
	}{
		"the same version": {info: &server.Info{PID: 4711, Version: version}},
		"another version":  {&server.Info{PID: 4711, Version: "9.9.9"}, "", []string{"process 4711", "version 9.9.9", "this is version " + version}},
		"less confined":    {&server.Info{PID: 4711, Version: version, Way: "files"}, "require", []string{"process 4711", "in the way files", "less than full"}},
		"as confined":      {info: &server.Info{PID: 4711, Version: version, Way: "full"}, how: "require"},
		"unconfined":       {&server.Info{PID: 4711, Version: version, Way: "none"}, "auto", []string{"in the way none"}},
		"that is agreed":   {info: &server.Info{PID: 4711, Version: version, Way: "none"}, how: "off"},
		"no answer":        {nil, "", []string{"another centurion works in", "process 4711"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Connection{Place: hostElsewhere(t, tt.info), Options: Options{Version: version}, Note: func(string) {},
				Config: &config.Config{Own: config.Own{Sandbox: tt.how}}}
			var err error
			var joined bool
			synctest.Test(t, func(t *testing.T) { // on the faked clock only the waits of the search itself take time
				begun := time.Now()
				err = s.ConnectOrOwn(t.Context(), FirstTimeout)
				if took := time.Since(begun); took > time.Second || (took > 0) != (tt.info == nil) {
					t.Errorf("it took %s", took)
				}
				joined = s.Host() == nil && s.client != nil
				s.set(nil, nil)
			})
			if len(tt.want) == 0 {
				if err != nil || !joined {
					t.Errorf("joined with %v", err)
				}
				return
			}
			if centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
				t.Fatalf("the error is %v", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// Who wants only to read a host of another version may, and is told why it refuses the rest.
func TestOtherVersionIsRead(t *testing.T) {
	var noted string
	conn := &Connection{Place: hostElsewhere(t, &server.Info{PID: 4711, Version: "9"}), Options: Options{Version: "1"}, Reads: true, Note: func(line string) { noted = line }}
	if err := conn.ConnectOrOwn(t.Context(), FirstTimeout); err != nil || !strings.Contains(noted, "version 9") {
		t.Fatalf("connected with %v, noted %q", err, noted)
	}
	defer conn.set(nil, nil)
	if info, err := conn.client.Info(t.Context()); err != nil || info.Version != "9" {
		t.Errorf("read: %+v, %v", info, err)
	}
	if err := conn.API().Cancel(t.Context(), "msn_1", ""); centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "process 4711") {
		t.Errorf("changed: %v", err)
	}
}

// A power cut may leave a file without its content, which would let nobody in.
func TestEmptyTokenIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := readToken(file)
	again, aerr := readToken(file)
	if token == "" || again != token || err != nil || aerr != nil {
		t.Errorf("%q, %v, then %q, %v", token, err, again, aerr)
	}
}

// Whoever asks for the token first makes it, and everybody has the same: eight processes may start at the same moment.
func TestTokenIsMadeOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	tokens := make([]string, 8)
	var g guard.Group
	for i := range tokens {
		g.Go("process", func() (err error) {
			tokens[i], err = readToken(file)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if token == "" || token != tokens[0] {
			t.Errorf("tokens differ: %q", tokens)
			break
		}
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What a background host that failed to start had to say is said where the person is.
func TestSpawnedFailed(t *testing.T) {
	log := filepath.Join(t.TempDir(), logName)
	const before = "centurion: an older run\nnext: something\n"
	x := &background{log: log, from: int64(len(before))}
	for _, tt := range []struct{ text, msg, hint string }{
		{"", "", ""},
		{"centurion: the model custom/m is in no list\n", "", ""},
		{"centurion: the model custom/m is in no list\ncenturion: no model is configured\nnext: export OPENAI_API_KEY=…\ncenturion: what came later\n", "no model is configured", "export OPENAI_API_KEY=…"},
	} {
		if err := os.WriteFile(log, []byte(before+tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := x.startError()
		if (err == nil) != (tt.msg == "") || err != nil && (!strings.Contains(err.Error(), tt.msg) || centurion.HintOf(err) != tt.hint) {
			t.Errorf("%q: %v (%s)", tt.text, err, centurion.HintOf(err))
		}
	}
}
