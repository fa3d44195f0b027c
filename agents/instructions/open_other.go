//go:build !unix

package instructions

// Other systems open pipes in a way that does not need it.
const openNonblock = 0
