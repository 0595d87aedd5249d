// Package hubtest has the peers of the hub's tests: the real mosquitto on a
// free loopback port, and a consumer that keeps what it gets.
package hubtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gsd-mcp/internal/peers"
)

// Names and passwords that a Broker with Secure knows.
const (
	Station         = "gs-01"
	StationPassword = "station-pw"
	Hub             = "hub"
	HubPassword     = "hub-pw"
)

// Options say how a Broker is set up.
type Options struct {
	// Secure turns on TLS, passwords and the ACL of docs/hub.md.
	Secure bool
	// Config is added to mosquitto.conf.
	Config string
	// ACL replaces the ACL file; needs Secure.
	ACL string
	// ServerName is in the certificate instead of localhost and 127.0.0.1.
	ServerName string
	// NotBefore and NotAfter bound the server's certificate.
	NotBefore, NotAfter time.Time
	// ClientCerts makes the broker ask for a certificate of its CA.
	ClientCerts bool
}

// A Broker is a running mosquitto.
type Broker struct {
	URL    string // mqtt://127.0.0.1:N or ssl://127.0.0.1:N
	Dir    string
	CAFile string // with Secure
	// ClientCert and ClientKey are a client's certificate of the CA.
	ClientCert, ClientKey string

	t      testing.TB
	o      Options
	path   string
	port   int
	cmd    *exec.Cmd
	exited chan struct{}
}

// Mosquitto starts mosquitto with a configuration file and ends it with the
// test. A machine without mosquitto skips the test.
func Mosquitto(t testing.TB, o Options) *Broker {
	t.Helper()
	path := peers.Need(t, "mosquitto", "mosquitto")
	// Not t.TempDir: its parents are closed to the user that mosquitto may
	// become.
	dir, err := os.MkdirTemp("", "gsdmosq")
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{Dir: dir, t: t, o: o, path: path}
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			t.Logf("mosquitto said:\n%s", tail(b.Log(), 4000))
		}
		os.RemoveAll(dir)
	})
	b.configure()
	b.Start()
	return b
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (b *Broker) file(name string) string { return filepath.Join(b.Dir, name) }

func (b *Broker) write(name, data string) {
	b.t.Helper()
	if err := os.WriteFile(b.file(name), []byte(data), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Broker) configure() {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	conf := fmt.Sprintf("listener %d 127.0.0.1\n", b.port)
	if os.Getuid() == 0 {
		conf = "user root\n" + conf // else mosquitto drops to a user that may not read its own files here
	}
	b.URL = fmt.Sprintf("mqtt://127.0.0.1:%d", b.port)
	if b.o.Secure {
		b.URL = fmt.Sprintf("ssl://127.0.0.1:%d", b.port)
		b.certificates()
		b.write("pw", passwordLine(Station, StationPassword)+passwordLine(Hub, HubPassword))
		acl := b.o.ACL
		if acl == "" {
			acl = "user hub\ntopic read gsd/#\ntopic write gsd/v1/+/ack\n\npattern write gsd/v1/%u/#\npattern read gsd/v1/%u/ack\n"
		}
		b.write("acl", acl)
		conf += fmt.Sprintf("allow_anonymous false\npassword_file %s\nacl_file %s\ncafile %s\ncertfile %s\nkeyfile %s\n",
			b.file("pw"), b.file("acl"), b.CAFile, b.file("server.crt"), b.file("server.key"))
		if b.o.ClientCerts {
			conf += "require_certificate true\n"
		}
	} else {
		conf += "allow_anonymous true\n"
	}
	conf += fmt.Sprintf("persistence true\npersistence_location %s/\nautosave_interval 1\nautosave_on_changes true\n"+
		"max_queued_messages 0\nmax_inflight_messages 1\nlog_dest file %s\nlog_type all\n", b.Dir, b.file("log"))
	b.write("m.conf", conf+b.o.Config)
}

// Start starts the broker again after Stop or Kill, on the same port and with
// what it has saved.
func (b *Broker) Start() {
	b.t.Helper()
	b.exited = make(chan struct{})
	started := make(chan error)
	exited := b.exited
	go func() {
		// The kernel ends mosquitto with the thread that started it, so this
		// one has to stay; a killed test leaves no broker behind.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command(b.path, "-c", b.file("m.conf"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		b.cmd = cmd
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		b.t.Fatalf("start mosquitto: %v", err)
	}
	deadline := time.Now().Add(15 * time.Second)
	for time.Now().Before(deadline) {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", b.port), time.Second)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-exited:
			b.t.Fatalf("mosquitto ended at once:\n%s", tail(b.Log(), 4000))
		case <-time.After(20 * time.Millisecond):
		}
	}
	b.t.Fatalf("mosquitto does not listen on port %d after 15 s", b.port)
}

