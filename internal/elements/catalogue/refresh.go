package catalogue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

const (
	// MinInterval is how long to leave a source alone: CelesTrak makes new data
	// every two hours and blocks those who ask more often.
	MinInterval = 2 * time.Hour
	// maxBackoff is the longest wait after failures, but for a source that asks
	// for more by Retry-After.
	maxBackoff    = 24 * time.Hour
	maxRetryAfter = 7 * 24 * time.Hour
	// requestTime bounds one request: the whole catalogue as XML is 30 MB.
	requestTime = 2 * time.Minute
	maxBody     = 64 << 20
)

// A SourceStatus is what is known of one source. It is saved before each
// request, so that not even a crash loop asks too often.
type SourceStatus struct {
	URL          string    `json:"url"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	LastTry      time.Time `json:"last_try"`
	LastOK       time.Time `json:"last_ok"` // elements, or "not modified"
	NextTry      time.Time `json:"next_try"`
	Failures     int       `json:"failures"` // in a row
	LastError    string    `json:"last_error,omitempty"`
	Sets         int       `json:"sets"` // in the last body
	Problems     int       `json:"problems"`
}

// A Status sums the catalogue up.
type Status struct {
	Satellites int            `json:"satellites"`
	Newest     time.Time      `json:"newest_epoch"` // zero without elements
	Held       int            `json:"held"`
	Sources    []SourceStatus `json:"sources"`
}

// Status says how many satellites there are, how fresh the newest set is, and
// how each source does.
func (c *Catalogue) Status() Status {
	s := c.current.Load()
	st := Status{Satellites: len(s.sets), Held: len(s.held), Sources: slices.Clone(*c.status.Load())}
	for _, set := range s.sets {
		if set.Epoch.After(st.Newest) {
			st.Newest = set.Epoch
		}
	}
	return st
}

// setSources lists the configured sources in their order, with what was saved
// of each.
func (c *Catalogue) setSources(known []SourceStatus) {
	list := make([]SourceStatus, 0, len(c.o.Sources))
	for _, u := range c.o.Sources {
		s := SourceStatus{URL: u}
		if i := slices.IndexFunc(known, func(k SourceStatus) bool { return k.URL == u }); i >= 0 {
			s = known[i]
		}
		list = append(list, s)
	}
	c.status.Store(&list)
}

// Due is the first time at which a source may be asked; zero without sources.
func (c *Catalogue) Due() time.Time {
	var due time.Time
	for _, s := range *c.status.Load() {
		if next := c.due(s); due.IsZero() || next.Before(due) {
			due = next
		}
	}
	return due
}

// due is when a source may be asked again. A clock that was set back does not
// lock a source out for ever.
func (c *Catalogue) due(s SourceStatus) time.Time {
	if s.LastTry.After(c.o.Now()) {
		return c.o.Now()
	}
	return s.NextTry
}

// ErrTooEarly means that no source may be asked yet.
var ErrTooEarly = errors.New("every source was asked too recently")

// Refresh asks every source that is due. A source that fails is left alone for
// longer and longer; what it gave before stays. The error joins those of the
// sources that failed; the reports are of those that brought elements.
func (c *Catalogue) Refresh(ctx context.Context) ([]Report, error) {
	if c.o.Client == nil || len(c.o.Sources) == 0 {
		return nil, errors.New("refresh elements: no sources; list them under [elements] sources, or import a file")
	}
	if err := take(ctx, c.asking); err != nil {
		return nil, fmt.Errorf("refresh elements: %w", err)
	}
	defer func() { <-c.asking }()
	var reports []Report
	var errs []error
	asked := 0
	for i, s := range *c.status.Load() {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		if c.due(s).After(c.o.Now()) {
			continue
		}
		asked++
		r, err := c.refresh(ctx, i, s)
		if err != nil {
			errs = append(errs, err)
		} else if r != nil {
			reports = append(reports, *r)
		}
	}
	if asked == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("refresh elements: %w; the next may be asked at %s", ErrTooEarly, c.Due().Format(time.RFC3339))
	}
	return reports, errors.Join(errs...)
}

// put saves the state of a source and shows it.
func (c *Catalogue) put(i int, s SourceStatus) error {
	list := slices.Clone(*c.status.Load())
	list[i] = s
	c.status.Store(&list)
	if c.o.Store == nil {
		return nil
	}
	if err := c.o.Store.Save(sourcesName, list); err != nil {
		return fmt.Errorf("save the states of the element sources: %w", err)
	}
	return nil
}

// refresh asks one source. A nil report and no error: nothing new.
func (c *Catalogue) refresh(ctx context.Context, i int, s SourceStatus) (*Report, error) {
	now := c.o.Now()
	s.LastTry, s.NextTry = now, now.Add(c.o.Interval)
	// First on disk: a request that is not counted must not be made.
	if err := c.put(i, s); err != nil {
		return nil, err
	}
	a, err := c.get(ctx, s)
	if err != nil {
		s.Failures++
		wait := MinInterval << min(s.Failures-1, 8)
		s.NextTry = now.Add(max(min(wait, maxBackoff), a.retryAfter))
		s.LastError = unit.Printable(err.Error(), 300)
		if e := c.put(i, s); e != nil {
			err = errors.Join(err, e)
		}
		return nil, err
	}
	if a.unchanged {
		s.LastOK, s.Failures, s.LastError = now, 0, ""
		return nil, c.put(i, s)
	}
	report, err := c.merge(ctx, Report{Source: a.parsed.source, Format: a.parsed.Format, Read: len(a.parsed.Sets), Problems: a.parsed.Problems}, a.parsed.Sets)
	if err != nil {
		return nil, err
	}
	s.LastOK, s.Failures, s.LastError = now, 0, ""
	s.ETag, s.LastModified = a.etag, a.modified
	s.Sets, s.Problems = report.Read, len(report.Problems)
	return &report, c.put(i, s)
}

// An answer is what a source said.
type answer struct {
	unchanged      bool
	retryAfter     time.Duration
	etag, modified string
	parsed         struct {
		elements.Result
		source string
	}
}

// get makes one conditional request.
func (c *Catalogue) get(ctx context.Context, s SourceStatus) (answer, error) {
	var a answer
	name, err := sourceName(s.URL)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return a, fmt.Errorf("elements from %s: %w", name, err)
	}
	if s.ETag != "" {
		req.Header.Set("If-None-Match", s.ETag)
	}
	if s.LastModified != "" {
		req.Header.Set("If-Modified-Since", s.LastModified)
	}
	if c.o.UserAgent != "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	resp, err := c.o.Client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL, which may carry a secret
		}
		return a, fmt.Errorf("elements from %s: %w", name, err)
	}
	defer resp.Body.Close()
	a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), c.o.Now())
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case resp.StatusCode == http.StatusNotModified:
		a.unchanged = true
		return a, nil
	case err != nil:
		return a, fmt.Errorf("elements from %s: read the body: %w", name, err)
	case len(body) > maxBody:
		return a, fmt.Errorf("elements from %s: more than %d MB", name, maxBody>>20)
	case notUpdated(body):
		a.unchanged = true
		return a, nil
	case resp.StatusCode == http.StatusForbidden:
		a.retryAfter = max(a.retryAfter, maxBackoff)
		return a, fmt.Errorf("elements from %s: HTTP 403: the source blocks this station; it is left alone for a day", name)
	case resp.StatusCode != http.StatusOK:
		return a, fmt.Errorf("elements from %s: HTTP %d", name, resp.StatusCode)
	}
	a.parsed.Result, a.parsed.source = elements.Parse(name, body), name
	if len(a.parsed.Sets) == 0 {
		why := "an empty body"
		if len(a.parsed.Problems) > 0 {
			why = a.parsed.Problems[0].What
		}
		return a, fmt.Errorf("elements from %s: %w: %s; the sets in use stay", name, ErrNoElements, why)
	}
	a.etag, a.modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	return a, nil
}

// notUpdated knows CelesTrak's way of saying that there is nothing new.
func notUpdated(body []byte) bool {
	return len(body) < 1000 && bytes.Contains(body, []byte("has not updated since your last successful download"))
}

// sourceName is a URL for messages: without user, password and query values
// that look like secrets.
func sourceName(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("element source %q is not an http or https URL", unit.Printable(raw, 80))
	}
	name := u.Host + u.EscapedPath()
	if g := cmp.Or(u.Query().Get("GROUP"), u.Query().Get("CATNR"), u.Query().Get("NAME")); g != "" {
		name += " " + g
	}
	return unit.Printable(name, 120), nil
}

// retryAfter reads the header, in seconds or as a date.
func retryAfter(h string, now time.Time) time.Duration {
	h = strings.TrimSpace(h)
	if n, err := strconv.Atoi(h); err == nil && n > 0 {
		return min(time.Duration(min(n, int(maxRetryAfter/time.Second)))*time.Second, maxRetryAfter)
	}
	if t, err := http.ParseTime(h); err == nil {
		return max(0, min(t.Sub(now), maxRetryAfter))
	}
	return 0
}

// Run refreshes whenever a source is due, until ctx ends. sleepUntil waits on
// the station's clock; tell gets every result.
func (c *Catalogue) Run(ctx context.Context, sleepUntil func(context.Context, time.Time) error, tell func([]Report, error)) error {
	if c.o.Client == nil || len(c.o.Sources) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	for {
		due := c.Due()
		// A little late rather than a little early, and never in a tight loop.
		if least := c.o.Now().Add(time.Second); due.Before(least) {
			due = least
		}
		if err := sleepUntil(ctx, due); err != nil {
			return err
		}
		reports, err := c.Refresh(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, ErrTooEarly) {
			tell(reports, err)
		}
	}
}
