package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Section is one comparison of a result.
type Section struct {
	Title     string   `json:"title"`
	Note      string   `json:"note,omitempty"`      // what was compared; Markdown
	Reference string   `json:"reference,omitempty"` // step to which the others are compared; "": no ratios
	Samples   []Sample `json:"samples,omitempty"`
	Aims      []Aim    `json:"aims,omitempty"`
}

// An Aim is a number that should not exceed a limit.
type Aim struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Unit  string  `json:"unit"` // "×", "s", …
}

// Met reports whether the number is within its limit.
func (a Aim) Met() bool { return a.Value <= a.Limit }

// A Result is everything that one run of a harness measured.
type Result struct {
	Name     string    `json:"name"`
	Command  string    `json:"command"`
	Machine  Machine   `json:"machine"`
	Sections []Section `json:"sections"`
}

// Write writes the result to NAME.md and NAME.json in a directory, and returns the
// page.
func (r Result) Write(dir string) (page string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	page = r.markdown()
	base := filepath.Join(dir, r.Name)
	return page, errors.Join(os.WriteFile(base+".md", []byte(page), 0o644), os.WriteFile(base+".json", append(raw, '\n'), 0o644))
}

func (r Result) markdown() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "# %s\n\n`%s`, %s, revision `%s`.\n\n", r.Name, r.Command, m.Date, m.Revision)
	fmt.Fprintf(&b, "%s, %d cores, %.1f GiB, %s, %s", m.CPU, m.Cores, float64(m.RAM)/(1<<30), m.Kernel, m.Go)
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		fmt.Fprintf(&b, ", %s %s", name, m.Versions[name])
	}
	b.WriteString(".\n\nMedians; in parentheses the least and the most. “total” is the time until the output is on the disk; “fsync” is " +
		"its part that waiting for the disk took, where it is known. Ratios are medians of the ratios within a round. Raw samples: `" +
		r.Name + ".json`.\n")
	for _, s := range r.Sections {
		s.markdown(&b)
	}
	return b.String()
}

func (s Section) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n", s.Title)
	if s.Note != "" {
		fmt.Fprintf(b, "\n%s\n", s.Note)
	}
	if len(s.Samples) > 0 {
		s.table(b)
	}
	if len(s.Aims) > 0 {
		b.WriteString("\n| aim | measured | limit | |\n|---|--:|--:|---|\n")
	}
	for _, a := range s.Aims {
		verdict := "met"
		if !a.Met() {
			verdict = "**missed**"
		}
		fmt.Fprintf(b, "| %s | %.4g %s | %.4g %s | %s |\n", a.Name, a.Value, a.Unit, a.Limit, a.Unit, verdict)
	}
}

// table writes a line for each step, in the order of their first samples.
func (s Section) table(b *strings.Builder) {
	b.WriteString("\n| | total s | fsync s | CPU s | peak RSS MiB | B/row of RSS | output MB | M rows/s |")
	rule := "\n|---|--:|--:|--:|--:|--:|--:|--:|"
	ratios := len(Of(s.Samples, s.Reference)) > 0
	if ratios {
		b.WriteString(" ratio |")
		rule += "--:|"
	}
	b.WriteString(rule + "\n")
	for _, name := range steps(s.Samples) {
		of := Of(s.Samples, name)
		totals := Values(of, Sample.Total)
		rss := Median(Values(of, Sample.MiB))
		rows := float64(of[0].Rows)
		fmt.Fprintf(b, "| %s | %.3f (%.3f–%.3f) | %s | %.3f | %.1f | %.0f | %.1f | %.3f |", name, Median(totals), slices.Min(totals), slices.Max(totals), fsync(of),
			Median(Values(of, Sample.cpu)), rss, rss*(1<<20)/rows,
			Median(Values(of, func(s Sample) float64 { return float64(s.Bytes) }))/1e6, rows/Median(totals)/1e6)
		if ratios {
			fmt.Fprintf(b, " %.3f |", Ratio(s.Samples, name, s.Reference, Sample.Total))
		}
		b.WriteByte('\n')
	}
	s.stages(b)
}

// fsync is the median of the time for the disk; "in it" if it is part of the total, but not
// known.
func fsync(of []Sample) string {
	v := Median(Values(of, func(s Sample) float64 { return s.Fsync }))
	if v == 0 && of[0].FsyncInside {
		return "in it"
	}
	return fmt.Sprintf("%.3f", v)
}

// stages writes what the programs report.
func (s Section) stages(b *strings.Builder) {
	for _, name := range steps(s.Samples) {
		of := Of(s.Samples, name)
		if len(of[0].Stages) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s, in seconds or counts:", name)
		for i, stage := range slices.Sorted(maps.Keys(of[0].Stages)) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, " %s %.3g", stage, Median(Values(of, func(s Sample) float64 { return s.Stages[stage] })))
		}
		b.WriteString(".\n")
	}
}

// steps lists the names of the steps as they first appear.
func steps(samples []Sample) (names []string) {
	seen := map[string]bool{}
	for _, s := range samples {
		if !seen[s.Step] {
			seen[s.Step] = true
			names = append(names, s.Step)
		}
	}
	return names
}
