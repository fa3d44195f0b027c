package trial

import "context"

// trial is one attack on the program and its target figure.
type trial struct {
	id, name, goal string
	run            func(ctx context.Context, t *T)
	how            manner // it can be run
}

// trials returns all trials, in natural order of their ids.
func trials() []trial {
	return []trial{
		{"R1", "kill -9 at random moments, 50 workers", "0 lost, 0 twice, recovery p99 < 500 ms", r1, byItself | measuresFirst},
		{"R2", "power cut", "0 of what was acknowledged lost, in a control at least one", r2, waits},
		{"R3", "kill at every named step", "every step reached, 0 lost, 0 twice", r3, computes | inMemory},
		{"R4", "disk full, EIO", "no crash, says so, continues by itself, 0 lost", r4, waits},
		{"R5", "damaged database", "found or survived, never served wrong; the original kept", r5, computes | inMemory},
		{"R6", "a provider that fails in every way, 50 workers", "all done, at most 1.5 times the requests, no herd", r6, waits},
		{"R7", "recorded streams, whole, cut at every byte, twice, out of order", "no call of a cut answer is run, every history valid, at most 3 requests", r7, byItself},
		{"R8", "hostile streams", "a clear end of each, no panic, at most 64 MB more", r8, byItself},
		{"R9", "a stream that stalls after its first piece", "idle timeout ± 1 s, then tried again", r9, waits},
		{"R10", "commands that crash, hang or do not want to go", "gone within 2 s of their limit, nothing left, the next call works", r10, waits},
		{"R11", "daemons of an agent's commands", "0 left 200 ms after a good end, SIGTERM and kill -9", r11, waits},
		{"R12", "commands that start too many processes or take too much memory", "ended at the limits, the host's p99 < 250 ms, others end well", r12, byItself},
		{"R13", "output and files of 1 GB (quick: 200 MB)", "at most 32 MiB more, head and tail kept as text", r13, computes},
		{"R14", "200 readers of events, 50 of them never read, at 2,000 events a second", "at most 64 MiB more, slow ones lose deltas or read again, 0 ends lost", r14, byItself},
		{"R15", "clocks that jump", "no early end, no stuck wait, no busy loop", r15, computes},
		{"R16", "2 to 8 hosts on one project", "one owner, the others know it within 1 s", r16, byItself},
		{"R17", "todo.md edited by a person and 50 agents", "10,000 interleavings, 0 lost, never torn", r17, waits | inMemory},
		{"R18", "SIGTERM, SIGINT, SIGHUP, terminal gone", "ends within 5 s, resumable, no process left", r18, waits},
		{"R19", "state of every earlier version", "opened or refused, never lost", r19, computes},
		{"R20", "50 workers, 20 requests each, mission after mission", "below 300 MB, descriptors and threads flat", r20, computes},
		{"O1", "every known way to be done without having done it", "0 accepted as proven, all honest work proven", o1, computes | inMemory},
		{"O2", "an agent asks for 1,000 workers", "spend ≤ budget, 50 at once, the rest queued", o2, waits},
		{"O3", "50 completions, fast and silent", "each told once, also across a restart", o3, computes},
		{"O4", "20 workers in each other's way in one repository, and kills", "0 commits lost, 0 red commits, each conflict told to its task", o4, computes | inMemory},
		{"O5", "children ask for permission and no one can answer", "answered by policy within 1 s, never a hang", o5, waits},
		{"O6", "desktop notices of missions of 50 workers", "1 to 3 a mission: done, failed, blocked, needs you", o6, waits},
		{"O7", "missions that end without being done, by every known way", "0 complete with more evidence than is true", o7, computes | inMemory},
		{"O8", "plans without files, whose workers change the same files in worktrees of their own", "none deadlocks or is blocked, 0 calls refused, 0 changes lost", o8, computes | inMemory},
		{"S1", "file tools of an agent leave the project by every name, and while a directory is swapped with a link", "0 got through, nothing blocks", s1, byItself},
		{"S2", "disguises of a denied shell command, each run", "a deny stays a deny: 0 ran", s2, waits},
		{"S3", "attacks of a shell command, a plugin and an MCP server, in every way of confinement", "full 0 get through, files at most its gaps, from outside the network besides, the project unchanged", s3, waits},
		{"S4", "the archive of a hostile repository, used before anything is trusted, and after a change", "0 ran, nothing of it in force", s4, waits},
		{"S5", "agents approve their own ask: command line, socket, server; strangers use the server", "0 approved, all refused, a person's answer counts", s5, waits},
		{"S6", "pages of this machine, by every name, with everything allowed", "0 hits", s6, waits},
		{"S7", "keys in every place where they are kept, printed and repeated by agents and errors", "0 found in what was written, printed or sent", s7, waits},
		{"S8", "a model that obeys every instruction in what it reads", "0 writes outside, 0 visits, 0 forged approvals, ticks and ends", s8, waits},
		{"S9", "agents use tools, tasks, checkouts and branches that are not theirs", "refused, and without effect", s9, waits},
		{"S10", "texts that control terminals, said by models, commands and plans", "0 printed raw", s10, waits},
		{"P1", "a plugin killed every second, 50 workers", "every task done, with or without it; hooks lost only while it was down, 0 twice", p1, waits},
		{"F1", "acknowledged transitions a second", "a figure", f1, byItself},
		{"F2", "missions of 50 writers, on 100 and on 20,000 files", "in overlays at most 2 s and 5 s, 200 MB", f2, byItself | inMemory},
	}
}
