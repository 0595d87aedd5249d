package elements

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const dataDir = "../../testdata/orbits"

func readFile(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{dataDir}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bad says, beyond the verdict of index.csv, what each file must give.
var bad = map[string]struct {
	sets    []string // "number name epoch" of the sets, beginnings
	problem string   // a part of the only problem, "" for none
	at      string   // line:column of the problem
}{
	"01_crlf.tle":                    {sets: []string{"25544 ISS (ZARYA) 2026-08-11T03:35:03.190272Z"}},
	"02_zero_name.3le":               {sets: []string{"25544 ISS (ZARYA) "}},
	"03_no_name.tle":                 {sets: []string{"25544  2026"}},
	"04_bom_comments_blank.tle":      {sets: []string{"25544 ISS (ZARYA) ", "7530 OSCAR 7 (AO-7) "}},
	"05_checksum_line1.tle":          {problem: "line 1 checksum: got 4, expected 3", at: "2:69"},
	"06_digit_flipped_line2.tle":     {problem: "line 2 checksum: got 1, expected 2", at: "3:69"},
	"07_no_checksum_68.tle":          {sets: []string{"25544 "}, problem: "checksum absent", at: "2:69"},
	"08_number_mismatch.tle":         {problem: "line 1 is for 25544 but line 2 is for 43013", at: "3:3"},
	"09_lines_swapped.tle":           {problem: "line 2 before line 1", at: "2"},
	"10_truncated_line2.tle":         {problem: "line 2 has 60 columns, needs at least 63 (mean motion cut)", at: "3:60"},
	"11_missing_line2_then_good.tle": {sets: []string{"7530 OSCAR 7"}, problem: "line 1 of 25544 has no line 2", at: "2"},
	"12_nbsp.tle":                    {problem: "non-ASCII character U+00A0 in line 1, column 16", at: "2:16"},
	"13_space_satnum_plus.tle":       {sets: []string{"7530 OSCAR 7 "}},
	"14_day366_nonleap.tle":          {sets: []string{"25544 ISS (ZARYA) 2026-01-01T19:42:47"}},
	"15_day366_leap.tle":             {sets: []string{"25544 ISS (ZARYA) 2024-12-31T12:00:00Z"}},
	"16_day000.tle":                  {problem: "day of year 0 is not in 1..366", at: "2:21"},
	"17_ecc_spaces.tle":              {sets: []string{"25544 "}},
	"18_alpha5_A0001.tle":            {sets: []string{"100001 ALPHA "}},
	"19_alpha5_Z9999.tle":            {sets: []string{"339999 ALPHA "}},
	"20_alpha5_I.tle":                {problem: "Alpha-5 does not use I or O", at: "2:3"},
	"21_alpha5_lower.tle":            {problem: "Alpha-5 letter must be a capital", at: "2:3"},
	"22_mean_motion_zero.tle":        {problem: "mean motion 0 must be > 0", at: "3:53"},
	"23_inclination_251.tle":         {problem: "inclination 251.6325 is outside 0..180", at: "3:9"},
	"24_letters_in_field.tle":        {problem: `inclination " 51.6E2X" is not a number`, at: "3:9"},
	"25_ephemeris_type_4.tle":        {problem: "ephemeris type 4 is not supported: SGP4-XP", at: "2:63"},
	"26_no_gp_data.txt":              {problem: "the server found nothing for this query; keep the cached set", at: "1"},
	"27_html_error.html":             {problem: "not orbital data (HTML)", at: "1:1"},
	"28_cut_last_record.tle":         {sets: []string{"25544 "}, problem: "line 2 has 20 columns", at: "6:20"},
	"29_zero_padded_angles.tle":      {sets: []string{"25544 "}},
	"30_garbage_after_decay.tle":     {sets: []string{"55897 OBJECT 55897 "}, problem: "decay"},
	"31_empty.tle":                   {problem: "empty file"},
	"32_missing_fields_str3.tle":     {sets: []string{"11801 STR3 11801 "}, problem: "no international designator", at: "2:10"},
	"33_vallado_negative_error.tle":  {sets: []string{"33334 CASE 33334 "}, problem: "SGP4 fails at the epoch", at: "3:53"},
}

func TestEveryBadFileGetsItsVerdict(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(string(readFile(t, "bad_tles", "index.csv")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 34 || len(bad) != 33 {
		t.Fatalf("index.csv has %d rows and the table %d, want 34 and 33", len(rows), len(bad))
	}
	for _, row := range rows[1:] {
		file, verdict := row[0], row[1]
		t.Run(file, func(t *testing.T) {
			want := bad[file]
			got := Parse(file, readFile(t, "bad_tles", file))
			if v := verdictOf(got); v != verdict {
				t.Errorf("verdict %s, want %s; problems %v", v, verdict, got.Problems)
			}
			if len(got.Sets) != len(want.sets) {
				t.Fatalf("%d sets, want %d; problems %v", len(got.Sets), len(want.sets), got.Problems)
			}
			for i, s := range got.Sets {
				text := fmt.Sprintf("%d %s %s", s.NoradID, s.Name, s.Epoch.Format(time.RFC3339Nano))
				if !strings.HasPrefix(text, want.sets[i]) {
					t.Errorf("set %d is %q, want it to begin with %q", i, text, want.sets[i])
				}
				if err := s.Validate(); err != nil {
					t.Errorf("set %d: %v", i, err)
				}
			}
			if want.problem == "" {
				if len(got.Problems) > 0 {
					t.Errorf("problems %v, want none", got.Problems)
				}
				return
			}
			if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].String(), want.problem) {
				t.Fatalf("problems %v, want one with %q", got.Problems, want.problem)
			}
			p := got.Problems[0]
			if p.Fix == "" {
				t.Errorf("%v has no fix", p)
			}
			if want.at != "" && !strings.HasPrefix(p.String(), file+":"+want.at+": ") {
				t.Errorf("problem %q, want it at %s", p, want.at)
			}
		})
	}
}

func verdictOf(r Result) string {
	rejected := r.Rejected()
	switch {
	case len(r.Sets) == 0:
		return "reject"
	case rejected > 0:
		return "partial"
	case len(r.Problems) > 0:
		return "accept_warn"
	}
	return "accept"
}
