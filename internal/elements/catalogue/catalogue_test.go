package catalogue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/state"
)

const dataDir = "../../../testdata/orbits"

func file(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{dataDir}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// day is when the reference elements are fresh.
var day = time.Date(2026, 8, 11, 12, 0, 0, 0, time.UTC)

// A hand is a clock that is set by hand.
type hand struct{ t time.Time }

func (h *hand) now() time.Time { return h.t }

func open(t testing.TB, o Options) *Catalogue {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return day }
	}
	c, note, err := Open(o)
	if err != nil || note != "" {
		t.Fatalf("Open: note %q, error %v", note, err)
	}
	return c
}

func store(t testing.TB, path string) *state.Dir {
	t.Helper()
	d, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// later moves the epoch and keeps the orbit: what the next set of a source
// looks like.
func later(s elements.Set, d time.Duration) elements.Set {
	turns := s.MeanMotion * d.Hours() / 24
	s.Epoch = s.Epoch.Add(d)
	s.MeanAnomalyDeg = mod360(s.MeanAnomalyDeg + 360*turns)
	return s
}

func mod360(x float64) float64 {
	for x >= 360 {
		x -= 360
	}
	return x
}

func tle(sets ...elements.Set) []byte {
	var b bytes.Buffer
	for _, s := range sets {
		l1, l2 := s.TLE()
		fmt.Fprintf(&b, "%s\n%s\n%s\n", s.Name, l1, l2)
	}
	return b.Bytes()
}

func TestWhatIsImportedSurvivesARestartAndATornWrite(t *testing.T) {
	dir := t.TempDir()
	d := store(t, dir)
	c := open(t, Options{Store: d})
	r, err := c.Import(t.Context(), "all.3le", file(t, "tle", "all.3le"))
	if err != nil || r.New != 33 || len(r.Problems) > 2 {
		t.Fatalf("%v, %v, want 33 new", r, err)
	}
	if r, err = c.Import(t.Context(), "gp.json", file(t, "omm", "gp.json")); err != nil || r.New != 3 || r.Unchanged != 5 {
		t.Fatalf("%v, %v, want 3 new and 5 unchanged", r, err)
	}
	d.Close()

	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if sets, err := ReadFile(data); err != nil || len(sets) != 36 {
		t.Errorf("ReadFile gives %d sets, %v; want 36", len(sets), err)
	}
	if _, err := ReadFile(data[:len(data)/2]); err == nil {
		t.Error("ReadFile took half a file")
	}
	d = store(t, dir)
	if got := len(open(t, Options{Store: d}).All()); got != 36 {
		t.Errorf("after a restart %d sets, want 36", got)
	}
	d.Close()

	// A power cut in the middle of the file: the version before it counts.
	path := filepath.Join(dir, setsName)
	if err := os.WriteFile(path, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	c, note, err := Open(Options{Store: store(t, dir), Now: func() time.Time { return day }})
	if err != nil || note == "" || len(c.All()) != 33 {
		t.Errorf("after a torn write: %d sets, note %q, error %v; want the 33 of the import before, and a note", len(c.All()), note, err)
	}
}

func TestACatalogueThatCannotBeReadBeginsEmpty(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{setsName, setsName + ".1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, note, err := Open(Options{Store: store(t, dir), Now: func() time.Time { return day }})
	if err != nil || !strings.Contains(note, "begins empty") || len(c.All()) != 0 {
		t.Errorf("note %q, error %v", note, err)
	}
}

func TestABodyWithoutElementsChangesNothing(t *testing.T) {
	c := open(t, Options{Base: elements.Embedded()})
	for _, name := range []string{"26_no_gp_data.txt", "27_html_error.html", "31_empty.tle", "05_checksum_line1.tle"} {
		_, err := c.Import(t.Context(), name, file(t, "bad_tles", name))
		if !errors.Is(err, ErrNoElements) || len(c.All()) != 30 {
			t.Errorf("%s: error %v, %d sets", name, err, len(c.All()))
		}
	}
}

func TestASetThatCannotBeSavedIsNotShown(t *testing.T) {
	c := open(t, Options{Store: broken{}})
	if _, err := c.Import(t.Context(), "all.3le", file(t, "tle", "all.3le")); err == nil || len(c.All()) != 0 {
		t.Errorf("error %v, %d sets; want an error and none", err, len(c.All()))
	}
}

// broken is a full disk.
type broken struct{}

func (broken) Save(string, any) error           { return errors.New("no space left on device") }
func (broken) Load(string, any) (string, error) { return "", fs.ErrNotExist }

func TestFindPutsTheBestFirst(t *testing.T) {
	c := open(t, Options{Base: elements.Embedded()})
	tests := []struct {
		query string
		limit int
		want  []int
	}{
		{"25544", 5, []int{25544}},
		{"iss", 5, []int{25544}},
		{"hst", 5, []int{20580}},
		{"meteo", 5, []int{38552, 57166, 59051}},
		{"METEOR-M2 4", 5, []int{59051}},
		{"ao-7", 5, []int{7530, 39444}},
		{"noaa", 1, []int{43013}},
		{"4370", 5, []int{43700}},
		{"zzz", 5, nil}, {"", 5, nil}, {"iss", 0, nil},
	}
	for _, tt := range tests {
		var got []int
		for _, s := range c.Find(tt.query, tt.limit) {
			got = append(got, s.NoradID)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("Find(%q, %d) = %v, want %v", tt.query, tt.limit, got, tt.want)
		}
	}
}

func TestAJumpIsHeldUntilTheNextSetConfirmsIt(t *testing.T) {
	base := elements.Embedded()
	iss := base[0]
	changed := 0
	c := open(t, Options{Base: base, Shift: passes.Shift, Changed: func(ids []int) { changed += len(ids) }})
	use := func(s elements.Set) Report {
		t.Helper()
		r, err := c.Import(t.Context(), "x", tle(s))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := use(later(iss, 6*time.Hour)); r.Updated != 1 {
		t.Fatalf("the same orbit six hours on: %v, want it updated", r)
	}
	if r := use(iss); r.Older != 1 {
		t.Errorf("an older set: %v, want it left", r)
	}
	burnt := later(iss, 12*time.Hour)
	burnt.MeanAnomalyDeg = mod360(burnt.MeanAnomalyDeg + 20)
	if r := use(burnt); r.Held != 1 {
		t.Fatalf("20° along the orbit: %v, want it held", r)
	}
	if s, _ := c.Get(iss.NoradID); (s.Epoch.Sub(iss.Epoch) - 6*time.Hour).Abs() > time.Millisecond {
		t.Errorf("the set in use is of %s, want that of six hours on", s.Epoch)
	}
	h, ok := c.Held(iss.NoradID)
	if !ok || len(h.Why) != 1 || !strings.Contains(h.Why[0], "along its orbit") {
		t.Errorf("held: %+v, %v", h, ok)
	}
	if r := use(later(burnt, 6*time.Hour)); r.Updated != 1 {
		t.Errorf("the next set agrees with the held one: %v, want it updated", r)
	}
	if _, ok := c.Held(iss.NoradID); ok || changed != 2 {
		t.Errorf("still held, or changed %d times, want 2", changed)
	}
}

func TestShiftMeasuresTheTimeAlongTheOrbit(t *testing.T) {
	iss := elements.Embedded()[0]
	moved := iss
	moved.MeanAnomalyDeg = mod360(iss.MeanAnomalyDeg + 1)
	d, err := passes.Shift(iss, moved)
	if want := -iss.Period() / 360; err != nil || (d-want).Abs() > 200*time.Millisecond {
		t.Errorf("one degree ahead shifts by %v, %v; want %v", d, err, want)
	}
}

// A source is a server that counts and can be told what to say.
type source struct {
	asked  int
	header http.Header
	answer func(w http.ResponseWriter, r *http.Request)
}

func serve(t *testing.T) (*source, string) {
	t.Helper()
	s := &source{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked++
		s.header = r.Header.Clone()
		s.answer(w, r)
	}))
	t.Cleanup(srv.Close)
	return s, srv.URL + "/NORAD/elements/gp.php?GROUP=amateur&FORMAT=json"
}

func says(code int, body []byte) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); w.Write(body) }
}

