package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/hub/hubtest"
	"gsd-mcp/internal/state"
)

const eventTopics = "gsd/v1/gs-01/events/#"

func secure(b *hubtest.Broker) Config {
	return Config{Broker: b.URL, Username: hubtest.Station, Password: hubtest.StationPassword, CAFile: b.CAFile}
}

func eventIDs(events []event.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.ID)
	}
	return out
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// The promise of the hub, against the real broker with TLS, passwords and ACL,
// over a restart of each side.
func TestMosquittoGetsEveryEventOnceAndInOrderOverRestarts(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true})
	c := b.Collect(t, eventTopics)
	f := newFixture(t)
	f.emit(40)
	f.start(secure(b))
	f.emit(40)
	c.WaitEvents(t, 40, 20*time.Second)

	f.stop() // the publisher restarts
	f.box.Close()
	f.d.Close()
	f.open()
	f.emit(40)
	f.start(secure(b))
	f.emit(40)
	c.WaitEvents(t, 130, 20*time.Second)

	b.Stop() // the broker restarts
	f.emit(40)
	eventually(t, "the end of the session", 10*time.Second, func() bool { return f.p.Status().Hub.State != "connected" })
	b.Start()
	f.emit(40)
	got := c.WaitEvents(t, len(f.ids), 30*time.Second)
	if !slices.Equal(sorted(eventIDs(got)), sorted(f.ids)) {
		t.Errorf("got %d events, want the %d that were emitted", len(got), len(f.ids))
	}
	inOrder(t, got)
	perSource := map[string]int{}
	for _, e := range got {
		perSource[e.Source+" "+e.Epoch]++
		if n, _ := strconv.Atoi(e.Sequence); n != perSource[e.Source+" "+e.Epoch] {
			t.Fatalf("event %d of %s has sequence %s: the hub cannot prove that it has all", perSource[e.Source+" "+e.Epoch], e.Source, e.Sequence)
		}
	}
	if len(perSource) != 2 {
		t.Errorf("sources and epochs %v, want crit and info, one epoch each", perSource)
	}
}

// Every row that mosquitto can show of the failure table, with the reason that
// health names.
func TestMosquittoFailuresHaveNames(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, tt := range []struct {
		name   string
		o      hubtest.Options
		change func(c *Config, b *hubtest.Broker)
		want   string
	}{
		{"wrong password", hubtest.Options{Secure: true}, func(c *Config, _ *hubtest.Broker) { c.Password = "wrong" }, reasonAuth},
		{"wrong CA", hubtest.Options{Secure: true}, func(c *Config, b *hubtest.Broker) { c.CAFile = "" }, reasonUnknownCA},
		{"expired certificate", hubtest.Options{Secure: true, NotBefore: time.Now().Add(-2 * year), NotAfter: time.Now().Add(-year)}, nil, reasonExpired},
		{"station's clock before the certificate", hubtest.Options{Secure: true, NotBefore: time.Now().Add(year), NotAfter: time.Now().Add(2 * year)}, nil, reasonClock},
		{"station's clock not trusted", hubtest.Options{Secure: true, NotBefore: time.Now().Add(-2 * year), NotAfter: time.Now().Add(-year)},
			func(c *Config, _ *hubtest.Broker) { c.ClockTrusted = func() bool { return false } }, reasonClock},
		{"other host name", hubtest.Options{Secure: true, ServerName: "hub.example.org"}, nil, reasonHostname},
		{"client certificate missing", hubtest.Options{Secure: true, ClientCerts: true}, nil, reasonClientCert},
		{"plain to a TLS port", hubtest.Options{Secure: true},
			func(c *Config, b *hubtest.Broker) { c.Broker = strings.Replace(b.URL, "ssl:", "mqtt:", 1) }, reasonReset},
		{"broker away", hubtest.Options{}, func(c *Config, b *hubtest.Broker) { b.Stop() }, reasonRefused},
		{"broker stopped before the connection", hubtest.Options{},
			func(c *Config, b *hubtest.Broker) { c.ConnectTimeout = 300 * time.Millisecond; b.Pause() }, reasonConnack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := hubtest.Mosquitto(t, tt.o)
			c := secure(b)
			if tt.change != nil {
				tt.change(&c, b)
			}
			f := newFixture(t)
			f.emit(4)
			f.start(c)
			f.waitReason(tt.want, 15*time.Second)
			eventually(t, "everything kept", 5*time.Second, func() bool { // info is accepted first and written soon after
				s := f.p.Status()
				return s.Outbox.Crit.Pending == 2 && s.Outbox.Info.Pending == 2
			})
		})
	}
}

func TestMosquittoTakesOurClientCertificate(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true, ClientCerts: true})
	col := b.Collect(t, eventTopics)
	f := newFixture(t)
	f.emit(4)
	c := secure(b)
	c.CertFile, c.KeyFile = b.ClientCert, b.ClientKey
	f.start(c)
	col.WaitEvents(t, 4, 15*time.Second)
}