func (b *Broker) signal(s syscall.Signal) {
	if b.cmd == nil || b.cmd.Process == nil {
		return
	}
	b.cmd.Process.Signal(s)
	<-b.exited
	b.cmd = nil
}

// Stop ends the broker in good order: it saves what it has.
func (b *Broker) Stop() { b.signal(syscall.SIGTERM) }

// Kill ends the broker as a crash does.
func (b *Broker) Kill() { b.signal(syscall.SIGKILL) }

// Pause stops the process without closing its connections; Resume goes on.
func (b *Broker) Pause() { b.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (b *Broker) Resume() { b.cmd.Process.Signal(syscall.SIGCONT) }

// Reload makes the broker read its password and ACL files again.
func (b *Broker) Reload() { b.cmd.Process.Signal(syscall.SIGHUP) }

// SetPassword changes the station's password in the file.
func (b *Broker) SetPassword(pw string) {
	b.write("pw", passwordLine(Station, pw)+passwordLine(Hub, HubPassword))
	b.Reload()
}

// Log is what the broker wrote.
func (b *Broker) Log() string {
	data, _ := os.ReadFile(b.file("log"))
	return string(data)
}

// passwordLine is a line of mosquitto_passwd: PBKDF2 with SHA-512.
func passwordLine(user, password string) string {
	const iterations = 101
	salt := make([]byte, 12)
	rand.Read(salt)
	key, err := pbkdf2.Key(sha512.New, password, salt, iterations, 64)
	if err != nil {
		panic(err) // constants only
	}
	e := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s:$7$%d$%s$%s\n", user, iterations, e(salt), e(key))
}

// certificates makes a CA, a server's and a client's certificate.
func (b *Broker) certificates() {
	b.t.Helper()
	from, to := b.o.NotBefore, b.o.NotAfter
	if from.IsZero() {
		from = time.Now().Add(-time.Hour)
	}
	if to.IsZero() {
		to = time.Now().Add(time.Hour)
	}
	b.CAFile = b.file("ca.crt")
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"}, NotBefore: time.Unix(0, 0),
		NotAfter: time.Now().AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caKey := b.certificate("ca", ca, ca, nil)
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: from, NotAfter: to,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if b.o.ServerName != "" {
		server.DNSNames = []string{b.o.ServerName}
	} else {
		server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	b.certificate("server", server, ca, caKey)
	client := &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: Station}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	b.certificate("client", client, ca, caKey)
	b.ClientCert, b.ClientKey = b.file("client.crt"), b.file("client.key")
}

func (b *Broker) certificate(name string, c, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	b.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	if issuerKey == nil {
		issuerKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		b.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	b.write(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	return key
}

// SavedMessages reports whether the broker wrote its data base.
func (b *Broker) SavedMessages() bool {
	_, err := os.Stat(b.file("mosquitto.db"))
	return err == nil
}

// Denied reports whether the broker's log says that it denied a publication.
func (b *Broker) Denied() bool { return strings.Contains(b.Log(), "Denied PUBLISH") }
