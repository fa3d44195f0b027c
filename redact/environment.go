package redact

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Environment returns the keys among environment variables, given as NAME=value: those whose names say that they hold one, and the
// passwords in addresses. It looks whether a value is the path of an existing file, which is no key.
func Environment(environ []string) []Key {
	var out []Key
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if _, rest, ok := strings.Cut(value, "://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			user, _, has := strings.Cut(host, "@")
			_, value, ok = strings.Cut(user, ":")
			if !has || !ok {
				continue
			}
		} else if !Named(name) || isPath(value) {
			continue
		}
		if !words(value) {
			out = append(out, Key{name, value})
			if plain, err := url.PathUnescape(value); err == nil {
				out = append(out, Key{name, plain})
			}
		}
	}
	return out
}

var (
	secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "CREDENTIAL", "CREDENTIALS", "AUTH"}
	// aboutWords end names of variables that say something about a key.
	aboutWords = []string{"NAME", "ID", "FILE", "PATH", "DIR", "URL", "URI", "HOST", "PORT", "TYPE", "USER", "SOCK", "TTL", "EXPIRY", "SIZE", "COUNT", "LIMIT",
		"ENDPOINT", "DOMAIN", "REGION", "HELPER", "PROVIDER", "METHOD", "MODE", "SERVICE", "ENABLED", "AGENT"}
)

// Named reports whether a variable's name says that it holds a key.
func Named(name string) bool {
	parts := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(parts) == 0 || slices.Contains(aboutWords, parts[len(parts)-1]) {
		return false
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		part = strings.TrimRight(part, "0123456789")
		return slices.ContainsFunc(secretWords, func(w string) bool { return part == w || len(w) > 4 && strings.HasSuffix(part, w) || part == "APIKEY" })
	})
}

// secret reports whether a value may be a key: at least eight bytes on one line, and neither a number, a word nor a JSON document.
func secret(s string) bool {
	if len(s) < 8 || strings.ContainsAny(s, "\n\r\x00") || strings.ContainsAny(s[:1], "{[") {
		return false
	}
	return strings.Trim(s, "0123456789.:+-") != "" &&
		(len(s) >= 20 || strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || !letter(byte(r)) }))
}

// words reports whether a value consists of words, all in capitals or all not: your-api-key, not set, CHANGE_ME.
func words(s string) bool {
	longest, run := 0, 0
	for i := range len(s) {
		switch {
		case letter(s[i]):
			run++
			longest = max(longest, run)
		case strings.IndexByte(" _-./", s[i]) >= 0:
			run = 0
		default:
			return false
		}
	}
	return longest < 20 && (s == strings.ToLower(s) || s == strings.ToUpper(s))
}

// isPath reports whether a value is the path of something that exists, or whose directory does.
func isPath(s string) bool {
	if strings.HasPrefix(s, "~/") || strings.HasPrefix(s, "./") {
		return true
	}
	if !filepath.IsAbs(s) {
		return false
	}
	if _, err := os.Stat(s); err == nil {
		return true
	}
	dir := filepath.Dir(s)
	_, err := os.Stat(dir)
	return err == nil && filepath.Dir(dir) != dir
}
