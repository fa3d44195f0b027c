package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"strings"
)

// AskPath begins the path of a link that answers one ask: /ask/SECRET.
const AskPath = "/ask/"

// AskLink is the path of a link that shows one ask and answers it once. It is computed from the token, so that it is stored nowhere, and
// opens nothing else.
func AskLink(token, ask string) string {
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = io.WriteString(mac, "answer "+ask) // a hash never fails
	return AskPath + ask + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// LinkedAsk is the id of the ask that a path is the link of, "" if it is no link.
func LinkedAsk(token, path string) string {
	ask, _, _ := strings.Cut(strings.TrimPrefix(path, AskPath), ".")
	if token == "" || subtle.ConstantTimeCompare([]byte(AskLink(token, ask)), []byte(path)) != 1 {
		return ""
	}
	return ask
}
