package server

import (
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"centurion"
)

// TokenPath begins the path of a base URL that has the token: /t/TOKEN.
const TokenPath = "/t/"

// Guard lets clients with the token through to next: in the base URL, as a bearer token or as the password of basic authentication. A web
// page of another origin is refused, whatever it knows, as is a request for another host's name, which a page gets by rebinding its own,
// and a body that is not JSON, which a page may send without asking first. So is a process that [WithPeer] refuses. The link of an ask needs no
// other token, and takes a form. host is the name that the server listens on.
func Guard(token, host string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := peerOf(r.Context()); p.Refused != "" {
			reply(w, nil, &centurion.Error{Kind: centurion.KindPermission, Msg: "Centurion's server refuses this process: " + p.Refused,
				Hint: "agents cannot control Centurion"})
			return
		}
		given, r := givenToken(r)
		linked := LinkedAsk(token, r.URL.Path) != ""
		if err := foreign(r, host, linked); err != nil {
			reply(w, nil, err)
			return
		}
		if !linked && (token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1) {
			w.Header().Set("WWW-Authenticate", `Basic realm="centurion"`)
			reply(w, nil, &centurion.Error{Kind: centurion.KindAuth, Msg: "the token is missing or wrong",
				Hint: "use the whole address that `centurion serve` has printed, or the file `token` in the state directory as the password"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// givenToken is the token of a request, which is returned without it in its path.
func givenToken(r *http.Request) (string, *http.Request) {
	if rest, ok := strings.CutPrefix(r.URL.Path, TokenPath); ok {
		token, path, _ := strings.Cut(rest, "/")
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+path, ""
		return token, inner
	}
	if _, password, ok := r.BasicAuth(); ok {
		return password, r
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token, r
}

// foreign says what shows that a request comes from a web page of somebody else. Its body may be a form only where the path is a secret
// that no other page knows.
func foreign(r *http.Request, host string, form bool) error {
	if !ownName(r.Host, host) {
		return &centurion.Error{Kind: centurion.KindPermission, Msg: "this server is not " + r.Host, Hint: "use the address that `centurion serve` has printed"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return &centurion.Error{Kind: centurion.KindPermission, Msg: "web pages of " + origin + " are not let in"}
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.ContentLength == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" && !(form && kind == "application/x-www-form-urlencoded") {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "the body has to be JSON", Hint: "send it with Content-Type: application/json"}
	}
	return nil
}

// ownName reports whether a host header names this server: as it listens, or as this machine's own.
func ownName(header, host string) bool {
	name, _, err := net.SplitHostPort(header)
	if err != nil {
		name = strings.Trim(header, "[]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, host) || strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}
