package hub

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/hub/hubtest"
	"gsd-mcp/internal/sim"
)

// consume runs a consumer with short timeouts; the answer ends it.
func consume(t *testing.T, c ConsumerConfig) (*Consumer, func()) {
	t.Helper()
	c.Link.MinBackoff, c.Link.MaxBackoff = 20*time.Millisecond, 200*time.Millisecond
	if c.ConfirmEvery == 0 {
		c.ConfirmEvery = 50 * time.Millisecond
	}
	k, err := NewConsumer(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run = %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("Run did not end within 30 s")
		}
		if err := k.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	t.Cleanup(end)
	return k, end
}

func asHub(b *hubtest.Broker) ConsumerConfig {
	return ConsumerConfig{Link: Config{Broker: b.URL, Username: hubtest.Hub, Password: hubtest.HubPassword, CAFile: b.CAFile}}
}

// counts are events, missing and duplicates of a station.
func counts(r FleetReport) (events, missing, duplicates uint64) {
	for _, s := range r.Stations {
		for _, x := range s.Streams {
			events, missing, duplicates = events+x.Events, missing+x.Missing, duplicates+x.Duplicates
		}
	}
	return
}

func waitEvents(t *testing.T, k *Consumer, n uint64) {
	t.Helper()
	eventually(t, "the events", 20*time.Second, func() bool { e, _, _ := counts(k.Report()); return e >= n })
}

// A hub that is away for a while finds everything in its session, over TLS and
// the ACL of the documentation; its account goes on from its file.
func TestConsumerProvesCompletenessOverItsRestarts(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true})
	c := asHub(b)
	c.File, c.FromStart = filepath.Join(t.TempDir(), "account"), true
	k, end := consume(t, c)
	eventually(t, "a session", 10*time.Second, func() bool { return k.Report().Connected })
	f := newFixture(t)
	f.start(secure(b))
	f.emit(20)
	waitEvents(t, k, 20)
	end()
	f.emit(20) // nobody listens
	eventually(t, "the PUBACKs", 10*time.Second, func() bool { return f.box.Crit.Cursor() == 20 && f.box.Info.Cursor() == 20 })
	k, end = consume(t, c)
	waitEvents(t, k, 40)
	r := k.Report()
	if e, m, d := counts(r); e != 40 || m != 0 || d != 0 || !r.Complete() || len(r.Findings) != 0 {
		t.Errorf("%d events, %d missing, %d duplicates, findings %q; want 40, none, none, none", e, m, d, r.Findings)
	}
	eventually(t, "the retained availability", 5*time.Second, func() bool {
		s := k.Report().Stations[0]
		return s.Station == "gs-01" && s.State == "online"
	})
	if err := f.p.Replay("crit", 3, 5); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three duplicates", 10*time.Second, func() bool { _, _, d := counts(k.Report()); return d == 3 })
	f.stop()
	eventually(t, "the goodbye", 5*time.Second, func() bool { return k.Report().Stations[0].State == "offline" })
	end()

	// Without a session and without a file it begins in the middle, and says so.
	if err := k.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.start(secure(b))
	f.emit(2)
	eventually(t, "the PUBACKs", 10*time.Second, func() bool { return f.box.Crit.Cursor() == 21 && f.box.Info.Cursor() == 21 })
	k, _ = consume(t, c)
	eventually(t, "a session", 10*time.Second, func() bool { return k.Report().Connected })
	f.emit(2)
	eventually(t, "the hole", 10*time.Second, func() bool { _, m, _ := counts(k.Report()); return m == 2 })
}

func TestConsumerConfirmsAndGetsBackWhatItMisses(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true})
	f := newFixture(t)
	c := secure(b)
	c.Confirmation = true
	f.start(c)
	f.emit(20) // before there is a consumer: PUBACKed, and dropped
	eventually(t, "the PUBACKs", 10*time.Second, func() bool { return f.box.Crit.Cursor() == 10 && f.box.Info.Cursor() == 10 })
	h := asHub(b)
	h.Confirm = true
	k, _ := consume(t, h)
	eventually(t, "a session", 10*time.Second, func() bool { return k.Report().Connected })
	f.emit(2)
	waitEvents(t, k, 22)
	eventually(t, "the confirmation", 10*time.Second, func() bool {
		s := f.p.Status().Outbox
		return s.Crit.Confirmed == 11 && s.Info.Confirmed == 11
	})
	if r := k.Report(); !r.Complete() {
		t.Errorf("report %+v", r)
	}
}

