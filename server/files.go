package server

import (
	"net/http"

	"centurion"
)

// bound is the maximum size of a request's body in bytes: larger where it can contain files, which base64 makes a third longer.
func bound(r *http.Request) int64 {
	switch r.URL.Path {
	case Prefix + "/missions", Prefix + "/send", Prefix + "/prompt":
		return maxBody + centurion.MaxFilesBytes/3*4 + centurion.MaxFiles*4096
	}
	return maxBody
}
