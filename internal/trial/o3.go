package trial

import "context"

// o3 lets fifty tasks end, some within a second and some after ten silent minutes, and across a restart.
func o3(ctx context.Context, t *T) { goTest(ctx, t, "TestFiftyCompletions") }
