package centurion

import (
	"fmt"
	"slices"
	"strings"
)

// Receipt is proof that the host itself ran an acceptance command. It binds the exact line.
type Receipt struct {
	ID       string `json:"id"`
	Mission  string `json:"mission"`
	Task     string `json:"task,omitempty"`
	Item     string `json:"item,omitempty"`
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`        // of the green run; -1 if it could not be started, was refused or timed out
	Passed   bool   `json:"passed"`           // the green run did
	Final    bool   `json:"final,omitempty"`  // it counts for the mission's end: run on the finished work
	Early    bool   `json:"early,omitempty"`  // red, of a check of the mission that its branch had not passed yet: no fault of the work
	Error    string `json:"error,omitempty"`  // why it did not run to its end
	Output   string `json:"output"`           // head and tail of the green run's
	Digest   string `json:"digest,omitempty"` // SHA-256 of the kept output, in hex
	Millis   int64  `json:"duration_ms"`
	Time     Time   `json:"time"`

	Tree   string `json:"tree,omitempty"`   // the git tree that the green run looked at; empty without git
	Commit string `json:"commit,omitempty"` // the commit whose merge it guarded; empty if it guarded none

	Proof       Proof      `json:"proof,omitempty"`   // what it is worth; empty where only passing counts
	Why         string     `json:"why,omitempty"`     // why it is worth no more, one line
	FailureLine string     `json:"died,omitempty"`    // without the work, the line of the output that says most about the failure
	Runs        []CheckRun `json:"runs,omitempty"`    // every run, in the order in which they were made
	Removed     string     `json:"removed,omitempty"` // the hunks that were taken out, as a unified diff, cut where it is long; lines above it name functions that did nothing instead
	// TestsMissWork says of an unproven receipt that tests which the work itself added or changed pass without it, or do not run:
	// their author can fix that.
	TestsMissWork bool     `json:"hollow,omitempty"`
	Weakened      []string `json:"weakened,omitempty"` // checks that the work has deleted or weakened, one line each
}

// Proof is what a receipt is worth.
type Proof string

// The kinds of proof.
const (
	// ProofProven: the check was red without the work and green with it, and red again when the work was taken out.
	ProofProven Proof = "proven"
	// ProofRegression: the item asked for no more than that the check is green before and after.
	ProofRegression Proof = "regression"
	// ProofUnproven: it is green, but nothing shows that it could be red.
	ProofUnproven Proof = "unproven"
	// ProofFlaky: run once more on the same tree, it ended otherwise.
	ProofFlaky Proof = "flaky"
)

// Solid reports whether the proof needs no second look: what is unproven or flaky is the Reviewer's to judge.
func (p Proof) Solid() bool { return p == ProofProven || p == ProofRegression }

// Evidence is what shows that a mission did what it was to do.
type Evidence string

// The kinds of evidence, the weakest first.
const (
	EvidenceNone     Evidence = "none"     // no check passed that could tell
	EvidenceChecked  Evidence = "checked"  // a check passed; nothing shows that it fails without the work
	EvidenceReviewed Evidence = "reviewed" // a review passed
	EvidenceProven   Evidence = "proven"   // a check fails without the work and passes with it
)

// Words says it in a phrase; "" for what older versions have left out.
func (e Evidence) Words() string {
	return map[Evidence]string{EvidenceNone: "no check, proof or review shows that it is done", EvidenceChecked: "checked: a check passed, nothing shows that it can fail",
		EvidenceReviewed: "reviewed: a review passed", EvidenceProven: "proven: the check fails without the work and passes with it"}[e]
}

var evidences = []Evidence{EvidenceNone, EvidenceChecked, EvidenceReviewed, EvidenceProven}

func compareEvidence(a, b Evidence) int {
	return slices.Index(evidences, a) - slices.Index(evidences, b)
}

// Weakest returns the weakest of several; [EvidenceNone] without any.
func Weakest(all []Evidence) Evidence {
	if len(all) == 0 {
		return EvidenceNone
	}
	return slices.MinFunc(all, compareEvidence)
}

// Strongest returns the strongest of several; [EvidenceNone] without any.
func Strongest(all []Evidence) Evidence {
	return slices.MaxFunc(append([]Evidence{EvidenceNone}, all...), compareEvidence)
}

// CheckRun is one run of an acceptance command for a receipt.
type CheckRun struct {
	Kind     RunKind `json:"kind"`
	Tree     string  `json:"tree,omitempty"` // the git tree that it looked at
	ExitCode int     `json:"exit_code"`      // -1 if it could not be started, was refused or timed out
	Passed   bool    `json:"passed"`
	Out      string  `json:"out,omitempty"` // of a red: what had been taken out, where it was not all of the work
	Error    string  `json:"error,omitempty"`
	Output   string  `json:"output"`           // head and tail; without the work, each clause of a chain apart, with its exit code
	Digest   string  `json:"digest,omitempty"` // SHA-256 of the kept output, in hex
	Millis   int64   `json:"duration_ms"`
	Time     Time    `json:"time"`
	// Broken says why a red proves nothing: the build broke, a program was missing, only what cannot see the work failed. Empty says it checks nothing: no test ran.
	Broken string `json:"broken,omitempty"`
	Empty  string `json:"empty,omitempty"`
}

// RunKind is what a run of a check is for.
type RunKind string

// The kinds of run.
const (
	RunRed      RunKind = "red"       // on what was there before, with the work's own tests added
	RunGreen    RunKind = "green"     // on the result
	RunRedAgain RunKind = "red_again" // on the result with the work taken out, its tests kept
)

// FileChange is what happened to one file between two trees.
type FileChange struct {
	Path    string `json:"path"`          // relative to the repository's top, with slashes
	Old     string `json:"old,omitempty"` // where it was before, if it was renamed
	Status  string `json:"status"`        // added, modified, deleted or renamed
	Added   int    `json:"added"`         // lines; 0 for a binary file
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// Paths lists the files of a change by name, sorted, those that were renamed under both their names.
func Paths(files []FileChange) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
		if f.Old != "" {
			out = append(out, f.Old)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}

// Hunk is one piece of a change of a file.
type Hunk struct {
	Header   string `json:"header"`    // "@@ -1,3 +1,4 @@ func Limit"
	Text     string `json:"text"`      // its lines with ' ', '+' and '-' in front, each ended by a line feed
	NewStart int    `json:"new_start"` // its first line in the new file, from 1
	NewLines int    `json:"new_lines"`
}

// FileDiff is the change of one file with its hunks; a binary file, one that was only renamed and one that has only another mode have none.
type FileDiff struct {
	FileChange
	Hunks []Hunk `json:"hunks,omitempty"`
}

// Base is what the work of a mission starts from.
type Base struct {
	Commit string `json:"commit"`           // the snapshot, or HEAD where there was nothing to add
	Head   string `json:"head,omitempty"`   // HEAD when it was taken; empty in a repository without commits
	Branch string `json:"branch,omitempty"` // the person's branch; empty with a detached HEAD
	Dirty  int    `json:"dirty,omitempty"`  // files with uncommitted work in the snapshot
	// LeftOut are untracked files that were too big to copy, the biggest first, and LeftOutBytes is their size together.
	LeftOut      []string `json:"left_out,omitempty"`
	LeftOutBytes int64    `json:"left_out_bytes,omitempty"`
}

// Uncommitted says what of the person's uncommitted work the snapshot has: " with 3 uncommitted files, without data.bin (2.1 GB
// untracked; git add it to include it)". It is empty if there was none.
func (b Base) Uncommitted() string {
	s := ""
	if b.Dirty > 0 {
		s = " with " + Count(b.Dirty, "uncommitted file")
	}
	if len(b.LeftOut) == 0 {
		return s
	}
	names, it := b.LeftOut[0], "it"
	if n := len(b.LeftOut) - 1; n > 0 {
		names, it = fmt.Sprintf("%s and %d more", names, n), "them"
	}
	return fmt.Sprintf("%s, without %s (%s untracked; git add %s to include %s)", s, names, Bytes(b.LeftOutBytes), it, it)
}

// Checkout is where a session that writes does so.
type Checkout struct {
	Dir    string `json:"dir"`    // the project in it, absolute
	Branch string `json:"branch"` // its branch, without refs/heads/
	Start  string `json:"start"`  // the commit that its work stands on
}

// Landed is one commit of a task on its mission's branch. Where all write in the project's own directory it is the whole of its
// work: Before and Commit are trees in the history of the project's files, before its first write and after its last; Commit is
// empty as long as it has not ended, and Files are those that it has changed itself.
type Landed struct {
	Commit string       `json:"commit"`
	Before string       `json:"before"` // the tip that it was put on
	Files  []FileChange `json:"files,omitempty"`
	Time   Time         `json:"time"`
	// Reverts says that it takes back what the task's commits before it have done.
	Reverts bool `json:"reverts,omitempty"`
	// Restores says that it brings back what the one before it has taken back.
	Restores bool `json:"restores,omitempty"`
	// Forced is the tree of the files as they were when a person took this back although they had changed since: what a redo brings
	// back. Empty otherwise.
	Forced string `json:"forced,omitempty"`
}
