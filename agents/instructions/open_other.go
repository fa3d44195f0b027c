//go:build !unix

package instructions

// openNonblock is not needed: other systems open pipes differently.
const openNonblock = 0
