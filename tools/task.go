package tools

import (
	"fmt"
	"strings"

	"centurion"
)

// label names a task: T1 "parse the limits" (worker).
func label(t centurion.Task) string { return labelWith(t, "") }

// labelWith names a task, with the title of its item if it differs: T1 "the limits" (worker; item: Parse limits).
func labelWith(t centurion.Task, item string) string {
	who := t.Agent
	if item != "" && item != t.Title {
		who += "; item: " + centurion.Clip(item, 60)
	}
	return fmt.Sprintf("%s %q (%s)", t.Name(), t.Title, who)
}

// labelEarlier names a task whose item has a newer one by its number: w3 "the limits" (worker; earlier task of T1).
func labelEarlier(t centurion.Task) string {
	who := t.Agent + "; earlier task of " + t.Item
	t.Item = ""
	return fmt.Sprintf("%s %q (%s)", t.Name(), t.Title, who)
}

// state describes a task's status and what it waits for.
func state(t centurion.Task) string {
	s := string(t.Status)
	if before, ok := strings.CutPrefix(t.Reason, "after "); ok && t.Status == centurion.TaskWaiting {
		return "waiting for " + before
	}
	if t.Reason != "" {
		s += ": " + t.Reason
	}
	return s
}

// resumes describes which task's conversation a task continues, and so replaces; "" if none.
func resumes(t centurion.Task) string {
	if t.Resumes == "" {
		return ""
	}
	return fmt.Sprintf("It continues the earlier conversation; its name is %s from now on.", t.Name())
}
