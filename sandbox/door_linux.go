package sandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"centurion"
	"centurion/guard"
)

// door is an HTTP proxy for commands without network. Its socket listens in their network and the host accepts: nothing else leads out of
// there. A command says by its id, in the address of the proxy, which one it is.
type door struct {
	listener net.Listener
	server   http.Server
	find     func(id string) *kept // a running command, or nil

	mu     sync.Mutex // protects closed, and busy against its Wait
	closed bool
	busy   sync.WaitGroup // requests; connections that were taken over are not the server's any more
}

// The limits of a door: a command must not use up the host's descriptors or memory.
const (
	doorConnections = 128
	doorHeader      = 64 << 10 // bytes
	doorPatience    = 10 * time.Second
)

// openDoor takes over a listening socket.
func openDoor(fd int, find func(id string) *kept) (*door, error) {
	if fd < 0 {
		return nil, errors.New("the helper sent no socket")
	}
	file := os.NewFile(uintptr(fd), "door")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	d := &door{listener: netutil.LimitListener(l, doorConnections), find: find}
	d.server = http.Server{Handler: d, ReadHeaderTimeout: doorPatience, MaxHeaderBytes: doorHeader, ErrorLog: log.New(io.Discard, "", 0)}
	return d, nil
}

func (d *door) serve() error {
	if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// close ends all connections and waits for that. The commands have ended before.
func (d *door) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	err := d.server.Close()
	d.busy.Wait()
	return err
}

// doorAddress is where a door listens, in a network of its own. No service has this port, and the kernel gives it to no client (it ends at 60999).
const doorAddress = "127.0.0.1:61831"

// doorEnvironment returns the variables by which programs find the proxy. What runs in the same network needs none.
func doorEnvironment(id string) (env []string) {
	proxy := "http://" + id + ":x@" + doorAddress
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+proxy, strings.ToLower(name)+"="+proxy)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+own, "no_proxy="+own, "NODE_USE_ENV_PROXY=1")
}

// ServeHTTP passes on a request of a command, or makes a tunnel for it.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.busy.Add(1)
	d.mu.Unlock()
	defer d.busy.Done()
	c := d.find(proxyUser(r.Header.Get("Proxy-Authorization")))
	switch {
	case c == nil || c.connect == nil:
		w.Header().Set("Proxy-Authenticate", `Basic realm="centurion"`)
		http.Error(w, "only for running commands: use the proxy of the environment as it is", http.StatusProxyAuthRequired)
		return
	case r.Method != http.MethodConnect && (r.URL.Scheme != "http" || r.URL.Host == ""):
		http.Error(w, "this is a proxy: it takes CONNECT and whole http addresses", http.StatusBadRequest)
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(c.life, stop)()
	if r.Method == http.MethodConnect {
		tunnel(ctx, w, r, c.connect)
		return
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return c.connect(ctx, address) }}
	pass := httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: transport, FlushInterval: -1, ErrorLog: d.server.ErrorLog,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { turnAway(w, err) }}
	pass.ServeHTTP(w, r.WithContext(ctx))
}

// turnAway answers a request that cannot be carried out.
func turnAway(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if centurion.KindOf(err) == centurion.KindPermission {
		status = http.StatusForbidden
	}
	http.Error(w, err.Error(), status)
}

// proxyUser returns the user of the credentials for a proxy.
func proxyUser(header string) string {
	b, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(header, "Basic "))
	user, _, _ := strings.Cut(string(b), ":")
	return user
}

// tunnel connects a command with a host until one of them ends, or ctx.
func tunnel(ctx context.Context, w http.ResponseWriter, r *http.Request, connect centurion.Dial) {
	remote, err := connect(ctx, r.Host)
	if err != nil {
		turnAway(w, err)
		return
	}
	defer remote.Close()
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		turnAway(w, err)
		return
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), remote.Close() })()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var group guard.Group
	group.Go("tunnel to host", func() error {
		pour(remote, buffered)
		return nil
	})
	pour(client, remote)
	_ = group.Wait() // nothing in it fails
}

// pour copies until the end of from, and passes the end on.
func pour(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
}
