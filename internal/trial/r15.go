package trial

import "context"

// r15 makes clocks jump: waits, deadlines, countdowns and retention, in every package that has them.
func r15(ctx context.Context, t *T) { goTest(ctx, t, "TestClockJumps") }
