package stage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/zeebo/xxh3"
)

// An engine (package beam) does the tasks, and the exchange between Map and Reduce: Map hands it chunks of
// rows and links for a shard, and Reduce takes all chunks of the shard, in any order.
//
//	MapTo ──► chunks of a shard ──► ReduceFrom     ApplyTo
//	  └──────────────── reports ──────┴───────────────┴──► WriteList ──► AcceptList
//
// Each task returns the name of its report. One more task writes a list of those of the attempts that the
// engine counts, and the process that drives the engine publishes no others. Settle and Commit are done
// there.

// Emit hands a chunk for a shard to an engine, which owns it from then on.
type Emit func(shard int, chunk []byte) error

// The first byte of a chunk says what it has.
const (
	ofRows  = 'r'
	ofLinks = 'l'
)

// chunkBytes is about how large a chunk becomes: it is held by each stage of an engine.
const chunkBytes = 64 << 10

// chunks write the stretches of an exchange as chunks, each with a piece of a stretch:
//
//	what it has 1 | workspace, unless the piece begins with one | piece
type chunks struct {
	emit      Emit
	of        byte
	all       bool // shards without rows get a chunk, too: they are to be reduced
	shard     int
	sent      int // chunks of the shard
	workspace []byte
	chunk     []byte
}

// Write takes a record, or a workspace and a record.
func (c *chunks) Write(p []byte) (int, error) {
	if p[0] == 0 {
		length, n := binary.Uvarint(p[1:])
		c.workspace = append(c.workspace[:0], p[1+n:][:length]...)
	}
	if len(c.chunk) == 0 {
		c.chunk = append(c.chunk, c.of)
		if p[0] != 0 {
			c.chunk = appendMark(c.chunk, c.workspace)
		}
	}
	if c.chunk = append(c.chunk, p...); len(c.chunk) < chunkBytes {
		return len(p), nil
	}
	return len(p), c.send()
}

func (c *chunks) send() error {
	chunk := bytes.Clone(c.chunk)
	c.chunk, c.sent = c.chunk[:0], c.sent+1
	return c.emit(c.shard, chunk)
}

// next ends the stretch of a shard.
func (c *chunks) next() (err error) {
	if len(c.chunk) == 0 && c.sent == 0 && c.all {
		c.chunk = append(c.chunk, c.of)
	}
	if len(c.chunk) > 0 {
		err = c.send()
	}
	c.shard, c.sent = c.shard+1, 0
	return err
}

// A feed hands over what Map made for a shard: pieces of stretches, valid during the call.
type feed func(take func(of byte, stretch []byte) error) error

// files feeds from the files of Map.
func (j *Job) files(shard int) feed {
	return func(take func(of byte, stretch []byte) error) error {
		maps, err := accepted[mapped](j, "map", upTo(j.inputTasks()))
		if err != nil {
			return err
		}
		list := inOrder(maps)
		if _, err := j.whole(list); err != nil {
			return err
		}
		links, err := j.links()
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Rows.Name == "" {
				return errNoEngine
			}
			if err := j.feedStretch(m.Rows, shard, ofRows, take); err != nil {
				return err
			}
		}
		for _, l := range links {
			if err := j.feedStretch(l.Rows, shard, ofLinks, take); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j *Job) feedStretch(f File, shard int, of byte, take func(of byte, stretch []byte) error) error {
	data, err := j.stretch(f, shard)
	if err != nil {
		return err
	}
	return take(of, data)
}

// again feeds what Reduce got: from what it kept, if that came from an engine.
func (j *Job) again(shard int) feed {
	return func(take func(of byte, stretch []byte) error) error {
		told, err := accepted[reduced](j, "reduce", []int{shard})
		if err != nil {
			return err
		}
		if kept := told[shard].Kept; kept.Name != "" {
			return j.kept(kept, take)
		}
		return j.files(shard)(take)
	}
}

// kept feeds from a file of a keeper.
func (j *Job) kept(kept File, take func(of byte, stretch []byte) error) error {
	f, err := os.Open(j.path(kept.Name))
	if err != nil {
		return err
	}
	defer f.Close()
	err = readFrames(bufio.NewReaderSize(f, 256<<10), kept.Size, func(chunk []byte) error { return take(chunk[0], chunk[1:]) })
	return j.unusable(kept, err)
}

var errNoEngine = errors.New("an engine had the rows of this plan: have it do all tasks again, or " + anew)

// A keeper writes chunks to a file that Apply reads, as frames:
//
//	length 4 | XXH3 of the chunk 8 | chunk
//
// Numbers are little-endian.
type keeper struct {
	*file
	head [12]byte
}

func (k *keeper) keep(chunk []byte) error {
	binary.LittleEndian.PutUint32(k.head[:], uint32(len(chunk)))
	binary.LittleEndian.PutUint64(k.head[4:], xxh3.Hash(chunk))
	_, err := k.Write(k.head[:])
	if err == nil {
		_, err = k.Write(chunk)
	}
	return err
}

var errDamaged = errors.New("it is damaged")

// readFrames visits the chunks in so many bytes, each valid during the call.
func readFrames(r io.Reader, size int64, visit func(chunk []byte) error) error {
	var head [12]byte
	var chunk []byte
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		length := int(binary.LittleEndian.Uint32(head[:]))
		if int64(length) > size {
			return errDamaged
		}
		chunk = slices.Grow(chunk[:0], length)[:length]
		if _, err := io.ReadFull(r, chunk); err != nil {
			return err
		}
		if length == 0 || xxh3.Hash(chunk) != binary.LittleEndian.Uint64(head[4:]) {
			return errDamaged
		}
		if err := visit(chunk); err != nil {
			return err
		}
	}
}

