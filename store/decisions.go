package store

import (
	"encoding/json"
	"fmt"
	"strconv"

	"centurion"
)

// decisionsVersion is the first schema whose missions and tasks contain data that only the journal had before.
const decisionsVersion = 4

// decisions is that data of missions and tasks, from the journal.
type decisions struct {
	rejections map[string][]centurion.Rejection // by task
	landings   map[string][]centurion.Landed    // by mission, of its own agent
	tips       map[string]string                // the commit that was merged last, by mission
	merged     map[string]bool                  // commits that are on their branch
}

// note reads one row of the journal.
func (d *decisions) note(r *row) {
	var x struct {
		centurion.Rejection
		Commit string `json:"commit"`
		Person bool   `json:"person"`
	}
	at, err := strconv.ParseInt(string(r.cols[0]), 10, 64)
	typ, mission, task := string(r.cols[1]), string(r.cols[2]), string(r.cols[4])
	switch {
	case err != nil || json.Unmarshal(r.data(), &x) != nil || x.Person:
	case typ == string(centurion.EventTaskReturned):
		x.Files = x.Files[:min(len(x.Files), centurion.MaxRejectionFiles)]
		d.rejections[task] = append(d.rejections[task], x.Rejection)
	default:
		if task == "" {
			d.landings[mission] = append(d.landings[mission], centurion.Landed{Commit: x.Commit, Before: d.tips[mission], Time: centurion.MillisTime(at)})
		}
		d.tips[mission], d.merged[x.Commit] = x.Commit, true
	}
}

// lacks returns the missing fields of a mission's or a task's row, each as ,"name":value. For a merge without an event the branch
// decides.
func (d *decisions) lacks(r *row) (fields string) {
	var has struct {
		Status, Merging string
		Landed          []centurion.Landed
		Rejections      []centurion.Rejection
	}
	if json.Unmarshal(r.data(), &has) != nil {
		return ""
	}
	field := func(name string, missing bool, v any) {
		if b, err := json.Marshal(v); missing && err == nil {
			fields += `,"` + name + `":` + string(b)
		}
	}
	landings, rejections := d.landings[string(r.cols[0])], d.rejections[string(r.cols[0])]
	field("landed", has.Landed == nil && landings != nil, landings)
	field("rejections", has.Rejections == nil && rejections != nil, rejections)
	if n := len(has.Landed) - 1; n >= 0 {
		field("merging", has.Status == string(centurion.TaskMerging) && has.Merging == "" && !d.merged[has.Landed[n].Commit], has.Landed[n].Commit)
	}
	return fields
}

// addDecisions copies the data from the journal into the rows of missions and tasks. Rows that already have it, and damaged rows, stay
// unchanged.
func addDecisions(c *conn) error {
	d := decisions{map[string][]centurion.Rejection{}, map[string][]centurion.Landed{}, map[string]string{}, map[string]bool{}}
	err := c.rawRows(journalTable, journalTable.selectRow+` WHERE type IN ('task.returned', 'merge.done') ORDER BY seq`, func(r *row) error {
		if r.sound(journalTable) {
			d.note(r)
		}
		return nil
	})
	for _, t := range []*table{missionTable, taskTable} {
		if err != nil {
			break
		}
		err = c.rewrite(t, t.selectRow, `UPDATE `+t.name+` SET data = ?, sum = ? WHERE seq = ?`, func(r *row) []any {
			fields := d.lacks(r)
			if fields == "" || !r.sound(t) {
				return nil
			}
			data := string(r.data()[:len(r.data())-1]) + fields + "}"
			return []any{data, t.sum(r.cols[:len(r.cols)-1]).add(data).at(r.seq), r.seq}
		})
	}
	if err != nil {
		return fmt.Errorf("decisions of the journal: %w", err)
	}
	return nil
}