func TestMosquittoSilentIsNoticedByPing(t *testing.T) {
	t.Parallel()
	b := hubtest.Mosquitto(t, hubtest.Options{})
	f := newFixture(t)
	f.start(Config{Broker: b.URL, KeepAlive: 2 * time.Second, PingTimeout: time.Second, ConnectTimeout: 10 * time.Second})
	eventually(t, "a session", 10*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	b.Pause()
	f.waitReason(reasonPing, 20*time.Second)
	b.Resume()
	eventually(t, "the next session", 15*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
}

func TestPasswordChangedWhileConnectedIsNoticed(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true})
	f := newFixture(t)
	f.start(secure(b))
	eventually(t, "a session", 10*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	b.SetPassword("another")
	b.Stop()
	b.Start()
	f.waitReason(reasonAuth, 15*time.Second)
}

func TestTwoStationsWithOneNameAreTold(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{})
	one, two := newFixture(t), newFixture(t)
	c := Config{Broker: b.URL, MaxBackoff: 50 * time.Millisecond}
	one.start(c)
	two.start(c)
	eventually(t, "the reason", 30*time.Second, func() bool {
		return one.p.Status().Hub.Reason == reasonFlap || two.p.Status().Hub.Reason == reasonFlap
	})
}

// mosquitto acknowledges what its ACL forbids: only the missing confirmation
// shows it, and the events are still at the station.
func TestACLThatDropsInSilenceIsNoticed(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true, ACL: "user hub\ntopic read gsd/#\ntopic write gsd/v1/+/ack\n\n" +
		"pattern write gsd/v1/%u/availability\npattern read gsd/v1/%u/ack\n"})
	col := b.Collect(t, "gsd/#")
	f := newFixture(t)
	c := secure(b)
	c.Confirmation, c.ConfirmWithin = true, 500*time.Millisecond
	f.start(c)
	f.emit(10)
	eventually(t, "the false PUBACKs", 10*time.Second, func() bool { return f.p.Status().Outbox.Crit.Pending == 0 })
	f.waitReason(reasonNotConfirming, 10*time.Second)
	eventually(t, "mosquitto's denial", 5*time.Second, b.Denied)
	if n := len(hubtest.Events(col.Messages())); n != 0 {
		t.Fatalf("the hub got %d events through an ACL that forbids them", n)
	}
	if recs, err := f.box.Crit.Read(0, 100); err != nil || len(recs) != 5 {
		t.Errorf("the journal has %d records, %v; want all 5 to replay", len(recs), err)
	}
}

func TestEventThatTheBrokerFindsTooLargeIsPutAside(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Config: "max_packet_size 4000\n"})
	col := hubtest.Collect(t, b.URL, eventTopics)
	f := newFixture(t)
	f.emit(6)
	big, err := f.bus.Emit(t.Context(), event.About{}, event.AlarmRaised{Code: "BIG", Cause: strings.Repeat("x", 8000)})
	if err != nil {
		t.Fatal(err)
	}
	f.emit(6)
	f.start(Config{Broker: b.URL})
	got := col.Wait(t, "the rest and the declaration", 40*time.Second, func(m []hubtest.Message) bool { return len(hubtest.Events(m)) >= 13 })
	var declared bool
	for _, e := range hubtest.Events(got) {
		var q event.OutboxQuarantined
		if e.Type == "gsd.outbox.quarantined.v1" && json.Unmarshal(e.Data, &q) == nil {
			declared = q.EventID == big.ID && q.Bytes > 8000
		}
	}
	if !declared {
		t.Errorf("event %s was put aside without a declaration", big.ID)
	}
}

// What a crashed broker had acknowledged and not saved comes again when the
// hub says that it is missing.
func TestHubGetsBackWhatACrashedBrokerLost(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true, Config: "autosave_interval 1800\nautosave_on_changes false\n"})
	f := newFixture(t)
	c := secure(b)
	c.Confirmation = true
	f.start(c)
	f.emit(20)
	eventually(t, "the PUBACKs", 10*time.Second, func() bool {
		s := f.p.Status().Outbox
		return s.Crit.Puback == 10 && s.Info.Puback == 10
	})
	b.Kill() // no consumer was there and nothing was saved: PUBACKed and gone
	b.Start()
	col := b.Collect(t, eventTopics)
	b.Publish(t, "gsd/v1/gs-01/ack", true, fmt.Sprintf(
		`{"crit":{"epoch":%q,"upto":"0","missing":["1-10"]},"info":{"epoch":%q,"upto":"0","missing":["1-10"]}}`, f.box.Crit.Epoch(), f.box.Info.Epoch()))
	got := col.WaitEvents(t, 20, 20*time.Second)
	if !slices.Equal(sorted(eventIDs(got)), sorted(f.ids)) {
		t.Errorf("got %d events, want the 20", len(got))
	}
}

