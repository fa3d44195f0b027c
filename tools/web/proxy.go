package web

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"centurion"
	"centurion/text"
)

// proxyOf returns the proxy of the person's environment for an address; nil for none, as for this machine and what NO_PROXY names.
func proxyOf(address string) (*url.URL, error) {
	_, port, _ := net.SplitHostPort(address)
	target := &url.URL{Scheme: text.If(port == "80", "http", "https"), Host: address}
	proxy, err := httpproxy.FromEnvironment().ProxyFunc()(target)
	if err == nil && proxy != nil && proxy.Scheme != "http" {
		err = errors.New("only an http:// proxy can be used")
	}
	if err != nil {
		return nil, &centurion.Error{Op: "connect", Kind: centurion.KindConfig, Msg: "the proxy of the environment cannot be used", Err: err,
			Hint: "correct HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY"}
	}
	return proxy, nil
}

// through connects to an address by a proxy, which resolves its name: where it leads cannot be checked. An address that is a number can.
func through(ctx context.Context, proxy *url.URL, address string, private bool) (net.Conn, error) {
	if ap, err := netip.ParseAddrPort(address); err == nil && !private {
		if err := public(address, ap.String()); err != nil {
			return nil, err
		}
	}
	at := proxy.Host
	if proxy.Port() == "" {
		at = net.JoinHostPort(proxy.Hostname(), "80")
	}
	d := net.Dialer{Timeout: DefaultTimeout}
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	early, err := tunnel(ctx, conn, proxy, address)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &afterwards{conn, early}, nil
}

// tunnel asks a proxy for an address, and returns what came after its answer.
func tunnel(ctx context.Context, conn net.Conn, proxy *url.URL, address string) ([]byte, error) {
	_ = conn.SetDeadline(time.Now().Add(DefaultTimeout))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	}
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxHeader))
	answer, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, &centurion.Error{Op: "connect", Kind: centurion.KindNetwork, Msg: "the proxy " + proxy.Host + " answers " + answer.Status + " for " + address}
	}
	early, err := in.Peek(in.Buffered())
	return early, errors.Join(err, conn.SetDeadline(time.Time{}))
}

// afterwards is a connection whose first bytes were read with the proxy's answer.
type afterwards struct {
	net.Conn
	early []byte
}

func (a *afterwards) Read(b []byte) (int, error) {
	if len(a.early) == 0 {
		return a.Conn.Read(b)
	}
	n := copy(b, a.early)
	a.early = a.early[n:]
	return n, nil
}

// CloseWrite ends what this side sends.
func (a *afterwards) CloseWrite() error { return a.Conn.(*net.TCPConn).CloseWrite() }