func TestRefreshIsConditionalAndKeepsTheLimits(t *testing.T) {
	src, url := serve(t)
	clock := &hand{day}
	dir := t.TempDir()
	c := open(t, Options{Store: store(t, dir), Client: http.DefaultClient, Now: clock.now, Sources: []string{url}, UserAgent: "gsd-mcp/test"})
	src.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", "Tue, 11 Aug 2026 06:00:00 GMT")
		w.Write(file(t, "omm", "gp.json"))
	}
	r, err := c.Refresh(t.Context())
	if err != nil || len(r) != 1 || r[0].New != 8 || src.header.Get("User-Agent") != "gsd-mcp/test" {
		t.Fatalf("first refresh: %v, %v", r, err)
	}
	clock.t = clock.t.Add(MinInterval - time.Second)
	if _, err = c.Refresh(t.Context()); !errors.Is(err, ErrTooEarly) || src.asked != 1 {
		t.Errorf("before two hours: %v, asked %d times, want ErrTooEarly and once", err, src.asked)
	}
	clock.t = clock.t.Add(time.Second)
	if r, err = c.Refresh(t.Context()); err != nil || len(r) != 0 || src.asked != 2 {
		t.Errorf("not modified: %v, %v, asked %d times", r, err, src.asked)
	}
	if src.header.Get("If-Modified-Since") == "" {
		t.Error("the second request was not conditional")
	}
	st := c.Status()
	if st.Satellites != 8 || len(st.Sources) != 1 || !st.Sources[0].LastOK.Equal(clock.t) || st.Sources[0].Sets != 8 || st.Newest.IsZero() {
		t.Errorf("status %+v", st)
	}
}

