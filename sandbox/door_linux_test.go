package sandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// asks sends a request to the proxy of the environment, as HTTP clients do, and prints the answer. $1 is the request line, $2 what follows in a
// tunnel, $3 other credentials.
const asks = `ask() {
	at=${HTTPS_PROXY#http://}; who=${3-${at%%@*}}; at=${at#*@}
	exec 3<>/dev/tcp/${at%:*}/${at#*:} || return
	printf '%s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\nConnection: close\r\n\r\n' "$1" "$(printf %s "$who" | base64 -w0)" >&3
	if [ -n "$2" ]; then read -r line <&3; echo "$line"; read -r line <&3; printf '%s HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n' "$2" >&3; fi
	cat <&3
}
`

// S3: a command without network reaches the hosts that its caller connects to, by name, and no others; nobody else's connections are
// made, and they end with their command.
func TestConnectionsByName(t *testing.T) {
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the credentials of the proxy were passed on")
		}
		_, _ = w.Write([]byte("hello from " + r.Host + r.URL.Path))
	}))
	defer served.Close()
	connect := func(ctx context.Context, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "down.example:") {
			return nil, errors.New("nobody answers at " + address)
		}
		if !strings.HasPrefix(address, "good.example:") {
			return nil, &centurion.Error{Kind: centurion.KindPermission, Msg: "not allowed: network " + address}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", served.Listener.Addr().String())
	}
	s := newScene(t, confine.Full)
	for name, test := range map[string]struct {
		script, want, held string
	}{
		"tunnel":         {`ask "CONNECT good.example:443" "GET /in"`, "hello from y/in", ""},
		"plain":          {`ask "GET http://good.example/out"`, "hello from good.example/out", ""},
		"refused tunnel": {`ask "CONNECT bad.example:443"`, "403 Forbidden", "not allowed: network bad.example:443"},
		"refused plain":  {`ask "GET http://bad.example/"`, "403 Forbidden", "not allowed: network bad.example:80"},
		"down":           {`ask "CONNECT down.example:443"`, "502 Bad Gateway", "nobody answers at down.example:443"},
		"down, plain":    {`ask "GET http://down.example:81/"`, "502 Bad Gateway", "nobody answers at down.example:81"},
		"no host":        {`ask "GET /etc/passwd"`, "400 Bad Request", ""},
		"another id":     {`ask "CONNECT good.example:443" "" "someone:x"`, "407 Proxy Authentication Required", ""},
		"its own":        {`case $NO_PROXY in *127.0.0.1*) echo own;; esac`, "own", ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := s.run(t, centurion.Command{Script: asks + test.script, Connect: connect})
			if !strings.Contains(res.Output, test.want) {
				t.Errorf("got %q", res.Output)
			}
			if !strings.Contains(res.Held, test.held) || test.held == "" && res.Held != "" {
				t.Errorf("told %q", res.Held)
			}
		})
	}
	t.Run("without", func(t *testing.T) {
		for _, c := range []centurion.Command{{}, {Network: true, Connect: connect}} {
			c.Script = `echo "proxy: $HTTPS_PROXY"`
			if res := s.run(t, c); res.Output != "proxy: \n" {
				t.Errorf("network %v: %q", c.Network, res.Output)
			}
		}
	})
	t.Run("beside the person's proxy", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", "http://corporate.example:1")
		t.Setenv("http_proxy", "http://me:secret@corporate.example:1")
		res := s.run(t, centurion.Command{Script: asks + `env; ask "CONNECT good.example:443" "GET /in"`, Connect: connect})
		if !strings.Contains(res.Output, "hello from y/in") || strings.Contains(res.Output, "corporate") {
			t.Errorf("got %q", res.Output)
		}
	})
	t.Run("after its end", func(t *testing.T) {
		s.run(t, centurion.Command{Script: asks + `setsid bash -c 'echo begun; sleep 0.5; '"$(declare -f ask)"'; ask "CONNECT good.example:443"' > later 2>&1 &
			until grep -q begun later; do sleep 0.01; done`, Connect: connect})
		if res := s.run(t, centurion.Command{Script: "for i in {1..200}; do grep -q ^HTTP later && break; sleep 0.05; done; cat later"}); !strings.Contains(res.Output, "407") {
			t.Errorf("got %q", res.Output)
		}
	})
}

// A connection ends with the command that it was made for, whoever holds its other end: a process that it left behind must not go on with it.
func TestConnectionEndsWithItsCommand(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	defer there.Close()
	life, over := context.WithCancel(t.Context())
	c := &kept{connect: func(context.Context, string) (net.Conn, error) { return here, nil }, life: life}
	d, err := openDoor(fd, func(id string) *kept { return map[string]*kept{"me": c}[id] })
	if err != nil {
		t.Fatal(err)
	}
	var group guard.Group
	group.Go("serve", d.serve)
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, _ = client.Write([]byte("CONNECT good.example:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("me:x")) + "\r\n\r\n"))
	if err := client.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 12)
	if _, err := io.ReadFull(client, b); err != nil || string(b) != "HTTP/1.1 200" {
		t.Fatalf("%q, %v", b, err)
	}
	over()
	if _, err := io.Copy(io.Discard, client); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection outlives its command")
		_ = there.Close()
		_ = client.Close()
	}
	if err := errors.Join(d.close(), group.Wait()); err != nil {
		t.Error(err)
	}
}

// A door is closed when the requests that it still serves have ended, and takes no more.
func TestDoorWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{}
		d.busy.Add(1)
		closed := make(chan error, 1)
		var group guard.Group
		group.Go("close", func() error {
			closed <- d.close()
			return nil
		})
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("closed while a request was served")
		}
		w := httptest.NewRecorder()
		if d.ServeHTTP(w, httptest.NewRequest("GET", "http://good.example/", nil)); w.Body.Len() > 0 {
			t.Errorf("a late request is answered: %s", w.Body)
		}
		d.busy.Done()
		if err := errors.Join(<-closed, group.Wait()); err != nil {
			t.Error(err)
		}
	})
}
