package branches

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

// told is an error as a person sees it, with its kind and hint.
func told(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v (%s)", centurion.KindOf(err), err, centurion.HintOf(err))
}

// A name that looks like an id or a number, or that is hard to type, is refused with what is wrong; nothing else is.
func TestCheckMark(t *testing.T) {
	t.Parallel()
	refused := func(name, what string) string {
		return fmt.Sprintf("usage: rewind: %q cannot be the name of a message: %s (choose a word such as before-the-refactoring)", name, what)
	}
	long := strings.Repeat("x", 65)
	number, signs := "it looks like a number of messages", "it may have letters, digits and signs such as - and ."
	for name, want := range map[string]string{
		"":               "usage: rewind: missing --to (name a message, a mark or -N with --to, or give the place where it stands a name with --mark; see: centurion show --tree ID)",
		long:             refused(long, "it is longer than 64 bytes"),
		long[1:]:         "",
		"-x":             refused("-x", number),
		"12":             refused("12", number),
		"+3":             refused("+3", number),
		"12a":            "",
		"msg_1":          refused("msg_1", "it looks like an id"),
		"msg":            "",
		"a b":            refused("a b", signs),
		"a\x7f":          refused("a\x7f", signs),
		"é":              refused("é", signs),
		"a/b":            refused("a/b", signs),
		`a"`:             refused(`a"`, signs),
		"a'":             refused("a'", signs),
		`a\b`:            refused(`a\b`, signs),
		"v1.2-good~!":    "",
		"a\ttab":         refused("a\ttab", signs),
		"before-the-end": "",
	} {
		if got := told(checkMark(name)); got != want {
			t.Errorf("%q:\n%s, want\n%s", name, got, want)
		}
	}
}

// talked is a conversation that was compacted: its pointer and its summary count as one place. Some messages stand on other branches.
func talked() store.Tree {
	msg := func(id, prev string, role centurion.Role) centurion.Message {
		return centurion.Message{ID: "msg_" + id, Prev: prev, Role: role, Parts: []centurion.Part{{ID: "prt_" + id, Type: centurion.PartText}}}
	}
	t := store.Tree{Session: centurion.Session{ID: "ses_0", Metadata: centurion.SessionMeta{Marks: map[string]string{"good": "msg_aa1", "-1": "msg_aa1"}}}, Leaf: "msg_ab2", Messages: []centurion.Message{
		msg("aa1", "", centurion.RoleUser), msg("aa2", "msg_aa1", centurion.RoleAssistant), msg("ac1", "msg_aa2", centurion.RoleUser),
		msg("c01", "msg_ac1", centurion.RoleUser), msg("ac2", "msg_ac1", centurion.RoleAssistant), msg("ab1", "msg_ac2", centurion.RoleUser), msg("ab2", "msg_ab1", centurion.RoleAssistant),
		msg("b01", "msg_aa1", centurion.RoleUser), msg("b02", "msg_b01", centurion.RoleAssistant), {ID: "msg_s01", Summary: true, Role: centurion.RoleAssistant}}}
	t.Messages[2].Parts[0].Type, t.Messages[4].Summary = centurion.PartCompaction, true
	t.Messages[1].Summary, t.Messages[8].Summary = true, true // those of nothing: the messages before them are no compactions
	return t
}

// A message is named by its id or the beginning of it, by a mark or by how far it is back; what names none or several is refused with the next
// step, and with what was probably meant.
func TestMessageOf(t *testing.T) {
	t.Parallel()
	const first, usage = " (the first message is msg_aa1, which is -5)", "usage: find message: "
	none := func(typed, near string) string {
		return fmt.Sprintf("not_found: find message: session ses_0 has no message and no mark %q%s (see: centurion show --tree ses_0)", typed, near)
	}
	for typed, want := range map[string]string{
		"":           "msg_ab2",
		"good":       "msg_aa1",
		"-1":         "msg_aa1", // a mark comes first
		"-0":         "msg_ab2",
		"-2":         "msg_ac2",
		"-3":         "msg_ac2", // the pointer to it
		"-5":         "msg_aa1",
		"-6":         usage + "-6 goes back before the first message: the line has 6 messages" + first,
		"msg_aa2":    "msg_aa2",
		"b01":        "msg_b01",
		"msg_ac1":    "msg_ac2",
		"s":          "msg_s01",
		"prt_aa2":    usage + "prt_aa2 is a part of message msg_aa2: an answer is not cut (name the whole message: msg_aa2)",
		"aa":         usage + `"aa" could be msg_aa1, msg_aa2 (type more of the id)`,
		"a":          usage + `"a" could be msg_aa1, msg_aa2, msg_ac1, msg_ac2, msg_ab1, msg_ab2 (type more of the id)`,
		"msg_":       usage + `"msg_" could be msg_aa1, msg_aa2, msg_ac1, msg_c01, msg_ac2, msg_ab1, … (type more of the id)`,
		"goood":      none("goood", "; the nearest is good"),
		"msg_ac9":    none("msg_ac9", "; the nearest is msg_ac1"),
		"msg_b0299":  none("msg_b0299", "; the nearest is msg_b02"),
		"elsewhere":  none("elsewhere", ""),
		"msg_x":      none("msg_x", ""),
		"3":          none("3", ""),
		"-x":         none("-x", "; the nearest is -1"),
		"-long":      none("-long", ""),
		"msg_s99999": none("msg_s99999", "; the nearest is msg_s01"),
	} {
		got, err := messageOf(talked(), typed)
		if err != nil {
			got += told(err)
		}
		if got != want {
			t.Errorf("%q:\n%s, want\n%s", typed, got, want)
		}
	}
}

// A message that is reverted from takes along what was answered to it; a message of another branch is none of the line.
func TestLaterFrom(t *testing.T) {
	t.Parallel()
	for named, want := range map[string]string{
		"msg_aa1": "msg_aa1 msg_aa2 msg_ac1 msg_ac2 msg_ab1 msg_ab2",
		"msg_aa2": "msg_aa1 msg_aa2 msg_ac1 msg_ac2 msg_ab1 msg_ab2",
		"msg_ab1": "msg_ab1 msg_ab2",
		"msg_ab2": "msg_ab1 msg_ab2",
		"msg_b01": "not_found: revert: session ses_0 has no message msg_b01 on its line (see: centurion show --tree ses_0)",
	} {
		later, err := laterFrom(talked(), named)
		got := make([]string, 0, len(later))
		for _, m := range later {
			got = append(got, m.ID)
		}
		if got := strings.Join(got, " ") + told(err); got != want {
			t.Errorf("%s: %s, want %s", named, got, want)
		}
	}
	headless := talked()
	headless.Messages[0].Role = centurion.RoleAssistant
	if later, err := laterFrom(headless, "msg_aa2"); err != nil || len(later) != 6 {
		t.Errorf("an answer to nothing: %d messages, %v", len(later), err)
	}
}
