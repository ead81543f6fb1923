package verify

import (
	"context"

	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A deadURL is a reject because somebody had deleted its link, or all links of its URL, or because its
// link had ended. Only the store can tell whether that is so.
type deadURL struct {
	workspace string
	base, key sink.Key // url_key of the URL alone, and of the identity
	reason    rules.Reason
}

// mostDead is how many of them are held at most.
const mostDead = 1 << 12

// deadURLs are rejects whose links were dead, and about which the store is asked.
type deadURLs struct {
	store sink.Store // nil: there is none to ask
	run   *run
	codes *coder
	list  []deadURL
	since Since
}

// add takes a reject whose link was dead, unless there is no store to ask.
func (w *deadURLs) add(canonical, workspace, parts []byte, reason rules.Reason) {
	if w.store == nil {
		return
	}
	base, key := w.codes.hash(canonical, workspace, nil, 0).Key(), w.codes.hash(canonical, workspace, parts, 0).Key()
	w.list = append(w.list, deadURL{string(workspace), base, key, reason})
}

// full reports whether the store must be asked before another one is added.
func (w *deadURLs) full() bool { return len(w.list) == mostDead }

// ask asks the store about them, and counts those whose links are not dead,
// which may have changed since the run.
func (w *deadURLs) ask(ctx context.Context) error {
	for _, d := range w.list {
		links, deleted, holds := 0, 0, false
		if err := w.store.OfURL(ctx, d.workspace, d.base, func(l *sink.Stored) error {
			links++
			status := rules.StatusOf(rulesOf(l).Status)
			if status.Deleted() {
				deleted++
			}
			if l.Key == d.key || w.run.codes.mode.Keeps() { // a kept code may be that of any of them
				holds = holds || d.reason == rules.LinkDeleted && status.Deleted() || d.reason == rules.LinkEnded && !l.Rules.Live(w.run.manifest.AsOf)
			}
			return nil
		}); err != nil {
			return err
		}
		switch {
		case holds || d.reason == rules.LinkDeleted && links > 0 && deleted == links:
		case links == 0:
			w.since.Gone++
		default:
			w.since.Lives++
		}
	}
	w.list = w.list[:0]
	return nil
}
