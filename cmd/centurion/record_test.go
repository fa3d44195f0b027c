package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"centurion"
	"centurion/config"
	"centurion/store"
	"centurion/worktree"
)

// record is a script's command: it writes a mission with its tasks and receipts from a JSON file into the state of the
// project in the current directory, as a host would have left them. In the file git:REV stands for a commit
// (git:REV:PATH for a file). What stands under "landing" is left as the record of a merge that was killed in the middle.
func record(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: record FILE")
	}
	ctx := context.Background()
	dir := ts.MkAbs(".")
	text := regexp.MustCompile(`git:[\w./^~:-]+`).ReplaceAllStringFunc(ts.ReadFile(args[0]), func(s string) string {
		cmd := exec.Command("git", "rev-parse", "--verify", strings.TrimPrefix(s, "git:"))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			ts.Fatalf("%s: %v: %s", s, err, out)
		}
		return strings.TrimSpace(string(out))
	})
	var rows struct {
		Mission  centurion.Mission   `json:"mission"`
		Tasks    []centurion.Task    `json:"tasks"`
		Receipts []centurion.Receipt `json:"receipts"`
		Landing  json.RawMessage     `json:"landing"`
	}
	ts.Check(json.Unmarshal([]byte(text), &rows))
	if rows.Landing != nil {
		ts.Check(os.WriteFile(filepath.Join(dir, ".git", "centurion-merge.json"), rows.Landing, 0o644))
	}
	rows.Mission.Directory = dir
	repo, err := worktree.Open(ctx, worktree.Options{Dir: dir, Home: filepath.Join(ts.Getenv("WORK"), "look")})
	ts.Check(err)
	for i := range rows.Tasks {
		t := &rows.Tasks[i]
		t.Mission = rows.Mission.ID
		for j := range t.Landed {
			l := &t.Landed[j]
			l.Time = centurion.Now()
			l.Files, err = repo.Stat(ctx, l.Before, l.Commit)
			ts.Check(err)
		}
	}
	s, err := store.Open(ctx, filepath.Join(config.ProjectDir(ts.Getenv("CENTURION_HOME"), dir), "centurion.db"))
	ts.Check(err)
	ts.Check(s.Own(ctx))
	ts.Check(s.Update(ctx, func(tx *store.Tx) error {
		rec := centurion.Session{ID: rows.Mission.Session, Agent: "commander", Metadata: centurion.SessionMeta{Mission: rows.Mission.ID, Address: "0/"}}
		if err := tx.PutMission(&rows.Mission); err != nil {
			return err
		}
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
		for i := range rows.Tasks {
			if err := tx.PutTask(&rows.Tasks[i]); err != nil {
				return err
			}
		}
		for i := range rows.Receipts {
			rows.Receipts[i].Mission = rows.Mission.ID
			if err := tx.PutReceipt(&rows.Receipts[i]); err != nil {
				return err
			}
		}
		return nil
	}))
	ts.Check(s.Close())
}
