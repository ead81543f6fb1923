// Package stage does a run in tasks that share nothing but a directory, so that any number of machines
// can work on it. README.md, beside this file, says when and how. It knows no engine and no scheduler:
//
//	Make ──► plan.json, tasks
//	            │
//	inputs ──► Map ──► exchange files ──► Reduce ──► parts of the mapping, summaries
//	            └────► rejects               │
//	                                      Settle ──► amendments ──► Apply ──► parts, late rejects
//	                                                                  │
//	                                      Commit ◄────────────────────┘ ──► rejects, collisions, manifest
//
// Map makes records of the rows of one input, as package intake does, and sorts them by shard. A shard is a
// range of the order of the records; its borders are in the plan. Reduce surveys the records of a shard
// (settle.Survey) and writes them as a part of the mapping, as if each URL had its first code. Settle lets
// the URLs of all shards that contest a code settle it (settle.Coder), and Apply writes the parts again of
// which it decided something else. Commit gathers what was done.
//
// # Attempts
//
// A task may be done again, by several processes at once, and late. Each attempt writes under names of its
// own, and at last its report, which says how long its files are and what they hold. What reads the work of
// a task takes any attempt that has a report and all its files; their content is a function of the plan and
// the inputs, so that it makes no difference which. What has no report is litter, and so is every part
// that manifest.json does not list: that is written last of all.
//
// An engine can do the tasks, and the exchange between them: see Emit.
package stage

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/terms"
)

// A Plan is what all tasks of a run are told. It does not change.
type Plan struct {
	Run     json.RawMessage `json:"run"` // the manifest of the run, before it has begun
	Reading Reading         `json:"reading"`
	Links   []Links         `json:"links,omitempty"`
	Borders []Border        `json:"borders"` // between the shards; one less than there are shards
}

// Reading says how the inputs are opened.
type Reading struct {
	URLColumn       string        `json:"url_column,omitempty"`
	WorkspaceColumn string        `json:"workspace_column,omitempty"`
	Delimiter       byte          `json:"delimiter,omitempty"`
	Quote           byte          `json:"quote,omitempty"`
	Header          source.Header `json:"header,omitempty"`
	PadRows         bool          `json:"pad_rows,omitempty"`
	MaxField        int           `json:"max_field"`
	AllowEmpty      bool          `json:"allow_empty,omitempty"` // inputs without any rows are no error

	Parts [][]source.Groups `json:"parts"` // of each input; of some none: it is one
}

// ReadingOf returns what a plan has of the options, with parts of inputs for shards of so many rows.
func ReadingOf(o *source.Options, allowEmpty bool, inputs *intake.Inputs, rows int64) Reading {
	r := Reading{o.URLColumn, o.WorkspaceColumn, o.Delimiter, o.Quote, o.Header, o.PadRows, o.MaxField, allowEmpty, nil}
	for _, in := range inputs.List {
		r.Parts = append(r.Parts, parts(in.Input, rows))
	}
	return r
}

func (r *Reading) options() source.Options {
	return source.Options{Choice: columns.Choice{URLColumn: r.URLColumn, WorkspaceColumn: r.WorkspaceColumn},
		Delimiter: r.Delimiter, Quote: r.Quote, Header: r.Header, PadRows: r.PadRows, MaxField: r.MaxField}
}

// Options are those of a process that does tasks. None of them can change a result.
type Options struct {
	Version string // of the tool, which must be that of the plan
	Workers int    // goroutines that compute; at least 1
	TempDir string // of what does not fit in memory; "": that of the system

	Secret func(scheme string) (codegen.Secret, error) // returns the secret of a scheme, if it has one; nil: there is none

	attempt string // names the attempts of a test; "": each has a name of its own
}

// The memory of a task, in bytes: records and rejects that are held before they spill.
const (
	recordMemory = 96 << 20
	rejectMemory = 16 << 20
)

// A Job is a plan, as a process that does its tasks has it.
type Job struct {
	out    string
	id     string // as of ID
	opts   Options
	plan   Plan
	run    *manifest.Manifest
	terms  *terms.Terms
	inputs *intake.Inputs // described
	coder  settle.Coder   // without workspaces

	contested float64                    // of a plan that was just made
	counted   map[string]map[string]bool // reports of attempts that count, by stage; see AcceptList
}

// The files of a plan in the output directory.
const (
	work     = manifest.StageDir // directory of all that is no output
	planName = "plan.json"
)

// ErrNoPlan is the error of a directory that has no plan.
var ErrNoPlan = errors.New("there is no plan of bulk stage in it")

// Open reads the plan in an output directory. The error is of a plan of another version, or of a scheme
// with another secret, or ErrNoPlan.
func Open(out string, opts Options) (*Job, error) {
	j, err := readPlan(out)
	if err != nil {
		return nil, err
	}
	j.opts = opts
	if err := j.prepare(); err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	return j, nil
}

