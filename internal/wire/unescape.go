package wire

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the string with the content src, which the scanner has
// accepted, to dst. As in encoding/json, invalid UTF-8 and unpaired surrogates become
// U+FFFD.
func appendUnescaped(dst, src []byte) []byte {
	for len(src) > 0 {
		switch c := src[0]; {
		case c == '\\':
			r, n := unescape(src)
			dst = utf8.AppendRune(dst, r)
			src = src[n:]
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			src = src[1:]
		default:
			r, n := utf8.DecodeRune(src)
			dst = utf8.AppendRune(dst, r)
			src = src[n:]
		}
	}
	return dst
}

// unescape returns the rune of the escape sequence at the beginning of src, and the
// length of the sequence.
func unescape(src []byte) (r rune, n int) {
	switch src[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnicode(src)
	}
	return rune(src[1]), 2
}

// unescapeUnicode is unescape for \uXXXX, which may be the first of a surrogate pair.
func unescapeUnicode(src []byte) (r rune, n int) {
	r = hex4(src[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(src) >= 12 && src[6] == '\\' && src[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(src[8:])); pair != unicode.ReplacementChar {
			return pair, 12
		}
	}
	return unicode.ReplacementChar, 6
}

// hex4 returns the value of the four hexadecimal digits at the beginning of b, or -1 if
// there are fewer.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
