//go:build !failpoint

package failpoint

// Enabled says whether this build obeys failpoints.
const Enabled = false

// Hit does nothing in this build.
func Hit(Point) {}
