package trial

import "context"

// r15 lets clocks jump: waits, deadlines, countdowns and retention, wherever a package has them.
func r15(ctx context.Context, t *T) { goTest(ctx, t, "TestClockJumps") }
