package server

import (
	"net/http"

	"centurion"
)

// bound is how many bytes a request's body may have: more where files can come with it, which are a third longer in base64.
func bound(r *http.Request) int64 {
	switch r.URL.Path {
	case Prefix + "/missions", Prefix + "/send":
		return maxBody + centurion.MaxFilesBytes/3*4 + centurion.MaxFiles*4096
	}
	return maxBody
}
