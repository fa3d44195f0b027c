package orchestrator

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"centurion"
)

// commits returns the pages that each transaction has written, from the log of the state: the last page of a commit has the size of the file.
func (r *rig) commits() (all [][]byte) {
	r.t.Helper()
	log, err := os.ReadFile(r.store.Path() + "-wal")
	if err != nil {
		r.t.Fatal(err)
	}
	const header, frame = 32, 24
	page := int(binary.BigEndian.Uint32(log[8:]))
	from := header
	for at := header; at+frame+page <= len(log) && bytes.Equal(log[at+8:at+16], log[16:24]); at += frame + page {
		if binary.BigEndian.Uint32(log[at+4:]) > 0 {
			all, from = append(all, log[from:at+frame+page]), at+frame+page
		}
	}
	return all
}

// A transaction waits for the disk, and fifty workers share one: after a worker's last word, a task with one check takes four of them: its check
// begins; the receipt, with the intent to merge; the merge, with the new place of the checkout; the end of the task, with its delivery.
func TestTransactionsOfLanding(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), complete()),
		"worker":    steps(do(writes("a.txt", "a\n")), say("made it")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "merges", r.count(m.ID, centurion.EventMergeDone), 1)
	all := r.commits()
	first := func(text string) int {
		return slices.IndexFunc(all, func(pages []byte) bool { return bytes.Contains(pages, []byte(text)) })
	}
	answer, end := first(`"finish":"stop"`), first(string(centurion.EventTaskCompleted))
	if answer < 0 || end < 0 || end-answer != 4 {
		t.Errorf("the answer is in transaction %d, the end of the task in %d, of %d", answer, end, len(all))
	}
}

// What the mission's own agent merges is recorded before the branch moves: a host that dies in between is found out.
func TestOwnLandingIsRecordedFirst(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{"commander": steps(do(writes("a.txt", "a\n")), say("made it"))})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	all := r.commits()
	first := func(text string) int {
		return slices.IndexFunc(all, func(pages []byte) bool { return bytes.Contains(pages, []byte(text)) })
	}
	if intent, done := first(`"merging":"`+m.Landed[0].Commit+`"`), first(string(centurion.EventMergeDone)); intent < 0 || done != intent+1 {
		t.Errorf("the intent is in transaction %d, the merge in %d, of %d", intent, done, len(all))
	}
}
