package hub

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Reasons: why there is no session, or what is wrong with it. They are stable
// words of the health block.
const (
	reasonConnecting    = "connecting"
	reasonShutdown      = "shutdown"
	reasonEOF           = "eof"
	reasonFlap          = "eof_flap_duplicate_id"
	reasonReset         = "reset"
	reasonRefused       = "connection_refused"
	reasonUnreachable   = "unreachable"
	reasonDNS           = "name_not_found"
	reasonPing          = "ping_timeout"
	reasonWrite         = "write_timeout"
	reasonConnack       = "connack_timeout"
	reasonAck           = "puback_timeout"
	reasonAuth          = "auth_rejected"
	reasonClientID      = "client_id_rejected"
	reasonUnavailable   = "server_unavailable"
	reasonUnknownCA     = "tls_unknown_ca"
	reasonExpired       = "tls_expired"
	reasonClock         = "tls_clock_not_set"
	reasonHostname      = "tls_hostname"
	reasonClientCert    = "tls_client_cert"
	reasonTLS           = "tls"
	reasonConfig        = "config"
	reasonNotConfirming = "hub_not_confirming"
	reasonRefusesAll    = "hub_refuses_all"
	reasonPayload       = "payload_refused"
	reasonOutbox        = "outbox_error"
	reasonOther         = "other"
)

var (
	errAckTimeout     = errors.New("no PUBACK in time")
	errConnackTimeout = errors.New("the broker did not answer CONNECT in time")
	errRefusesAll     = errors.New("the broker does not take even a canary message")
)

// configError is a mistake in files that a person has to mend.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// outboxError is trouble with our own disk.
type outboxError struct{ error }

func (e outboxError) Unwrap() error { return e.error }

// classify names the reason of an error. trusted says whether the time of day
// may judge certificates.
func classify(err error, now time.Time, trusted bool) string {
	var (
		conf    configError
		box     outboxError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		dns     *net.DNSError
		timeout net.Error
	)
	text := err.Error()
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case errors.As(err, &conf):
		return reasonConfig
	case errors.As(err, &box):
		return reasonOutbox
	case errors.Is(err, errRefusesAll):
		return reasonRefusesAll
	case errors.Is(err, errAckTimeout):
		return reasonAck
	case errors.Is(err, errConnackTimeout):
		return reasonConnack
	case errors.Is(err, packets.ErrorRefusedNotAuthorised), errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword):
		return reasonAuth
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return reasonClientID
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return reasonUnavailable
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		// Go says "expired" for a certificate from the future, too.
		if !trusted || invalid.Cert != nil && now.Before(invalid.Cert.NotBefore) {
			return reasonClock
		}
		return reasonExpired
	case errors.As(err, &unknown):
		return reasonUnknownCA
	case errors.As(err, &host):
		return reasonHostname
	case has("certificate required"), has("bad certificate"), has("handshake failure"):
		return reasonClientCert
	case has("pingresp not received"):
		return reasonPing
	case errors.As(err, &dns):
		return reasonDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return reasonRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return reasonUnreachable
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return reasonReset
	case has("tls: "), has("x509: "):
		return reasonTLS
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return reasonEOF
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return reasonWrite
	}
	return reasonOther
}

// slow reports whether trying again soon is pointless: only a person, or the
// clock, can change the outcome.
func slow(reason string) bool {
	switch reason {
	case reasonAuth, reasonClientID, reasonUnknownCA, reasonExpired, reasonClock, reasonHostname, reasonClientCert,
		reasonTLS, reasonConfig, reasonRefusesAll:
		return true
	}
	return false
}

// advice is what to do about a reason, for health.
func advice(reason string) string {
	switch reason {
	case reasonAuth:
		return "check the user name and password of [hub] against the broker's"
	case reasonClientID:
		return "the broker does not allow the client id gsd-{station}"
	case reasonUnknownCA:
		return "the broker's certificate is not signed by ca_file"
	case reasonExpired:
		return "renew the broker's certificate"
	case reasonClock:
		return "the station's clock is not set: bring the network or a GPS receiver up"
	case reasonHostname:
		return "the broker's certificate is for another host name: check [hub] broker"
	case reasonClientCert:
		return "the broker wants a client certificate, or does not accept ours: check cert_file and key_file"
	case reasonConfig:
		return "correct [hub] in station.toml"
	case reasonFlap:
		return "another client uses the id gsd-{station}: two stations with one id, or two daemons"
	case reasonNotConfirming:
		return "the broker takes events but the hub does not confirm them: check the broker's ACL, its size limit and the hub's consumer"
	case reasonRefusesAll:
		return "the broker closes the connection at every message: check its ACL for gsd/v1/{station}/#"
	case reasonPayload:
		return "the broker refuses single events: read outbox/*/quarantine and the broker's size limit"
	case reasonRefused, reasonUnreachable, reasonDNS:
		return "check the network and [hub] broker; events are kept"
	case reasonReset:
		return "if it stays, check that [hub] broker has the right scheme (ssl:// for a TLS port)"
	case reasonOutbox:
		return "the outbox cannot be read or written: check the disk"
	}
	return ""
}

// NeedsAPerson reports whether a reason of a FleetReport or of the health block
// will not go away by itself.
func NeedsAPerson(reason string) bool { return slow(reason) }
