package orchestrator

import (
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// forgetful reads one file and writes another, and in a later life changes both, and a third that somebody changed meanwhile.
func forgetful() map[string]script {
	edit := func(name string) scripted.Call {
		return call("edit", args{"filePath": name, "oldString": "old", "newString": "new", "replaceAll": true})
	}
	return map[string]script{"assistant": func(q scripted.Request) scripted.Answer {
		switch q.Number { // of the request
		case 1:
			return do(call("read", args{"filePath": "read.txt"}), call("read", args{"filePath": "theirs.txt"}),
				call("write", args{"filePath": "own.txt", "content": "old\n"}), call("ls", args{}))
		case 2:
			return say("seen")
		case 3:
			return do(edit("read.txt"), edit("own.txt"), edit("theirs.txt"), edit("unread.txt"))
		}
		return say("done")
	}}
}

// A conversation that is opened anew knows the files that it has read and written, and which of them
// somebody has changed since; so does one that was taken back, and a copy.
func TestFilesKnownWhenReopened(t *testing.T) {
	for _, way := range []string{"rewound", "forked"} {
		t.Run(way, func(t *testing.T) {
			bubble(t, forgetful(), func(r *rig) {
				for _, name := range []string{"read.txt", "theirs.txt", "unread.txt"} {
					r.write(name, "old\n")
				}
				m := r.mission(assistant())
				r.is(m, centurion.MissionCompleted, "")
				r.write("theirs.txt", "old, and more\n")
				r.restart()
				id, session := m.ID, m.Session
				switch way {
				case "rewound":
					if _, err := r.host.Branches.Rewind(r.ctx, m.Session, "-1", ""); err != nil {
						t.Fatal(err)
					}
				case "forked":
					f, err := r.host.Branches.Fork(r.ctx, m.Session, "-1")
					if err != nil {
						t.Fatal(err)
					}
					id, session = f.Mission, f.Session
				}
				r.is(runOnce(r, id), centurion.MissionCompleted, "")
				equal(t, "read before", r.read("read.txt"), "new\n")
				equal(t, "written before", r.read("own.txt"), "new\n")
				equal(t, "changed since", r.read("theirs.txt"), "old, and more\n")
				equal(t, "unread", r.read("unread.txt"), "old\n")
				has(t, r.part(session, "edit", 2).State.Error, "theirs.txt has changed since you read it")
				has(t, r.part(session, "edit", 3).State.Error, "you have not read it")
			})
		})
	}
}
