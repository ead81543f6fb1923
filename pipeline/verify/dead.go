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

// deadURLs is how many of them are held at most.
const deadURLs = 1 << 12

// refuseDead files a reject whose link was dead, unless there is no store to ask.
func (w *rejectChecker) refuseDead(workspace, parts []byte, reason rules.Reason) {
	if w.cfg.Store == nil || w.claims == nil {
		return
	}
	base, key := w.hash(w.canon, workspace, nil, 0).Key(), w.hash(w.canon, workspace, parts, 0).Key()
	w.dead = append(w.dead, deadURL{string(workspace), base, key, reason})
}

// askDead asks the store about rejects whose links were dead, and counts those whose links are not,
// which may have changed since the run.
func (w *rejectChecker) askDead(ctx context.Context) error {
	for _, d := range w.dead {
		links, deleted, holds := 0, 0, false
		if err := w.cfg.Store.OfURL(ctx, d.workspace, d.base, func(l *sink.Stored) error {
			links++
			status := rules.StatusOf(rulesOf(l).Status)
			if status.Deleted() {
				deleted++
			}
			if l.Key == d.key || w.run.mode().Keeps() { // a kept code may be that of any of them
				holds = holds || d.reason == rules.LinkDeleted && status.Deleted() || d.reason == rules.LinkEnded && !l.Rules.Live(w.run.manifest.AsOf)
			}
			return nil
		}); err != nil {
			return err
		}
		switch {
		case holds || d.reason == rules.LinkDeleted && links > 0 && deleted == links:
		case links == 0:
			w.result.Since.Gone++
		default:
			w.result.Since.Lives++
		}
	}
	w.dead = w.dead[:0]
	return nil
}