// kill -9 of the daemon, again and again: what Emit confirmed arrives.
func TestKilledDaemonLosesNothing(t *testing.T) {
	if dir := os.Getenv("HUB_TEST_DAEMON"); dir != "" {
		daemon(t, dir, os.Getenv("HUB_TEST_BROKER"))
		return
	}
	t.Parallel()
	kills := 5
	if s := os.Getenv("GSD_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil || kills < 1 {
			t.Fatalf("GSD_KILLS=%q: want a number", s)
		}
	}
	b := hubtest.Mosquitto(t, hubtest.Options{})
	col := hubtest.Collect(t, b.URL, eventTopics)
	dir := t.TempDir()
	confirmed := map[string]bool{}
	for range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledDaemonLosesNothing$")
		cmd.Env = append(os.Environ(), "HUB_TEST_DAEMON="+dir, "HUB_TEST_BROKER="+b.URL)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 60 && lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "id "); ok {
				confirmed[id] = true
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		for lines.Scan() { // what it had said before it died counts
			if id, ok := strings.CutPrefix(lines.Text(), "id "); ok {
				confirmed[id] = true
			}
		}
		cmd.Wait()
	}
	f := &fixture{t: t, dir: dir}
	f.open()
	t.Cleanup(f.close)
	f.start(Config{Broker: b.URL})
	eventually(t, "an empty outbox", 30*time.Second, func() bool {
		return f.box.Crit.Cursor() == f.box.Crit.Last() && f.box.Info.Cursor() == f.box.Info.Last()
	})
	want := int(f.box.Crit.Last() + f.box.Info.Last())
	got := col.WaitEvents(t, want, 30*time.Second)
	have := ids(got)
	for id := range confirmed {
		if have[id] == 0 {
			t.Errorf("event %s was confirmed to its caller and never came", id)
		}
	}
	inOrder(t, got)
	dups := 0
	for _, m := range col.Messages() {
		if m.Event.Sequence != "" {
			dups++
		}
	}
	if dups -= len(got); dups > 16*kills {
		t.Errorf("%d duplicates after %d kills, want at most the window of 16 for each", dups, kills)
	}
	if len(confirmed) < 50*kills {
		t.Errorf("only %d events were confirmed: the test did not test", len(confirmed))
	}
	t.Logf("%d kills, %d events confirmed, %d arrived, %d duplicates", kills, len(confirmed), len(got), dups)
}

// daemon emits and publishes until it is killed. It prints the id of each crit
// event once Emit has returned.
func daemon(t *testing.T, dir, url string) {
	f := &fixture{t: t, dir: dir}
	deadline := time.Now().Add(10 * time.Second)
	for { // the lock of the one before goes with its process
		d, err := state.Open(dir)
		if err == nil {
			d.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.open()
	f.start(Config{Broker: url})
	for {
		ev, err := f.bus.Emit(context.Background(), event.About{}, event.AlarmRaised{Code: "X"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("id " + ev.ID)
		if _, err := f.bus.Emit(context.Background(), event.About{}, event.PassTCA{}); err != nil {
			t.Fatal(err)
		}
	}
}

// kill -9 of the broker, again and again, under load: what it acknowledged and
// lost, the hub misses by its numbers, asks for, and gets.
func TestKilledBrokerLosesNothingForGood(t *testing.T) {
	t.Parallel()
	kills := 3
	if s := os.Getenv("GSD_BROKER_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil || kills < 1 {
			t.Fatalf("GSD_BROKER_KILLS=%q: want a number", s)
		}
	}
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true})
	col := b.Collect(t, eventTopics)
	f := newFixture(t)
	c := secure(b)
	c.Confirmation = true
	f.start(c)
	for range kills {
		f.emit(100)
		b.Kill()
		f.emit(20)
		b.Start()
	}
	eventually(t, "an empty outbox", 60*time.Second, func() bool {
		return f.box.Crit.Cursor() == uint64(60*kills) && f.box.Info.Cursor() == uint64(60*kills)
	})
	lost := 0
	ask := func() {
		have := map[string]map[uint64]bool{"crit": {}, "info": {}}
		for _, e := range hubtest.Events(col.Messages()) {
			n, _ := strconv.ParseUint(e.Sequence, 10, 64)
			have[e.Source[strings.LastIndexByte(e.Source, '/')+1:]][n] = true
		}
		ack := map[string]streamAck{}
		lost = 0
		for name, j := range map[string]*state.Journal{"crit": f.box.Crit, "info": f.box.Info} {
			a := streamAck{Epoch: j.Epoch(), UpTo: "0"}
			for n := uint64(1); n <= j.Last(); n++ {
				if !have[name][n] {
					if lost++; len(a.Missing) < maxMissing {
						a.Missing = append(a.Missing, strconv.FormatUint(n, 10))
					}
				}
			}
			ack[name] = a
		}
		if lost > 0 {
			payload, _ := json.Marshal(ack)
			b.Publish(t, "gsd/v1/gs-01/ack", true, string(payload))
		}
	}
	first := -1
	deadline := time.Now().Add(60 * time.Second)
	for {
		if ask(); first < 0 {
			first = lost
		}
		if lost == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(500 * time.Millisecond) // the hub asks again now and then
	}
	got := hubtest.Events(col.Messages())
	if !slices.Equal(sorted(eventIDs(got)), sorted(f.ids)) {
		t.Errorf("%d events of %d are missing for good", len(f.ids)-len(got), len(f.ids))
	}
	t.Logf("%d kills of the broker, %d events, %d had to be asked for", kills, len(f.ids), first)
}
