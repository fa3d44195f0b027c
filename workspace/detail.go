package workspace

// Detail is how much the shared texts of a project may say: less and less as the work goes on, because every session that
// is given them pays for them.
type Detail int

// The levels of detail.
const (
	Early     Detail = iota // less than 30 % of the items are done
	Building                // from 30 % on
	Finishing               // from 70 % on
)

// The shares of items done, in percent, at which the detail changes.
const (
	buildingFrom  = 30
	finishingFrom = 70
)

// Level returns the detail for a plan of total items of which done are done. A plan without items has not begun. Cancelled
// items belong to neither number.
func Level(done, total int) Detail {
	switch {
	case total <= 0 || done*100 < total*buildingFrom:
		return Early
	case done*100 < total*finishingFrom:
		return Building
	}
	return Finishing
}

func (d Detail) String() string {
	return [...]string{"early", "building", "finishing"}[min(max(d, Early), Finishing)]
}

// Wants says what belongs into the shared texts at this level.
func (d Detail) Wants() string {
	return [...]string{"detailed explanations and research", "key decisions and references to files",
		"a brief status and what blocks, nothing else"}[min(max(d, Early), Finishing)]
}

// Budget returns how many bytes the shared file with that path may have, 0 for a file that has no budget. The context
// begins with 16 KiB, some 4,000 tokens, which is what a session can be given without its own task being the smaller part,
// and ends with 3; the summary stands before every mission and has an eighth of that.
func (d Detail) Budget(path string) int {
	i := min(max(d, Early), Finishing)
	switch path {
	case ContextPath:
		return [...]int{16 << 10, 8 << 10, 3 << 10}[i]
	case SummaryPath:
		return [...]int{2 << 10, 1 << 10, 500}[i]
	}
	return 0
}
