package confine

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Followed returns the policy with links followed, as Seatbelt judges paths. A path that does not exist yet is followed as far as it does,
// and a link that is protected or hidden is so as well as what it leads to. Caches and shared directories have no part in it.
func (p Policy) Followed() Policy {
	follow := func(paths []string, link bool) (out []string) {
		for _, path := range paths {
			real := followed(path)
			if parent := filepath.Join(followed(filepath.Dir(path)), filepath.Base(path)); link && parent != real {
				out = append(out, parent)
			}
			out = append(out, real)
		}
		return out
	}
	return Policy{Write: follow(p.Write, false), Read: follow(p.Read, false), Protect: follow(p.Protect, true), Hide: follow(p.Hide, true), Temp: followed(p.Temp)}
}

func followed(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if dir := filepath.Dir(path); err != nil && dir != path {
		return filepath.Join(followed(dir), filepath.Base(path))
	}
	return cmp.Or(real, path)
}

// seatbeltBase is what every command may do. Everything else is refused: what was added to the system since, and what hands work to
// others, such as launching programs and jobs, Apple events, mounts, the keychain and the clipboard. What is denied again is not covered by
// the default on every version, as far as is known.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec* process-fork)
(deny process-info* (target others))
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow mach-priv-task-port (target same-sandbox))
(allow sysctl-read)
(allow sysctl-write (sysctl-name "kern.grade_cputype") (sysctl-name "kern.tcsm_enable"))
(allow user-preference-read)
(allow mach-host*)
(allow ipc-posix-sem ipc-posix-shm*)
(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))
(allow system-socket (socket-domain AF_UNIX))
(allow mach-lookup
  (global-name "com.apple.FSEvents") (global-name "com.apple.PowerManagement.control") (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.logd") (global-name "com.apple.system.logger") (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.opendirectoryd.membership"))
(allow file-map-executable)
(allow file-read*)
(deny file-link file-clone)
(deny file-read* (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+$"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write* file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/dtracehelper"))
(allow file-write* (literal "/dev/stdout") (literal "/dev/stderr") (regex #"^/dev/fd/[0-9]+$"))
`

// seatbeltNetwork is added for a command with the network: names are looked up, and certificates checked, by services. Sockets in the file
// system stay closed but for the one that looks up names.
const seatbeltNetwork = `(allow system-socket)
(allow network-outbound (remote ip "*:*"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow network-bind (local ip "*:*"))
(allow network-inbound (local ip "*:*"))
(allow mach-lookup
  (global-name "com.apple.SecurityServer") (global-name "com.apple.ocspd") (global-name "com.apple.trustd") (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration") (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.dnssd.service") (global-name "com.apple.networkd"))
`

// Seatbelt returns the arguments of macOS's sandbox-exec, before the command, that hold a command to a policy whose links are followed
// ([Policy.Followed]), with the network or without. No path is part of the profile's text: they come as its parameters. The last rule that
// matches decides, so that a path is judged by the longest of Hide, Read and Write that it lies in, and by Protect in any case.
func (p Policy) Seatbelt(network bool) []string {
	b := &seatbelt{}
	b.text.WriteString(seatbeltBase)
	if network {
		b.text.WriteString(seatbeltNetwork)
	}
	write := append(slices.Clone(p.Write), p.Temp)
	var rules []seatbeltRule
	for _, path := range p.Hide {
		rules = append(rules, seatbeltRule{path, "(deny file-read* file-write* ", true})
	}
	for _, path := range p.Read {
		rules = append(rules, seatbeltRule{path, "(allow file-read* ", false})
	}
	for _, path := range write {
		rules = append(rules, seatbeltRule{path, "(allow file-read* file-write* file-ioctl ", false})
	}
	slices.SortStableFunc(rules, func(a, b seatbeltRule) int { return len(a.path) - len(b.path) })
	for _, r := range rules {
		b.rule(r.verb, r.path, r.anyCase)
	}
	for _, path := range append(slices.Clone(p.Read), write...) { // programs look at each directory on the way
		for _, dir := range above(path) {
			if below(dir, p.Hide) {
				b.line("(allow file-read-metadata (literal %s))", dir)
			}
		}
	}
	for _, path := range write { // sockets of its own
		b.rule("(allow network* ", path, false)
	}
	for _, path := range p.Protect {
		b.rule("(deny file-write* ", path, true)
	}
	for _, path := range slices.Concat(p.Protect, p.Hide, write) { // a directory that moves takes paths out of their rules
		for _, dir := range append(above(path), path) {
			if below(dir, write) {
				b.line("(deny file-write-unlink (literal %s))", dir)
			}
		}
	}
	return append([]string{"-p", b.text.String()}, b.args...)
}

type seatbeltRule struct {
	path, verb string
	anyCase    bool
}

// seatbelt is a profile under construction.
type seatbelt struct {
	text strings.Builder
	args []string
	said []string // lines of single paths, with the path
}

// param makes a value a parameter and returns the expression for it.
func (b *seatbelt) param(value string) string {
	name := "P" + strconv.Itoa(len(b.args)/2)
	b.args = append(b.args, "-D", name+"="+value)
	return `(param "` + name + `")`
}

// line adds a rule for a single path, once.
func (b *seatbelt) line(format, path string) {
	if said := format + path; !slices.Contains(b.said, said) {
		b.said = append(b.said, said)
		fmt.Fprintf(&b.text, format+"\n", b.param(path))
	}
}

// rule adds a rule for a path and everything below it, and for anyCase also in other cases of letters: a name that does not exist yet is
// judged as it is spelled, and most volumes then take it for the same.
func (b *seatbelt) rule(verb, path string, anyCase bool) {
	b.text.WriteString(verb + "(subpath " + b.param(path) + ")")
	if anyCase {
		b.text.WriteString(" (regex " + b.param("^"+caseless(path)+"(/|$)") + ")")
	}
	b.text.WriteString(")\n")
}

// caseless returns a regular expression for a path in any case of its letters.
func caseless(path string) string {
	var b strings.Builder
	for _, r := range path {
		if up, down := unicode.ToUpper(r), unicode.ToLower(r); r < unicode.MaxASCII && up != down {
			b.WriteString("[" + string(up) + string(down) + "]")
			continue
		}
		b.WriteString(regexp.QuoteMeta(string(r)))
	}
	return b.String()
}

// above returns the directories above a path, without the root.
func above(path string) (dirs []string) {
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}