func readPlan(out string) (*Job, error) {
	data, err := os.ReadFile(filepath.Join(out, work, planName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", out, ErrNoPlan)
	}
	if err != nil {
		return nil, err
	}
	j := &Job{out: out, id: idOf(data)}
	if err = json.Unmarshal(data, &j.plan); err == nil {
		j.run, err = manifest.Read(j.plan.Run)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the plan: %w", out, err)
	}
	return j, nil
}

// IsUsage reports whether an error is of a plan, or of a task, that cannot be done as it was asked for.
func IsUsage(err error) bool {
	return errors.Is(err, ErrNoPlan) || errors.Is(err, ErrNoRows) || errors.As(err, new(*NoTaskError)) || errors.As(err, new(*OtherPlanError)) || errors.As(err, new(*shorturl.HostError))
}

// An OtherPlanError says why a process cannot do the tasks of a plan.
type OtherPlanError struct{ Why string }

func (e *OtherPlanError) Error() string { return e.Why }

// prepare makes what follows from the plan.
func (j *Job) prepare() (err error) {
	if j.run.Version != j.opts.Version {
		return &OtherPlanError{fmt.Sprintf("the plan was made by bulk %s, and this is %s: each task needs the version of the plan", j.run.Version, j.opts.Version)}
	}
	var problems []terms.Problem
	if j.terms, problems = terms.Parse(j.run); len(problems) > 0 {
		return fmt.Errorf("the plan: %s is %v", problems[0].Field, problems[0].Got)
	}
	s := &j.run.Scheme
	var secret codegen.Secret
	if j.opts.Secret != nil {
		if secret, err = j.opts.Secret(s.Name); err != nil {
			return err
		}
	}
	if got := secret.Fingerprint(); got != s.Fingerprint {
		switch {
		case got == "":
			return &OtherPlanError{"the scheme of the plan has a secret, and this process has none: give Config.Scheme.Secret"}
		case s.Fingerprint == "":
			return &OtherPlanError{"the scheme of the plan has no secret, and one was given"}
		}
		return &OtherPlanError{fmt.Sprintf("the secret of the scheme is not that of the plan: its fingerprint is %s, and must be %s", got, s.Fingerprint)}
	}
	var maker codegen.Maker
	if maker.Scheme, _, err = (codegen.Choice{Name: s.Name, Length: s.CodeLength, Secret: secret}).Make(); err != nil {
		return err
	}
	if j.inputs, err = intake.Describe(j.run.Inputs); err != nil {
		return err
	}
	j.coder = settle.Coder{MaxRetries: s.MaxRetries, Order: record.Order{Maker: maker, Retries: s.MaxRetries, Carried: len(j.inputs.Carried)}}
	return nil
}

// SettleMemory is about how much memory Settle needs for the URLs whose code another one wants, in bytes, as
// the sample of [Make] tells.
func (j *Job) SettleMemory() float64 { return 1 << 10 * j.contested }

// AsOf is the time that counts as now.
func (j *Job) AsOf() time.Time { return j.run.AsOf }

// Shards is the number of shards: so many tasks Reduce has.
func (j *Job) Shards() int { return len(j.plan.Borders) + 1 }

// NoTaskError is the number of a task that a plan does not have.
type NoTaskError struct {
	Stage  string
	N, Has int
}

func (e *NoTaskError) Error() string {
	return fmt.Sprintf("there is no task %s %d: the plan has %s 0 to %d", e.Stage, e.N, e.Stage, e.Has-1)
}

func checkTask(stage string, n, has int) error {
	if n < 0 || n >= has {
		return &NoTaskError{stage, n, has}
	}
	return nil
}

// A File is one that an attempt wrote.
type File struct {
	Name   string `json:"name"` // in the output directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // of a part of the mapping
}

// ID tells the plan from others. The name of each attempt begins with it, so that one of a plan that was in
// the directory before does not count.
func (j *Job) ID() string { return j.id }

// attempt returns the name of a new attempt.
func (j *Job) attempt() string { return j.id + "-" + cmp.Or(j.opts.attempt, unique()) }

func unique() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // it does not fail
	return hex.EncodeToString(b)
}

// writeWhole writes a file that nobody sees before it is whole. It may replace one.
func writeWhole(path string, write func(io.Writer) error) error {
	dir, name := filepath.Split(path)
	f, err := create(filepath.Join(dir, "."+name+"."+unique()))
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.close())
	if err == nil {
		err = os.Rename(f.f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.f.Name()))
	}
	return err
}

// cancelled returns what ended ctx.
func cancelled(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// writeJSON writes a value as JSON, as of writeWhole.
func writeJSON(path string, v any) error {
	return writeWhole(path, func(w io.Writer) error { return encode(w, v) })
}
