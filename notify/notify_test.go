package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"centurion"
)

type fake struct {
	notices []string
	err     error
}

func (f *fake) Send(_ context.Context, title, body string, urgent bool) error {
	f.notices = append(f.notices, fmt.Sprintf("%s|%s|%v", title, body, urgent))
	if f.err != nil {
		return fmt.Errorf("notice %d: %w", len(f.notices), f.err)
	}
	return nil
}

func event(t centurion.EventType, data string) centurion.Event {
	return centurion.Event{Type: t, Mission: "msn_1", Data: json.RawMessage(data)}
}

func sequence(events []centurion.Event, end error) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if end != nil {
			yield(centurion.Event{}, end)
		}
	}
}

func TestWatch(t *testing.T) {
	started := event(centurion.EventMissionStarted, `{"goal":"mend it"}`)
	askedAs := func(id string) centurion.Event {
		return event(centurion.EventPermissionAsked, `{"id":"`+id+`","permission":"bash","patterns":["echo secret"]}`)
	}
	asked, replied := askedAs("a"), event(centurion.EventPermissionReplied, `{"id":"a"}`)
	tests := []struct {
		name   string
		events []centurion.Event
		want   []string
	}{
		{"nothing", nil, nil},
		{"done", []centurion.Event{started, event(centurion.EventMissionCompleted, `{"cost":0.126,"duration_ms":61400,"tasks":{"completed":3}}`)},
			[]string{"Mission done|mend it · $0.126 · 1m01s|false"}},
		{"done, and nothing was checked", []centurion.Event{event(centurion.EventMissionCompleted, `{"evidence":"none"}`)}, []string{"Mission done, not verified||false"}},
		{"done, in a profile that checks nothing", []centurion.Event{event(centurion.EventMissionCompleted, `{"evidence":"none","profile":"chat"}`)}, []string{"Mission done||false"}},
		{"done, and checked", []centurion.Event{event(centurion.EventMissionCompleted, `{"evidence":"proven","cost":1,"duration_ms":0}`)}, []string{"Mission done|$1.00|false"}},
		{"a permission without a name, then an event that is none of these", []centurion.Event{event(centurion.EventPermissionAsked, `{"id":"a"}`),
			event("plan.changed", `{}`), event(centurion.EventQuestionAsked, `{"id":"b"}`)}, []string{"Centurion needs you|a permission|true"}},
		{"failed", []centurion.Event{started, event(centurion.EventMissionFailed, `{"reason":"the key is wrong","cost":0}`)},
			[]string{"Mission failed|the key is wrong · mend it|true"}},
		{"blocked", []centurion.Event{event(centurion.EventMissionBlocked, `{"reason":"no progress"}`)}, []string{"Mission blocked|no progress|true"}},
		{"paused and cancelled", []centurion.Event{event(centurion.EventMissionPaused, `{}`), event(centurion.EventMissionCancelled, `{}`)}, nil},
		{"several asks at once", []centurion.Event{started, asked, askedAs("b"), askedAs("c"), replied, askedAs("d")}, []string{"Centurion needs you|permission for bash · mend it|true"}},
		{"asked, answered, asked again", []centurion.Event{asked, replied, asked},
			[]string{"Centurion needs you|permission for bash|true", "Centurion needs you|permission for bash|true"}},
		{"answered by a policy at once", []centurion.Event{event(centurion.EventPermissionAsked, `{"permission":"bash","by":"policy"}`), replied, asked},
			[]string{"Centurion needs you|permission for bash|true"}},
		{"an answer that nobody asked for", []centurion.Event{replied, asked, askedAs("b")}, []string{"Centurion needs you|permission for bash|true"}},
		{"a question and a plan", []centurion.Event{event(centurion.EventQuestionAsked, `{"question":"which?"}`), event(centurion.EventQuestionAnswered, `null`),
			event(centurion.EventPlanAsked, `[]`)}, []string{"Centurion needs you|a question|true", "Centurion needs you|a plan waits for your approval|true"}},
		{"a question that a policy answers", []centurion.Event{event(centurion.EventQuestionAsked, `{"by":"policy"}`), event(centurion.EventQuestionAnswered, `{}`)}, nil},
		{"questions at once, answered one by one", []centurion.Event{event(centurion.EventQuestionAsked, `{"id":"a"}`), event(centurion.EventQuestionAsked, `{"id":"b"}`),
			event(centurion.EventQuestionAnswered, `{"id":"a"}`), event(centurion.EventQuestionAsked, `{"id":"c"}`)}, []string{"Centurion needs you|a question|true"}},
		{"asked, then blocked by it", []centurion.Event{asked, event(centurion.EventMissionBlocked, `{}`)}, []string{"Centurion needs you|permission for bash|true"}},
		{"resumed after that", []centurion.Event{asked, event(centurion.EventMissionBlocked, `{}`), event(centurion.EventMissionResumed, `{}`), asked},
			[]string{"Centurion needs you|permission for bash|true", "Centurion needs you|permission for bash|true"}},
		{"asked a question, blocked by it, resumed and asked another", []centurion.Event{event(centurion.EventQuestionAsked, `{"id":"a"}`), event(centurion.EventMissionBlocked, `{}`),
			event(centurion.EventMissionResumed, `{}`), event(centurion.EventQuestionAsked, `{"id":"b"}`)},
			[]string{"Centurion needs you|a question|true", "Centurion needs you|a question|true"}},
		{"odd data", []centurion.Event{event(centurion.EventMissionCompleted, `{"cost":"x","duration_ms":[],"reason":7}`)}, []string{"Mission done||false"}},
	}
	for _, test := range tests {
		var s fake
		if err := Watch(t.Context(), sequence(test.events, nil), &s); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if strings.Join(s.notices, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: got %q, want %q", test.name, s.notices, test.want)
		}
	}
}

