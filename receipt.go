package centurion

import (
	"fmt"
	"slices"
	"strings"
)

// Receipt proves that the host itself ran an acceptance command. It records the exact line.
type Receipt struct {
	ID       string `json:"id"`
	Mission  string `json:"mission"`
	Task     string `json:"task,omitempty"`
	Item     string `json:"item,omitempty"`
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`        // of the green run; -1 if it could not be started, was refused or timed out
	Passed   bool   `json:"passed"`           // the green run passed
	Final    bool   `json:"final,omitempty"`  // it counts for the mission's end: run on the finished work
	Early    bool   `json:"early,omitempty"`  // a failed check of the mission that its branch had never passed: not the fault of the work
	Error    string `json:"error,omitempty"`  // why it did not complete
	Output   string `json:"output"`           // head and tail of the green run's output
	Digest   string `json:"digest,omitempty"` // SHA-256 of the kept output, in hex
	Millis   int64  `json:"duration_ms"`
	Time     Time   `json:"time"`

	Tree   string `json:"tree,omitempty"`   // the git tree of the green run; empty without git
	Commit string `json:"commit,omitempty"` // the commit whose merge it guarded; empty if none

	Proof       Proof      `json:"proof,omitempty"`   // its grade; empty where only passing counts
	Why         string     `json:"why,omitempty"`     // why the grade is not better, one line
	FailureLine string     `json:"died,omitempty"`    // the most informative line of the output without the work
	Runs        []CheckRun `json:"runs,omitempty"`    // all runs in order
	Removed     string     `json:"removed,omitempty"` // the reverted hunks as a unified diff, shortened if it is long; lines above it name functions that were emptied instead
	// TestsMissWork means, for an unproven receipt, that tests added or changed by the work pass without it, or do not run: their author
	// can fix that.
	TestsMissWork bool     `json:"hollow,omitempty"`
	Weakened      []string `json:"weakened,omitempty"` // checks that the work deleted or weakened, one line each
}

// Proof is the grade of a receipt.
type Proof string

// The grades.
const (
	// ProofProven: the check failed without the work and passed with it, and failed again when the work was reverted.
	ProofProven Proof = "proven"
	// ProofRegression: the item only required the check to pass before and after.
	ProofRegression Proof = "regression"
	// ProofUnproven: the check passed, but was not shown to be able to fail.
	ProofUnproven Proof = "unproven"
	// ProofFlaky: repeated on the same tree, it had another result.
	ProofFlaky Proof = "flaky"
)

// Solid reports whether the proof needs no second look: the Reviewer judges unproven and flaky ones.
func (p Proof) Solid() bool { return p == ProofProven || p == ProofRegression }

// Evidence is the proof that a mission achieved its goal.
type Evidence string

// The kinds of evidence, weakest first.
const (
	EvidenceNone     Evidence = "none"     // no meaningful check passed
	EvidenceChecked  Evidence = "checked"  // a check passed, but was not shown to fail without the work
	EvidenceReviewed Evidence = "reviewed" // a review passed
	EvidenceProven   Evidence = "proven"   // a check fails without the work and passes with it
)

// Words describes it; "" for records of older versions.
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
	Tree     string  `json:"tree,omitempty"` // the git tree of the run
	ExitCode int     `json:"exit_code"`      // -1 if it could not be started, was refused or timed out
	Passed   bool    `json:"passed"`
	Out      string  `json:"out,omitempty"` // of a red run: the reverted part, if it was not all of the work
	Error    string  `json:"error,omitempty"`
	Output   string  `json:"output"`           // head and tail; without the work, separately for each clause of a chain, with its exit code
	Digest   string  `json:"digest,omitempty"` // SHA-256 of the kept output, in hex
	Millis   int64   `json:"duration_ms"`
	Time     Time    `json:"time"`
	// Broken says why a failed run proves nothing: the build failed, a program was missing, or only parts independent of the work
	// failed. Empty says that it checked nothing: no test ran.
	Broken string `json:"broken,omitempty"`
	Empty  string `json:"empty,omitempty"`
}

// RunKind is the purpose of a run of a check.
type RunKind string

// The kinds of run.
const (
	RunRed      RunKind = "red"       // on the state before the work, with the work's own tests added
	RunGreen    RunKind = "green"     // on the result
	RunRedAgain RunKind = "red_again" // on the result with the work reverted, its tests kept
)

// FileChange is the change of one file between two trees.
type FileChange struct {
	Path    string `json:"path"`          // relative to the repository's top, with slashes
	Old     string `json:"old,omitempty"` // its former path, if it was renamed
	Status  string `json:"status"`        // added, modified, deleted or renamed
	Added   int    `json:"added"`         // lines; 0 for a binary file
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// Paths lists the files of a change, sorted, renamed ones under both names.
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

// Hunk is one piece of a file's change.
type Hunk struct {
	Header   string `json:"header"`    // "@@ -1,3 +1,4 @@ func Limit"
	Text     string `json:"text"`      // its lines with the prefixes ' ', '+' and '-', each ended by a line feed
	NewStart int    `json:"new_start"` // its first line in the new file, from 1
	NewLines int    `json:"new_lines"`
}

// FileDiff is the change of one file with its hunks; binary files, pure renames and mode changes have none.
type FileDiff struct {
	FileChange
	Hunks []Hunk `json:"hunks,omitempty"`
}

// Base is the base of a mission's work.
type Base struct {
	Commit string `json:"commit"`           // the snapshot, or HEAD if there was nothing to add
	Head   string `json:"head,omitempty"`   // HEAD at the time of the snapshot; empty in a repository without commits
	Branch string `json:"branch,omitempty"` // the person's branch; empty with a detached HEAD
	Dirty  int    `json:"dirty,omitempty"`  // files with uncommitted changes in the snapshot
	// LeftOut are untracked files that were too big to copy, biggest first, and LeftOutBytes is their total size.
	LeftOut      []string `json:"left_out,omitempty"`
	LeftOutBytes int64    `json:"left_out_bytes,omitempty"`
	// Workspaces says how the worktrees of writers are made: "overlay", or "checkout: " or "checkout, cloned: " with the reason.
	Workspaces string `json:"workspaces,omitempty"`
}

// Uncommitted describes the person's uncommitted work in the snapshot: " with 3 uncommitted files, without data.bin (2.1 GB untracked;
// git add it to include it)". It is empty if there was none.
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

// Checkout is the place of a writing session.
type Checkout struct {
	Dir    string `json:"dir"`    // the project's directory in it, absolute
	Branch string `json:"branch"` // its branch, without refs/heads/
	Start  string `json:"start"`  // the base commit of its work
	// Overlay means that it is made of layers, and nothing is at Dir.
	Overlay bool `json:"overlay,omitempty"`
}

// Landed is one commit of a task on its mission's branch. With shared isolation it is the task's whole work: Before and Commit are
// trees in the history of the project's files, before its first write and after its last; Commit is empty until its end, and Files are
// those it changed itself.
type Landed struct {
	Commit string       `json:"commit"`
	Before string       `json:"before"` // the tip before it
	Files  []FileChange `json:"files,omitempty"`
	Time   Time         `json:"time"`
	// Reverts means that it reverts the task's earlier commits.
	Reverts bool `json:"reverts,omitempty"`
	// Restores means that it restores what the previous one reverted.
	Restores bool `json:"restores,omitempty"`
	// Forced is the tree of the files when a person undid this although they had changed since, for a redo. Empty otherwise.
	Forced string `json:"forced,omitempty"`
}
