package config

import (
	"io/fs"
	"os"
)

// Stamps are the files and directories on which a configuration rests, as they were before they were read. What does not exist is nil.
type Stamps map[string]fs.FileInfo

// add notes a path, unless it has been already.
func (s Stamps) add(path string) {
	if _, known := s[path]; s != nil && !known && path != "" {
		s[path], _ = os.Stat(path) // one that cannot be looked at cannot be read either
	}
}

// Changed reports whether one of them is another by now: its content is not read.
func (s Stamps) Changed() bool {
	for path, was := range s {
		now, _ := os.Stat(path)
		if (was == nil) != (now == nil) || was != nil && (!os.SameFile(was, now) || was.Size() != now.Size() || was.Mode() != now.Mode() || !was.ModTime().Equal(now.ModTime())) {
			return true
		}
	}
	return false
}