// O6
func TestFiftyWorkers(t *testing.T) {
	events := []centurion.Event{event(centurion.EventMissionStarted, `{"goal":"a lot"}`)}
	for range 50 {
		for _, kind := range []centurion.EventType{centurion.EventTaskQueued, centurion.EventTaskStarted, centurion.EventSessionCreated, centurion.EventToolStarted,
			centurion.EventPermissionAsked, centurion.EventToolCompleted, centurion.EventTaskFailed, centurion.EventTaskCompleted, centurion.EventVerifyFailed} {
			events = append(events, event(kind, `{}`))
		}
	}
	for range 50 {
		events = append(events, event(centurion.EventPermissionReplied, `{}`))
	}
	events = append(events, event(centurion.EventMissionCompleted, `{}`))
	var s fake
	if err := Watch(t.Context(), sequence(events, nil), &s); err != nil || len(s.notices) != 2 {
		t.Errorf("got %q, %v", s.notices, err)
	}
}

func TestWatchErrors(t *testing.T) {
	done := []centurion.Event{event(centurion.EventMissionFailed, `{}`), event(centurion.EventMissionCompleted, `{}`)}
	broken, cut := errors.New("no desktop"), errors.New("journal broke")
	s := fake{err: broken}
	if err := Watch(t.Context(), sequence(done, nil), &s); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "notice 1:") || len(s.notices) != 2 {
		t.Errorf("a failing sender: %v, %q", err, s.notices)
	}
	if err := Watch(t.Context(), sequence(done, cut), &fake{}); !errors.Is(err, cut) {
		t.Errorf("a broken sequence: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = fake{}
	if err := Watch(ctx, sequence(done, context.Canceled), &s); err != nil || len(s.notices) != 0 {
		t.Errorf("ended: %v, %q", err, s.notices)
	}
	if err := Watch(ctx, sequence(nil, context.Canceled), &s); err != nil {
		t.Errorf("ended before anything came: %v", err)
	}
}

// S10
func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain", "plain"}, {"--help", "help"}, {" - x", "x"}, {"a\nb\r\n\tc", "a b c"}, {"\x1b[31mred\x1b]8;;x\x07", "red"},
		{"a\u202eb\u200bc\u0000d", "abcd"}, {"<b>&amp;</b>", "‹b›＆amp;‹/b›"}, {"$0.12 $(id) ${x} `id`", "$0.12 $ (id) $ {x} ’id’"},
		{`"; rm "`, "”; rm ”"}, {"a\\nb", "a＼nb"}, {"\xff\xfeok", "ok"}, {"grüße 日本", "grüße 日本"}, {"", ""}, {"50%s", "50％s"},
	}
	for _, test := range tests {
		if got := Clean(test.in); got != test.want {
			t.Errorf("Clean(%q) = %q, want %q", test.in, got, test.want)
		}
	}
	if got := Clean(strings.Repeat("ö", 5000)); utf8.RuneCountInString(got) != MaxText || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text became %d runes", utf8.RuneCountInString(got))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[2J<img src=x>\n--x")
	f.Fuzz(func(t *testing.T, in string) {
		got := Clean(in)
		bad := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("<>&\"`\\%", r) }
		if strings.ContainsFunc(got, bad) || strings.HasPrefix(got, "-") || utf8.RuneCountInString(got) > MaxText || !utf8.ValidString(got) {
			t.Errorf("%q became %q", in, got)
		}
	})
}

