// Package confine limits what the commands of an agent or a repository can reach, with the means of the kernel. It knows nothing of
// sessions or missions: package sandbox gives it a [Policy] for each workspace, and starts the commands.
//
// On Linux there are two ways. With [Full] the commands of a workspace run below a helper process in namespaces of its own, which
// [Enter] furnishes: other processes, the network, other people's secrets and the state directory are not there, and everything else
// can only be read. With [Files] there are no namespaces: a thread of the helper that Landlock confines starts the commands. In both
// ways each command has no capability, no descriptor but its three streams, and cannot mount, trace, or make namespaces.
//
// On macOS [Files] is a profile of Seatbelt for each command. On Windows [Job] is a job object for each command.
package confine

import (
	"runtime"
	"slices"

	"centurion"
)

// Way is how commands are confined.
type Way string

// The ways, the strongest first.
const (
	Full  Way = "full"  // a helper process with namespaces of its own, and Landlock where the kernel has it
	Files Way = "files" // files and, by the kernel's version, the network: by Landlock only, or by Seatbelt
	Job   Way = "job"   // a job object: its processes end together, and what they use is limited
	None  Way = "none"  // nothing
)

// Holds reports whether a way is at least as strong as another.
func (w Way) Holds(least Way) bool {
	ways := []Way{None, Job, Files, Full}
	return slices.Index(ways, w) >= slices.Index(ways, least)
}

// Policy is what the commands of one workspace may reach. Paths are absolute and without links; those that do not exist are passed over,
// except in Write.
type Policy struct {
	Write   []string // where commands may write, the workspace first
	Protect []string // what they may only read, below Write
	Read    []string // what they may read although it lies below Hide
	Lend    []string // what they may read, and write below while it is lent: see [Policy.Give]. Only with [Full]
	Hide    []string // files and directories that are not there for them, also below Write and Read

	Empty []string // shared directories for temporary files, which are empty and the workspace's own; the first one is for TMPDIR
	Home  string   // the person's home directory, which can be read also if it lies in one of Empty; may be ""

	// Caches are directories of the person that commands may fill: they read what is there, and what they write lands below Aside.
	Caches []string
	Aside  string // an existing directory for what is written to Caches; "" leaves them read-only
	Below  string // one that was Aside for others, who write no more: it is seen in Caches, too; "" for none
	Temp   string // a directory for temporary files where the shared ones cannot be emptied

	Overlay *Overlay // a workspace of layers; nil for a plain directory. Only with [Full]
}

// Overlay is a workspace made of layers: see [centurion.Layers].
type Overlay struct {
	At          string
	Lower       []string
	Upper, Work string
	Binds       []centurion.Bind
}

// Limits are what all commands of a workspace may use together, where a helper watches them. Zero means no limit.
type Limits struct {
	Processes int   // processes at the same time
	Memory    int64 // bytes in memory, shared pages counted once
}

// Gaps lists what a way does not stop on this system, in words for a person.
func (w Way) Gaps() []string { return w.gaps(runtime.GOOS) }

func (w Way) gaps(system string) []string {
	const unknown = "reading files of yours that are not known to hold keys"
	switch {
	case w == Full:
		return []string{unknown, "the network of a command that a person allowed to use it",
			"sockets in the file system that were made after the workspace's first command"}
	case w == Files && system == "darwin":
		return []string{unknown, "hidden files that have a second name elsewhere (hard links)", "reading shared directories for temporary files",
			"seeing which other processes run", "requests to launchd other than new jobs",
			"processes that leave their command's group: they stay confined, but may outlive the workspace", "the number of processes and their memory",
			"the network of a command that a person allowed to use it, the machine's own services included"}
	case w == Files:
		return []string{unknown, "writing .git and the project's configuration in the workspace",
			"sockets in the file system, such as the session bus", "seeing other processes, and before Linux 6.12 ending them",
			"reading shared directories for temporary files",
			"the network of a command that a person allowed to use it, and UDP, or TCP before Linux 6.7, of any other"}
	case w == Job:
		return []string{"reading, changing and deleting what you can", "the network", "ending other processes of yours",
			"processes that a service starts for a command"}
	}
	return []string{"anything: commands can reach what you can reach"}
}

// below reports whether a path lies in one of the directories or is one of them.
func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || dir == "/" || len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
	})
}
