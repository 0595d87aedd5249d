package config

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	pinScheme     = "pbkdf2-sha256"
	pinIterations = 100_000 // about a second on a Pi Zero; the PIN guards a local socket, not a published file
	pinSaltBytes  = 16
	pinKeyBytes   = 32
	pinMin        = 6  // letters or digits
	pinMax        = 64 //
)

// HashPIN makes the value of [access] approval_pin_hash:
// pbkdf2-sha256$ITERATIONS$SALT$KEY, salt and key in unpadded base64.
func HashPIN(pin string) (string, error) {
	if n := len(pin); n < pinMin || n > pinMax {
		return "", fmt.Errorf("the PIN has %d letters; give %d to %d", n, pinMin, pinMax)
	}
	salt := make([]byte, pinSaltBytes)
	rand.Read(salt) // never fails (crypto/rand)
	key, err := pbkdf2.Key(sha256.New, pin, salt, pinIterations, pinKeyBytes)
	if err != nil {
		return "", fmt.Errorf("hash the PIN: %w", err)
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("%s$%d$%s$%s", pinScheme, pinIterations, b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

// CheckPIN reports whether pin is the one that hash was made of. A hash that
// is none fits no PIN. It takes about as long for a wrong PIN as for the right
// one; whoever calls it bounds the tries.
func CheckPIN(hash, pin string) bool {
	iterations, salt, want, err := parsePINHash(hash)
	if err != nil || len(pin) > pinMax {
		return false
	}
	got, err := pbkdf2.Key(sha256.New, pin, salt, iterations, len(want))
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1
}

func parsePINHash(hash string) (iterations int, salt, key []byte, err error) {
	bad := errors.New("not a PIN hash")
	part := strings.Split(hash, "$")
	if len(part) != 4 || part[0] != pinScheme {
		return 0, nil, nil, bad
	}
	iterations, err = strconv.Atoi(part[1])
	if err != nil || iterations < 10_000 || iterations > 10_000_000 {
		return 0, nil, nil, bad
	}
	b64 := base64.RawStdEncoding.Strict()
	if salt, err = b64.DecodeString(part[2]); err != nil || len(salt) < 8 || len(salt) > 64 {
		return 0, nil, nil, bad
	}
	if key, err = b64.DecodeString(part[3]); err != nil || len(key) != pinKeyBytes {
		return 0, nil, nil, bad
	}
	return iterations, salt, key, nil
}
