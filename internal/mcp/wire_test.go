package mcp

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite testdata/wire from what the server answers")

// A wire is a client's side of one session, line by line, in a synctest bubble.
type wire struct {
	srv *Server
	in  *io.PipeWriter
	end chan error

	mu  sync.Mutex
	got []string
	ran []string // what the handlers did
}

// dial starts a session. Its output is read as fast as it comes.
func dial(ctx context.Context, w *wire, so SessionOptions) {
	var fromClient *io.PipeReader
	fromClient, w.in = io.Pipe()
	fromServer, toClient := io.Pipe()
	w.end = make(chan error, 1)
	go func() { w.end <- w.srv.Serve(ctx, fromClient, toClient, so) }()
	go func() {
		r := bufio.NewReader(fromServer)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			w.mu.Lock()
			w.got = append(w.got, strings.TrimSuffix(line, "\n"))
			w.mu.Unlock()
		}
	}()
}

func (w *wire) record(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran = append(w.ran, what)
}

// take waits until nothing moves and returns what has come since.
func (w *wire) take() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.got
	w.got = nil
	return out
}

func (w *wire) send(line string) { io.WriteString(w.in, line+"\n") }

func (w *wire) open(version string) {
	w.send(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.take()
}

const testMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

var incidentID = regexp.MustCompile(`incident [A-Z0-9]{10}`)

// TestWire plays the sessions of testdata/wire. Each file of an archive is one
// session; its lines are
//
//	> message        the client sends (META stands for the modern _meta)
//	>> "text"        the client sends raw bytes, a Go string, without a newline
//	! command        open VERSION, eof, wait DURATION, updated URI, changed LIST
//	< message        the server must have said by then, and nothing else
//	* what           a handler must have done by then, and nothing else
//
// and end with the session's: = nil or an error.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions in testdata/wire: %v", err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := false
		for i, f := range ar.Files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+f.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := play(t, string(f.Data))
					if got == string(f.Data) {
						return
					}
					if *update {
						ar.Files[i].Data, changed = []byte(got), true
						return
					}
					t.Errorf("session differs (-want +got):\n%s", cmp.Diff(strings.Split(string(f.Data), "\n"), strings.Split(got, "\n")))
				})
			})
		}
		if changed {
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

// play runs one session and writes down what happened, in the form of the file.
func play(t *testing.T, script string) string {
	w := &wire{}
	w.srv = station(Options{Instructions: "Read station://health first.", ContractVersion: "1.0.0"}, w.record)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dial(ctx, w, SessionOptions{Caller: "observer", ID: "s1"})
	var log bytes.Buffer
	note := func() {
		for _, line := range w.take() {
			line = incidentID.ReplaceAllString(line, "incident INCIDENT")
			log.WriteString("< " + strings.ReplaceAll(line, testMeta, "META") + "\n")
		}
		w.mu.Lock()
		for _, r := range w.ran {
			log.WriteString("* " + r + "\n")
		}
		w.ran = nil
		w.mu.Unlock()
	}
	for _, line := range strings.Split(strings.TrimSuffix(script, "\n"), "\n") {
		kind, arg, _ := strings.Cut(line, " ")
		switch kind {
		case "<", "*", "=":
			continue
		case ">":
			w.send(strings.ReplaceAll(arg, "META", testMeta))
		case ">>":
			raw, err := strconv.Unquote(arg)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			io.WriteString(w.in, raw)
		case "!":
			cmd, arg, _ := strings.Cut(arg, " ")
			switch cmd {
			case "open":
				w.open(arg)
			case "eof":
				w.in.Close()
			case "cancel":
				cancel()
			case "wait":
				d, err := time.ParseDuration(arg)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(d)
			case "updated":
				w.srv.ResourceUpdated(arg)
			case "changed":
				w.srv.ListChanged(arg)
			default:
				t.Fatalf("unknown command in %q", line)
			}
		case "#", "":
		default:
			t.Fatalf("cannot read %q", line)
		}
		log.WriteString(line + "\n")
		if kind != "#" && kind != "" {
			note()
		}
	}
	w.in.Close()
	err := <-w.end
	synctest.Wait()
	note()
	if err != nil {
		log.WriteString("= " + err.Error() + "\n")
	} else {
		log.WriteString("= nil\n")
	}
	return log.String()
}
