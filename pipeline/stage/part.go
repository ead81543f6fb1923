package stage

import (
	"fmt"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/source"
)

// A task of Map reads a file, which is an input or an export, or a part of one: some row groups of Parquet.

// partShards is about how many shards the rows of a part make.
const partShards = 10

// parts cuts a file, for shards of so many rows; nil: it is one part.
func parts(in *source.Input, rows int64) (list []source.Groups) {
	if in.Compression != "" { // each part would be all of it
		return nil
	}
	groups, had := in.RowGroups(), int64(0)
	for n, size := range groups {
		if n == 0 || had >= partShards*rows {
			list, had = append(list, source.Groups{From: n, Of: len(groups)}), 0
		}
		list[len(list)-1].To = n + 1
		had += size
	}
	if len(list) == 1 {
		return nil
	}
	return list
}

// partOf returns the file and the part of task n of Map: the parts of all files come one after the other.
func partOf(files [][]source.Groups, n int) (file int, part source.Groups) {
	for ; n >= max(len(files[file]), 1); file++ {
		n -= max(len(files[file]), 1)
	}
	if len(files[file]) > 0 {
		part = files[file][n]
	}
	return file, part
}

// tasksOf returns how many tasks some files have.
func tasksOf(files [][]source.Groups) (n int) {
	for _, parts := range files {
		n += max(len(parts), 1)
	}
	return n
}

// inputTasks is how many tasks of Map read inputs. Those that read exports come after them.
func (j *Job) inputTasks() int { return tasksOf(j.plan.Reading.Parts) }

// MapTasks is how many tasks Map has: one for each part of an input or export.
func (j *Job) MapTasks() int { return j.inputTasks() + tasksOf(j.linksParts()) }

func (j *Job) linksParts() (files [][]source.Groups) {
	for i := range j.plan.Links {
		files = append(files, j.plan.Links[i].Parts)
	}
	return files
}

// whole puts together what the tasks of Map tell of inputs.
func (j *Job) whole(maps []mapped) (list []manifest.Input, err error) {
	for _, parts := range j.plan.Reading.Parts {
		first := &maps[0]
		all := first.Input
		for _, m := range maps[1:max(len(parts), 1)] {
			if m.Stamp != first.Stamp {
				return nil, fmt.Errorf("%s was changed while tasks of map read it, or is another file on some machine: %s", all.Name, anew)
			}
			all.Records += m.Input.Records
			all.BlankRows += m.Input.BlankRows
		}
		list, maps = append(list, all), maps[max(len(parts), 1):]
	}
	return list, nil
}
