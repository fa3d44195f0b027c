package web

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
)

// corporate is a proxy that answers each request as it is told, and then sends back what it gets.
func corporate(t *testing.T, answer string) (address string, asked func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var g guard.Group
	var requests []string
	g.Go("proxy", func() error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			in := bufio.NewReader(conn)
			if r, err := http.ReadRequest(in); err == nil {
				user, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic "))
				requests = append(requests, r.Method+" "+r.Host+" by "+string(user))
				_, err = io.WriteString(conn, answer)
				if err == nil && strings.Contains(answer, " 200 ") {
					_, _ = io.Copy(conn, in)
				}
			}
			_ = conn.Close()
		}
	})
	return l.Addr().String(), func() []string {
		_ = l.Close()
		_ = g.Wait()
		return requests
	}
}

// S3: where the person's environment names a proxy, a command's connections go through it, with the credentials that only the host has, to the
// names that were allowed. Numbers outside of the public network are refused as without it.
func TestDialThroughAProxy(t *testing.T) {
	const yes = "HTTP/1.1 200 Fine\r\nX: y\r\n\r\nhello "
	for name, test := range map[string]struct {
		variable, answer, address string
		private                   bool
		asked, want               string // want is what the error says; "" if the connection works
	}{
		"a name":                {"HTTPS_PROXY", yes, "site.example:443", false, "CONNECT site.example:443 by me:pass word", ""},
		"another port":          {"HTTPS_PROXY", yes, "site.example:8443", false, "CONNECT site.example:8443 by me:pass word", ""},
		"not encrypted":         {"HTTP_PROXY", yes, "site.example:80", false, "CONNECT site.example:80 by me:pass word", ""},
		"a private number":      {"HTTPS_PROXY", yes, "10.0.0.1:443", false, "", "not in the public network"},
		"one that a rule names": {"HTTPS_PROXY", yes, "10.0.0.1:443", true, "CONNECT 10.0.0.1:443 by me:pass word", ""},
		"refused by the proxy":  {"HTTPS_PROXY", "HTTP/1.1 403 Blocked by policy\r\nContent-Length: 0\r\n\r\n", "site.example:443", false, "CONNECT site.example:443 by me:pass word", "403 Blocked by policy for site.example:443"},
		"it talks without end":  {"HTTPS_PROXY", "HTTP/1.1 200 Fine\r\nX: " + strings.Repeat("y", maxHeader) + "\r\n\r\nhello ", "site.example:443", false, "CONNECT site.example:443 by me:pass word", "EOF"},
		"it says nothing":       {"HTTPS_PROXY", "", "site.example:443", false, "CONNECT site.example:443 by me:pass word", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"} {
				t.Setenv(v, "")
			}
			at, asked := corporate(t, test.answer)
			t.Setenv(test.variable, "http://me:pass%20word@"+at)
			conn, err := Dial(t.Context(), test.address, test.private)
			if err == nil {
				_, err = io.WriteString(conn, "world")
				err = errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite())
				b, rerr := io.ReadAll(conn)
				if err = errors.Join(err, rerr, conn.Close()); string(b) != "hello world" {
					t.Errorf("got %q", b)
				}
			}
			if got := strings.Join(asked(), ", "); got != test.asked {
				t.Errorf("the proxy was asked %q", got)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "pass")) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(test.answer, " 403 ") && told(err) != "network: connect: the proxy "+at+" answers 403 Blocked by policy for site.example:443 ()" {
				t.Error(told(err))
			}
		})
	}
}

// What NO_PROXY names, and this machine, is connected to directly, and checked; a proxy of another kind is told.
func TestDialWithoutTheProxy(t *testing.T) {
	for _, v := range []string{"HTTP_PROXY", "https_proxy", "http_proxy", "no_proxy"} {
		t.Setenv(v, "")
	}
	at, asked := corporate(t, "")
	t.Setenv("HTTPS_PROXY", "http://"+at)
	t.Setenv("NO_PROXY", "10.0.0.0/8,intern.example")
	for _, address := range []string{"10.0.0.1:443", "localhost:443", "127.0.0.1:443"} {
		if _, err := Dial(t.Context(), address, false); centurion.KindOf(err) != centurion.KindPermission {
			t.Errorf("%s: %v", address, err)
		}
	}
	if got := asked(); len(got) > 0 {
		t.Errorf("the proxy was asked %q", got)
	}
	t.Setenv("HTTPS_PROXY", "socks5://me:secret@"+at)
	if _, err := Dial(t.Context(), "site.example:443", false); told(err) != "config: connect: the proxy of the environment cannot be used: only an http:// proxy can be used (correct HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY)" {
		t.Errorf("another kind: %s", told(err))
	}
}

// A proxy that does not answer is not waited for when the command has ended.
func TestProxyThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("HTTPS_PROXY", "http://"+l.Addr().String())
	t.Setenv("https_proxy", "")
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	ctx, end := context.WithCancel(t.Context())
	var g guard.Group
	began, over := time.Now(), make(chan struct{})
	g.Go("end command", func() error {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // it asks
		end()
		<-over
		return err
	})
	if _, err := Dial(ctx, "site.example:443", false); err == nil || time.Since(began) > DefaultTimeout/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	close(over)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// Only the proxy's answer is waited for with a limit: the connection itself may rest as long as it likes.
func TestTunnelRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		var g guard.Group
		g.Go("proxy", func() error {
			_, err := http.ReadRequest(bufio.NewReader(far))
			if err == nil {
				_, err = io.WriteString(far, "HTTP/1.1 200 Fine\r\n\r\n")
			}
			time.Sleep(2 * DefaultTimeout)
			_, werr := io.WriteString(far, "late")
			return errors.Join(err, werr, far.Close())
		})
		_, err := tunnel(t.Context(), near, &url.URL{Host: "proxy.example"}, "site.example:443")
		b, rerr := io.ReadAll(near)
		if err = errors.Join(err, rerr, near.Close(), g.Wait()); err != nil || string(b) != "late" {
			t.Errorf("%q, %v", b, err)
		}
	})
}