func TestConsumerSeesAStationGoSilent(t *testing.T) {
	b, err := sim.NewBroker(sim.BrokerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	k, _ := consume(t, ConsumerConfig{Link: Config{Dial: b.Dial}})
	eventually(t, "a session", 5*time.Second, func() bool { return k.Report().Connected })
	f := newFixture(t)
	f.bus.SetState("health", map[string]string{"verdict": "degraded"})
	dial := &cutDial{dial: b.Dial}
	f.start(Config{Dial: dial.Dial})
	eventually(t, "online and degraded", 5*time.Second, func() bool {
		r := k.Report()
		return len(r.Stations) == 1 && r.Stations[0].State == "online" && r.Stations[0].Verdict == "degraded"
	})
	dial.cut()
	eventually(t, "silence", 5*time.Second, func() bool {
		r := k.Report()
		return r.Silent == 1 && strings.Contains(strings.Join(r.Findings, "\n"), "gs-01: silent since")
	})
}

// mosquitto acknowledges what is over message_size_limit and drops it: only the
// hub's account shows which.
func TestMessageSizeLimitThatDropsInSilenceIsSeenInTheAccount(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Config: "message_size_limit 4000\n"})
	k, _ := consume(t, ConsumerConfig{Link: Config{Broker: b.URL}, Confirm: true})
	eventually(t, "a session", 10*time.Second, func() bool { return k.Report().Connected })
	f := newFixture(t)
	f.start(Config{Broker: b.URL, Confirmation: true})
	f.emit(6)
	if _, err := f.bus.Emit(t.Context(), event.About{}, event.AlarmRaised{Code: "BIG", Cause: strings.Repeat("x", 8000)}); err != nil {
		t.Fatal(err)
	}
	f.emit(6)
	eventually(t, "the false PUBACK", 10*time.Second, func() bool { return f.box.Crit.Cursor() == 7 && f.box.Info.Cursor() == 6 })
	waitEvents(t, k, 12)
	r := k.Report()
	if i := slices.IndexFunc(r.Stations[0].Streams, func(x StreamReport) bool { return x.Stream == "crit" }); i < 0 ||
		!slices.Equal(r.Stations[0].Streams[i].MissingRanges, []string{f.box.Crit.Epoch() + " 4"}) {
		t.Errorf("report %+v, want crit 4 missing", r)
	}
	eventually(t, "the confirmation up to the hole", 10*time.Second, func() bool { return f.p.Status().Outbox.Crit.Confirmed == 3 })
}

// The whole account of two lives of a disk: a removed epoch file is a new
// numbering, declared, and nothing is called missing that is not.
func TestConsumerFollowsANewEpoch(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{})
	k, _ := consume(t, ConsumerConfig{Link: Config{Broker: b.URL}, FromStart: true})
	eventually(t, "a session", 10*time.Second, func() bool { return k.Report().Connected })
	f := newFixture(t)
	f.start(Config{Broker: b.URL})
	f.emit(10)
	waitEvents(t, k, 10)
	f.stop()
	f.box.Close()
	f.d.Close()
	segments, err := filepath.Glob(filepath.Join(f.dir, "outbox", "info", "seg-*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	for _, s := range segments {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	f.open()
	f.start(Config{Broker: b.URL})
	f.emit(10)
	waitEvents(t, k, 20)
	r := k.Report()
	if !r.Complete() || len(r.Findings) != 0 {
		t.Errorf("findings %q, missing %d; want none", r.Findings, r.Missing)
	}
	if x := r.Stations[0].Streams[slices.IndexFunc(r.Stations[0].Streams, func(x StreamReport) bool { return x.Stream == "info" })]; x.Epochs != 2 || x.From != 6 || x.Epoch != f.box.Info.Epoch() {
		t.Errorf("info %+v, want two epochs, the second from 6", x)
	}
}

// Two brokers' worth of trouble: what a consumer cannot do has the same names
// as at the station.
func TestConsumerNamesWhyItHasNoSession(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Secure: true})
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"wrong password", func(c *Config) { c.Password = "wrong" }, reasonAuth},
		{"wrong CA", func(c *Config) { c.CAFile = "" }, reasonUnknownCA},
		{"no broker", func(c *Config) { c.Broker = "mqtt://127.0.0.1:1" }, reasonRefused},
		{"no file", func(c *Config) { c.Password, c.PasswordFile = "", "/nonexistent/pw" }, reasonConfig},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := asHub(b)
			tt.change(&c.Link)
			k, _ := consume(t, c)
			eventually(t, tt.want, 10*time.Second, func() bool { return k.Report().Reason == tt.want })
		})
	}
	if _, err := NewConsumer(ConsumerConfig{Link: Config{Broker: "http://x"}}, nil); err == nil {
		t.Error("a consumer of http:// was made")
	}
}