// ReduceFrom does Reduce with the chunks that an engine has of the shard; next ends with io.EOF. It keeps
// them for Apply, and returns the name of the report.
func (j *Job) ReduceFrom(ctx context.Context, n int, next func() ([]byte, error)) (reported string, err error) {
	if err := checkTask("reduce", n, j.Shards()); err != nil {
		return "", err
	}
	a := j.begin("reduce", n)
	defer func() { a.ended(err) }()
	f, name, err := a.create(".chunks")
	if err != nil {
		return "", err
	}
	k, told := keeper{file: f}, reduced{}
	return j.reduce(ctx, a, func(take func(of byte, stretch []byte) error) (err error) {
		defer func() { told.Kept, err = f.written(name, err) }()
		for {
			chunk, err := next()
			if err == io.EOF {
				return nil
			}
			if err == nil && (len(chunk) == 0 || chunk[0] != ofRows && (chunk[0] != ofLinks || len(j.plan.Links) == 0)) {
				err = errDamaged
			}
			if err == nil {
				err = errors.Join(k.keep(chunk), take(chunk[0], chunk[1:]))
			}
			if err != nil {
				return fmt.Errorf("a chunk of shard %d: %w", n, err)
			}
		}
	}, &told)
}

// Relative reports whether inputs or exports have names that are meant in the working directory, in which
// then all tasks must be done.
func (j *Job) Relative() bool {
	return slices.ContainsFunc(j.run.Inputs, func(in manifest.Input) bool { return !filepath.IsAbs(string(in.Name)) }) ||
		slices.ContainsFunc(j.plan.Links, func(l Links) bool { return !filepath.IsAbs(l.Name) })
}

// Amended returns the shards that Settle has amended, in order: those are the tasks of Apply.
func (j *Job) Amended() ([]int, error) {
	amended, err := j.amended(func(int) bool { return true })
	return slices.Sorted(maps.Keys(amended)), err
}

// listExt is that of a list of reports.
const listExt = ".list"

// WriteList writes the names of the reports of attempts that an engine counts. The list is known by a name
// that the process which drives the engine makes for each job of it; several attempts may write it.
func (j *Job) WriteList(name string, reports []string) error {
	slices.Sort(reports)
	text := strings.Join(reports, "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	return writeWhole(j.path(fmt.Sprintf("%s/engine/%s-%s%s", work, name, j.attempt(), listExt)), func(w io.Writer) error {
		_, err := io.WriteString(w, text+hex.EncodeToString(sum[:])+"\n")
		return err
	})
}

// AcceptList has, of the stages that are in a list, only the attempts of this list count. If several
// attempts wrote it, it takes one.
func (j *Job) AcceptList(name string) error {
	dir := j.path(work + "/engine")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), name+"-") || !strings.HasSuffix(entry.Name(), listExt) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err == nil {
			err = j.accept(string(text))
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", entry.Name(), err)
		}
		return err
	}
	return fmt.Errorf("the engine finished, but its list of attempts is not in %s: was the job cancelled? Is that on a disk that all workers share?", dir)
}

func (j *Job) accept(text string) error {
	at := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	if sum := sha256.Sum256([]byte(text[:at])); text[at:] != hex.EncodeToString(sum[:])+"\n" {
		return errDamaged
	}
	if j.counted == nil {
		j.counted = map[string]map[string]bool{}
	}
	listed := map[string]map[string]bool{}
	for _, report := range strings.Fields(text[:at]) {
		stage := path.Base(path.Dir(report))
		if listed[stage] == nil {
			listed[stage] = map[string]bool{}
		}
		listed[stage][report] = true
	}
	maps.Copy(j.counted, listed)
	return nil
}

// counts reports whether an attempt counts, of which it has the report.
func (j *Job) counts(stage, report string) bool {
	of := j.counted[stage]
	return of == nil || of[report]
}
