package sandbox

// Peer is the process at the other end of a local socket, as the system describes it. The zero Peer is unknown, where the system cannot
// tell; nothing that the process itself says counts.
type Peer struct {
	PID      int
	Command  string // its arguments separated by spaces, up to 200 bytes, unsanitised: clean it before display
	Terminal bool   // it has a controlling terminal
	Own      bool   // it runs this very program
	Refused  string // why it may not control this host; "" if it may
}

// Person reports whether an answer of the process counts as a person's: it stands at a terminal, runs this program, or is unknown.
func (p Peer) Person() bool { return p.PID == 0 || p.Terminal || p.Own }

// The reasons of [Peer].Refused.
const (
	peerUnknown   = "the process at the other end has ended or cannot be looked at"
	peerElsewhere = "it lives in namespaces of its own"
	peerMarked    = "a command of this host started it"
)
