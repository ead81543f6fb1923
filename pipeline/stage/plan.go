package stage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// Make plans a run, before it has begun, as the manifest describes it: it samples the inputs, and writes
// the plan and the tasks of Map and Reduce into the output directory, which it makes. A shard has about so
// many rows.
func Make(ctx context.Context, out string, run *manifest.Manifest, reading Reading, links []Links, rows int64, opts Options) (j *Job, err error) {
	var buf bytes.Buffer
	if err := manifest.Write(&buf, run); err != nil {
		return nil, err
	}
	told, err := manifest.Read(buf.Bytes())
	if err != nil {
		return nil, err
	}
	j = &Job{out: out, opts: opts, run: told, plan: Plan{Run: bytes.Clone(buf.Bytes()), Reading: reading, Links: links}}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	if j.plan.Borders, err = j.sample(ctx, rows); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // it is planned again
			err = errors.Join(err, os.RemoveAll(j.path(work)))
		}
	}()
	for stage, tasks := range map[string]int{"map": j.MapTasks(), "reduce": j.Shards()} {
		var lines []string
		for n := range tasks {
			lines = append(lines, j.task(stage, n))
		}
		if err := j.writeTasks(stage, lines); err != nil {
			return nil, err
		}
	}
	buf.Reset()
	if err := encode(&buf, &j.plan); err != nil {
		return nil, err
	}
	j.id = idOf(buf.Bytes())
	return j, writeWhole(j.path(work+"/"+planName), func(w io.Writer) error { _, err := w.Write(buf.Bytes()); return err })
}

// idOf returns the ID of a plan.
func idOf(plan []byte) string {
	sum := sha256.Sum256(plan)
	return hex.EncodeToString(sum[:3])
}

// task returns the command of a task.
func (j *Job) task(stage string, n int) string {
	return fmt.Sprintf("bulk stage %s %s %d", stage, j.out, n)
}

// writeTasks writes the commands of a stage, a line each.
func (j *Job) writeTasks(stage string, lines []string) error {
	return writeWhole(j.TasksOf(stage), func(w io.Writer) error {
		for _, line := range lines {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// TasksOf returns the path of the file with the tasks of a stage: map, reduce or apply.
func (j *Job) TasksOf(stage string) string { return filepath.Join(j.out, work, stage+".tasks") }

// IsPlain reports whether a name is one word for a shell and for xargs, and no flag, as that of an output
// directory must be: it is in the commands of tasks.
func IsPlain(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+=:@%") == ""
}