func TestAvailable(t *testing.T) {
	const noBus = "no session bus: DBUS_SESSION_BUS_ADDRESS is not set and $XDG_RUNTIME_DIR/bus does not exist"
	address, directory := map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}, map[string]string{"XDG_RUNTIME_DIR": "/run/user/1"}
	tests := []struct {
		goos string
		env  map[string]string
		file string
		why  string
	}{
		{"linux", nil, "", noBus},
		{"linux", address, "", ""}, {"freebsd", address, "", ""}, {"netbsd", address, "", ""}, {"openbsd", address, "", ""},
		{"linux", directory, "", noBus},
		{"linux", directory, filepath.Join("/run/user/1", "bus"), ""},
		{"linux", nil, "bus", noBus}, // a file of this name where the program runs is no bus
		{"darwin", nil, "", ""}, {"windows", nil, "", ""}, {"plan9", nil, "", "no notices on plan9"},
	}
	for _, test := range tests {
		called := false
		d := &Desktop{goos: test.goos, getenv: func(name string) string { return test.env[name] },
			exists: func(path string) bool { return test.file != "" && path == test.file },
			show:   func(string, string, bool) error { called = true; return nil }}
		ok, why := d.Available()
		if why != test.why || ok != (why == "") {
			t.Errorf("%s %v: got %v, %q", test.goos, test.env, ok, why)
		}
		if err := d.Send(t.Context(), "a", "b", false); err != nil || called != ok {
			t.Errorf("%s %v: called %v, %v", test.goos, test.env, called, err)
		}
	}
	d, dir := NewDesktop(), t.TempDir()
	t.Setenv("NOTIFY_TEST", "x")
	if d.goos != runtime.GOOS || d.getenv("NOTIFY_TEST") != "x" || !d.exists(dir) || d.exists(filepath.Join(dir, "none")) {
		t.Errorf("this machine is not looked at: %+v", d)
	}
}

func TestSendGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int32
		d := &Desktop{goos: "darwin", show: func(string, string, bool) error { calls.Add(1); <-release; return nil }}
		start := time.Now()
		if err := d.Send(t.Context(), "a", "b", true); time.Since(start) != 2*time.Second || !reflect.DeepEqual(err, &centurion.Error{Op: "send notice", Kind: centurion.KindTimeout,
			Msg: "the desktop did not answer in 2s", Hint: "notices stay off until the next start"}) {
			t.Errorf("got %#v after %s", err, time.Since(start))
		}
		if err := d.Send(t.Context(), "a", "b", true); err != nil || calls.Load() != 1 {
			t.Errorf("a hung desktop was called again: %d, %v", calls.Load(), err)
		}
		close(release)
	})
}

func TestSendFails(t *testing.T) {
	d := &Desktop{goos: "darwin", show: func(string, string, bool) error { panic("no bus") }}
	if err := d.Send(t.Context(), "a", "b", true); err == nil || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("a panic: got %v", err)
	}
	var late atomic.Bool
	d.show = func(string, string, bool) error { late.Store(true); return nil }
	ended, end := context.WithCancel(t.Context())
	end()
	if err := errors.Join(d.Send(ended, "a", "b", true), d.group.Wait()); err != nil || late.Load() {
		t.Errorf("after its end: %v, shown %v", err, late.Load())
	}
	d.show = func(title, body string, urgent bool) error { return fmt.Errorf("%s|%s|%v", title, body, urgent) }
	if err := d.Send(t.Context(), "--a", "<b>", true); centurion.KindOf(err) != centurion.KindInternal || err.Error() != "send notice: a|‹b›|true" {
		t.Errorf("got %v", err)
	}
}
