package centurion

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Prefix is the part of an identifier that names its kind.
type Prefix string

// The prefixes in use. Those known to OpenCode have its spelling, because its clients check them.
const (
	PrefixMission    Prefix = "msn"
	PrefixSession    Prefix = "ses"
	PrefixMessage    Prefix = "msg"
	PrefixPart       Prefix = "prt"
	PrefixTask       Prefix = "tsk"
	PrefixPermission Prefix = "per"
	PrefixQuestion   Prefix = "que"
	PrefixReceipt    Prefix = "rcp"
	PrefixDelivery   Prefix = "dlv"
)

const (
	idHexLen    = 12
	idRandomLen = 14
	idCounters  = 4096 // identifiers that can be ordered within one millisecond
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

var idClock struct {
	sync.Mutex
	last    int64 // the last millisecond with an identifier
	counter int64 // identifiers already made in it
}

// NewID makes an identifier in OpenCode's format: the prefix, an underscore, twelve hexadecimal digits and fourteen
// random base-62 characters. The digits are the low 48 bits of the Unix time in milliseconds times 4096 plus a counter,
// inverted for sessions so that the newest session sorts first. Those 48 bits wrap around every 2^36 ms (about 2.18
// years), so an identifier must never be the only sort key: order by the stored sequence.
func NewID(p Prefix) string {
	idClock.Lock()
	now := time.Now().UnixMilli()
	if now <= idClock.last {
		now = idClock.last
		idClock.counter++
		if idClock.counter == idCounters {
			now++
			idClock.counter = 0
		}
	} else {
		idClock.counter = 0
	}
	idClock.last = now
	n := uint64(now*idCounters + idClock.counter)
	idClock.Unlock()

	if p == PrefixSession {
		n = ^n
	}
	var b [6]byte
	for i := range b {
		b[5-i] = byte(n >> (8 * i))
	}
	var random [idRandomLen]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	for i, r := range random {
		random[i] = base62[int(r)%len(base62)]
	}
	return string(p) + "_" + hex.EncodeToString(b[:]) + string(random[:])
}

// CheckID checks that s is an identifier with prefix p. The error has [KindUsage] and shows the expected form.
func CheckID(p Prefix, s string) error {
	rest, ok := strings.CutPrefix(s, string(p)+"_")
	if ok && len(rest) == idHexLen+idRandomLen &&
		strings.Trim(rest[:idHexLen], "0123456789abcdef") == "" && strings.Trim(rest[idHexLen:], base62) == "" {
		return nil
	}
	return &Error{Op: "read id", Kind: KindUsage, Msg: fmt.Sprintf("%q is not an id of the form %s_…", s, p),
		Hint: "copy it from `centurion ps` or `centurion tasks`"}
}
