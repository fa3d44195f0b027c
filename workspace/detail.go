package workspace

// Detail is the permitted extent of the project's shared texts. It decreases as work proceeds, because every session that gets them
// pays for them.
type Detail int

// The levels of detail.
const (
	Early     Detail = iota // less than 30 % of the items are done
	Building                // from 30 %
	Finishing               // from 70 %
)

// The percentages of done items at which the detail changes.
const (
	buildingFrom  = 30
	finishingFrom = 70
)

// Level returns the detail for a plan with done of total items done. A plan without items has not begun. Neither number includes
// cancelled items.
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

// Wants describes the content of the shared texts at this level.
func (d Detail) Wants() string {
	return [...]string{"detailed explanations and research", "key decisions and references to files",
		"a brief status and what blocks, nothing else"}[min(max(d, Early), Finishing)]
}

// Budget returns the maximum bytes of the shared file with that path, 0 for a file without a limit. The context starts with 16 KiB,
// some 4,000 tokens, so that it does not outweigh a session's own task, and ends with 3 KiB; the summary precedes every mission and has
// an eighth of that.
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
