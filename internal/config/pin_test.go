package config

import (
	"strings"
	"testing"
)

func TestPIN(t *testing.T) {
	hash, err := HashPIN("271828")
	if err != nil {
		t.Fatal(err)
	}
	if !CheckPIN(hash, "271828") {
		t.Error("the right PIN does not fit")
	}
	again, err := HashPIN("271828")
	if err != nil || again == hash {
		t.Errorf("two hashes of one PIN are equal, or %v: there is no salt", err)
	}
	c := Simulated()
	c.Access.ApprovalPINHash = hash
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	for _, pin := range []string{"", "271829", "2718280", "271828\n", hash, strings.Repeat("1", 1e6)} {
		if CheckPIN(hash, pin) {
			t.Errorf("the PIN %.20q fits", pin)
		}
	}
	for _, bad := range []string{"", "1234", strings.Replace(hash, "pbkdf2", "scrypt", 1), hash[:len(hash)-2], strings.Replace(hash, "100000", "1", 1), strings.Replace(hash, "100000", "99999999999", 1), hash + "$"} {
		c.Access.ApprovalPINHash = bad
		if bad != "" && c.Validate() == nil {
			t.Errorf("the hash %q is accepted", bad)
		}
		if CheckPIN(bad, "271828") {
			t.Errorf("the PIN fits %q", bad)
		}
	}
	for _, pin := range []string{"", "12345", strings.Repeat("1", 65)} {
		if _, err := HashPIN(pin); err == nil {
			t.Errorf("the PIN %q is accepted", pin)
		}
	}
}

// The key below was made by Python: hashlib.pbkdf2_hmac("sha256", b"271828",
// b"0123456789abcdef", 100000), base64 without padding.
func TestPINAgreesWithPython(t *testing.T) {
	const hash = "pbkdf2-sha256$100000$MDEyMzQ1Njc4OWFiY2RlZg$ruHhNY8983zqFOWrUjWykot1PFfKk7nEI+YUGqEt81w"
	if !CheckPIN(hash, "271828") {
		t.Error("a hash made elsewhere does not fit")
	}
}
