package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/heddle-project/heddle/runtime/abi"
)

// putText stores s NUL-terminated, cut at a rune's boundary if it is too long.
func putText(dst []byte, s string) {
	end := min(len(s), len(dst)-1)
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	copy(dst, s[:end])
}

// Encode appends m to buf.
func Encode(buf []byte, m Message) []byte {
	start := len(buf)
	buf, err := binary.Append(buf, binary.NativeEndian, m.encode())
	if err != nil {
		panic("wire: " + err.Error()) // a type that encoding/binary cannot lay out: our defect
	}
	header := abi.MsgHeader{
		Magic: abi.MsgMagic, Version: abi.MsgVersion, Type: m.kind(), Size: uint32(len(buf) - start),
	}
	if _, err := binary.Encode(buf[start:], binary.NativeEndian, &header); err != nil {
		panic("wire: " + err.Error())
	}
	return buf
}
