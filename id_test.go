package centurion_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

var prefixes = []centurion.Prefix{centurion.PrefixMission, centurion.PrefixSession, centurion.PrefixMessage, centurion.PrefixPart,
	centurion.PrefixTask, centurion.PrefixPermission, centurion.PrefixQuestion, centurion.PrefixReceipt, centurion.PrefixDelivery}

func TestNewIDFormat(t *testing.T) {
	for _, p := range prefixes {
		id := centurion.NewID(p)
		if !regexp.MustCompile(`^` + string(p) + `_[0-9a-f]{12}[0-9A-Za-z]{14}$`).MatchString(id) {
			t.Errorf("%s is not in OpenCode's format", id)
		}
		if err := centurion.CheckID(p, id); err != nil {
			t.Error(err)
		}
	}
}

// The digits tell when an identifier was made, as OpenCode's do: its clients sort by them.
func TestNewIDHoldsTheTime(t *testing.T) {
	before := time.Now().UnixMilli()
	ascending, descending := centurion.NewID(centurion.PrefixMessage), centurion.NewID(centurion.PrefixSession)
	after := time.Now().UnixMilli()
	const low48 = 1<<48 - 1
	for id, invert := range map[string]uint64{ascending: 0, descending: low48} {
		n, err := strconv.ParseUint(id[4:16], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		n ^= invert
		// Earlier tests may have used up the milliseconds ahead, a few at most.
		first, last := uint64(before)<<12&low48, uint64(after+1000)<<12&low48
		if n < first || n > last {
			t.Errorf("%s holds %x, want %x to %x", id, n, first, last)
		}
	}
}

// The clock stands still in the bubble, and stands long before that of the identifier made outside: the counter alone
// keeps the order, and 10,000 are more than it can count in one millisecond.
func TestNewIDOrderWhileTheClockStands(t *testing.T) {
	for _, p := range prefixes {
		first := centurion.NewID(p)
		synctest.Test(t, func(t *testing.T) {
			ids := []string{first}
			for range 10_000 {
				ids = append(ids, centurion.NewID(p))
			}
			if p == centurion.PrefixSession { // the newest first
				slices.Reverse(ids)
			}
			for i, id := range ids[1:] {
				if ids[i][:16] >= id[:16] {
					t.Fatalf("%s does not sort before %s", ids[i], id)
				}
			}
		})
	}
}

func TestNewIDUnique(t *testing.T) {
	const each, callers = 12_500, 8
	made := make([][]string, callers)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			for range each {
				made[i] = append(made[i], centurion.NewID(centurion.PrefixPart))
			}
		})
	}
	wg.Wait()
	if a, b := made[0][0][16:], made[0][1][16:]; a == b || a == strings.Repeat(a[:1], len(a)) {
		t.Errorf("the random letters are %s and %s", a, b)
	}
	seen := make(map[string]bool, each*callers)
	for _, ids := range made {
		for _, id := range ids {
			if key := id[:16]; seen[key] { // already the digits differ: nothing rests on chance
				t.Fatalf("two identifiers begin with %s", key)
			} else {
				seen[key] = true
			}
		}
		if !slices.IsSorted(ids) {
			t.Error("one caller's identifiers do not ascend")
		}
	}
}

func TestCheckID(t *testing.T) {
	good := centurion.NewID(centurion.PrefixTask)
	for name, id := range map[string]string{
		"empty":           "",
		"prefix alone":    "tsk_",
		"no prefix":       good[4:],
		"another prefix":  centurion.NewID(centurion.PrefixMission),
		"prefix extended": "x" + good,
		"no underscore":   strings.Replace(good, "_", "-", 1),
		"short":           good[:len(good)-1],
		"long":            good + "a",
		"upper hex":       "tsk_ABCDEFABCDEF" + good[16:],
		"not hex":         "tsk_g00000000000" + good[16:],
		"sign at the end": good[:len(good)-1] + "-",
		"umlaut":          good[:len(good)-2] + "ä",
		"newline":         good[:len(good)-1] + "\n",
		"path":            "tsk_../../../../../../etc/pass",
	} {
		err := centurion.CheckID(centurion.PrefixTask, id)
		if centurion.KindOf(err) != centurion.KindUsage || !strings.HasPrefix(err.Error(), "read id: ") || !strings.Contains(err.Error(), "tsk_") || centurion.HintOf(err) == "" {
			t.Errorf("%s: %q: %v", name, id, err)
		}
	}
}

func FuzzCheckID(f *testing.F) {
	for _, p := range prefixes {
		f.Add(string(p), centurion.NewID(p))
	}
	f.Add("tsk", "tsk_0123456789abABCDEFGHIJKLMN")
	f.Add("tsk", "tsk_0123456789abABCDEFGHIJKL\xff\xff")
	f.Add("", "_0123456789ab01234567890123")
	rest := regexp.MustCompile(`\A[0-9a-f]{12}[0-9A-Za-z]{14}\z`)
	f.Fuzz(func(t *testing.T, prefix, id string) {
		after, ok := strings.CutPrefix(id, prefix+"_")
		want := ok && rest.MatchString(after)
		if err := centurion.CheckID(centurion.Prefix(prefix), id); (err == nil) != want {
			t.Errorf("prefix %q, id %q: %v", prefix, id, err)
		}
	})
}

func BenchmarkNewID(b *testing.B) {
	for b.Loop() {
		centurion.NewID(centurion.PrefixPart)
	}
}