func TestNotEvenARestartAsksTooEarly(t *testing.T) {
	src, url := serve(t)
	src.answer = says(200, file(t, "omm", "gp.json"))
	clock := &hand{day}
	dir := t.TempDir()
	for range 3 {
		d := store(t, dir)
		c := open(t, Options{Store: d, Client: http.DefaultClient, Now: clock.now, Sources: []string{url}})
		c.Refresh(t.Context())
		d.Close()
		clock.t = clock.t.Add(time.Minute)
	}
	if src.asked != 1 {
		t.Errorf("three starts in three minutes asked %d times, want once", src.asked)
	}
	// With a disk that does not take the note, nothing is asked at all.
	c := open(t, Options{Store: broken{}, Client: http.DefaultClient, Now: clock.now, Sources: []string{url}})
	if _, err := c.Refresh(t.Context()); err == nil || src.asked != 1 {
		t.Errorf("asked %d times with a full disk, error %v", src.asked, err)
	}
}

func TestASourceThatFailsIsLeftAloneLongerAndLonger(t *testing.T) {
	src, url := serve(t)
	clock := &hand{day}
	c := open(t, Options{Base: elements.Embedded(), Client: http.DefaultClient, Now: clock.now, Sources: []string{url}})
	tests := []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		want   string
		wait   time.Duration
	}{
		{"error", says(500, nil), "HTTP 500", 2 * time.Hour},
		{"html", says(200, file(t, "bad_tles", "27_html_error.html")), "HTML", 4 * time.Hour},
		{"nothing", says(200, file(t, "bad_tles", "26_no_gp_data.txt")), "the server found nothing", 8 * time.Hour},
		{"blocked", says(403, []byte("<html>403</html>")), "blocks this station", 24 * time.Hour},
		{"busy", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "200000")
			w.WriteHeader(503)
		}, "HTTP 503", 200000 * time.Second},
		{"still", says(500, nil), "HTTP 500", 24 * time.Hour},
	}
	for i, tt := range tests {
		src.answer = tt.answer
		_, err := c.Refresh(t.Context())
		s := c.Status().Sources[0]
		if err == nil || !strings.Contains(err.Error(), tt.want) || src.asked != i+1 || strings.Contains(err.Error(), "FORMAT") {
			t.Errorf("%s: error %v, asked %d", tt.name, err, src.asked)
		}
		if got := s.NextTry.Sub(clock.t); got != tt.wait || s.Failures != i+1 || s.LastError == "" {
			t.Errorf("%s: waits %v after %d failures (%s), want %v", tt.name, got, s.Failures, s.LastError, tt.wait)
		}
		if len(c.All()) != 30 {
			t.Fatalf("%s: %d sets left", tt.name, len(c.All()))
		}
		clock.t = s.NextTry
	}
	src.answer = says(200, []byte("GP data has not updated since your last successful download of GROUP=AMATEUR at 2026-08-11 10:00:00 UTC.\nData is updated once every 2 hours."))
	if _, err := c.Refresh(t.Context()); err != nil || c.Status().Sources[0].Failures != 0 {
		t.Errorf("nothing new: %v, %+v", err, c.Status().Sources[0])
	}
	src.answer = says(200, file(t, "omm", "gp.csv"))
	clock.t = clock.t.Add(MinInterval)
	if r, err := c.Refresh(t.Context()); err != nil || len(r) != 1 || r[0].New != 3 || r[0].Unchanged != 5 {
		t.Errorf("after all that: %v, %v", r, err)
	}
}

func TestADeadServerIsAnErrorWithoutTheURL(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	url := srv.URL + "/x?token=secret"
	srv.Close()
	c := open(t, Options{Client: http.DefaultClient, Sources: []string{url, "ftp://x/y"}})
	_, err := c.Refresh(t.Context())
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "ftp://x/y") {
		t.Errorf("error %v", err)
	}
}

// fakeServer answers without a network, so that it works in a bubble.
type fakeServer struct{ asked []time.Time }

func (f *fakeServer) RoundTrip(*http.Request) (*http.Response, error) {
	f.asked = append(f.asked, time.Now())
	return nil, errors.New("no route to host")
}

func TestRunAsksWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := open(t, Options{Client: &http.Client{Transport: f}, Now: time.Now, Sources: []string{"https://a.example/x"}})
		ctx, cancel := context.WithTimeout(t.Context(), 31*time.Hour)
		defer cancel()
		failed := 0
		start := time.Now()
		err := c.Run(ctx, func(ctx context.Context, at time.Time) error {
			select {
			case <-time.After(time.Until(at)):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(_ []Report, err error) { failed++ })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v", err)
		}
		var after []time.Duration
		for _, at := range f.asked {
			after = append(after, at.Sub(start).Round(time.Hour))
		}
		if fmt.Sprint(after) != "[0s 2h0m0s 6h0m0s 14h0m0s 30h0m0s]" || failed != 5 {
			t.Errorf("asked after %v, %d failures told", after, failed)
		}
	})
}
