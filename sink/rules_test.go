package sink

import (
	"testing"
	"time"
)

func TestAnswer(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		rules *Rules
		want  int
	}{
		"plain": {nil, 302}, "none": {&Rules{}, 302}, "active": {&Rules{Status: Active}, 302},
		"expired": {&Rules{Status: Expired}, 410}, "deleted": {&Rules{Status: Deleted}, 404}, "paused": {&Rules{Status: "PAUSED"}, 410},
		"before": {&Rules{Expires: at.Add(1)}, 302}, "at": {&Rules{Expires: at}, 410}, "after": {&Rules{Expires: at.Add(-1), Status: Active}, 410},
		"deleted after": {&Rules{Expires: at.Add(-1), Status: Deleted}, 404},
		"fewer uses":    {&Rules{MaxUses: 5, Uses: 4}, 302}, "used up": {&Rules{MaxUses: 5, Uses: 5}, 410}, "used without limit": {&Rules{Uses: 5}, 302}, "limit of 0": {&Rules{MaxUses: Limit(0, false)}, 410}, "no limit": {&Rules{MaxUses: Limit(0, true)}, 302},
	} {
		if got := c.rules.Answer(at); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
