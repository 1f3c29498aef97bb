package clients

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/heddle-project/heddle/runtime/wire"
)

// A token is the client's id and a signature over id and uid. It proves after
// a restart of heddled who the client was, and nothing has to be written to
// disk when a client attaches.
func signToken(secret []byte, id uint64, uid int) wire.Token {
	var message [16]byte
	binary.BigEndian.PutUint64(message[:8], id)
	binary.BigEndian.PutUint64(message[8:], uint64(uid)) // any one-to-one mapping does
	mac := hmac.New(sha256.New, secret)
	mac.Write(message[:])
	var token wire.Token
	copy(token[:8], message[:8])
	copy(token[8:], mac.Sum(nil))
	return token
}

func tokenID(token wire.Token) uint64 { return binary.BigEndian.Uint64(token[:8]) }
