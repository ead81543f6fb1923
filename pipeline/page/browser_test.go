package page

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// chromium returns the path of the browser. Without one the test is skipped, unless BULK_TEST_CHROMIUM is
// "require".
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("BULK_TEST_CHROMIUM") == "require" {
		t.Fatal("there is no Chromium: make chromium installs it")
	}
	t.Skip("there is no Chromium: make chromium installs it")
	return ""
}

// A visit is what a browser did with a page.
type visit struct {
	dom      string   // the document that it made
	console  []string // messages
	requests []string // that left it, but for those of the browser itself
}

// console is a message of the console in the log of the browser.
var console = regexp.MustCompile(`(?m)^.*:CONSOLE.*$`)

// own are hosts that the browser asks for itself, whatever it shows, in spite of its flags.
var own = regexp.MustCompile(`(^|\.)(google|googleapis|gstatic|googleusercontent|gvt1|gvt2|chromium|debian)\.(com|org)$|^[a-z]+$`)

// visitPage opens a file. All requests go to a proxy, which counts them.
func visitPage(t *testing.T, browser, page string) (v visit) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	must(t, os.WriteFile(file, []byte(page), 0o666))
	var mu sync.Mutex
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !own.MatchString(r.URL.Hostname()) {
			v.requests = append(v.requests, fmt.Sprint(r.Method, " ", r.URL))
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // it hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-domain-reliability",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--proxy-server="+proxy.Listener.Addr().(*net.TCPAddr).String(), "--proxy-bypass-list=<-loopback>",
		"--enable-logging=stderr", "--window-size=390,800", "--dump-dom", (&url.URL{Scheme: "file", Path: file}).String())
	cmd.Env = append(os.Environ(), "HOME="+dir) // where it may write
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	mu.Lock()
	defer mu.Unlock()
	v.dom, v.console = out.String(), console.FindAllString(said.String(), -1)
	return v
}

// A browser shows the page, also if its texts are hostile: no request leaves it, and nothing is on its
// console. That the test sees both shows another page.
func TestBrowser(t *testing.T) {
	browser := chromium(t)
	v := visitPage(t, browser, `<!DOCTYPE html><link rel=icon href=data:,><script>console.error("seen")</script><img src="http://leak.example/http"><img src="https://leak.example/https">`)
	if asked := strings.Join(v.requests, " "); len(v.console) == 0 || !strings.Contains(asked, "http://leak.example/http") || !strings.Contains(asked, "leak.example:443") {
		t.Fatalf("this test does not see what a page does: %q", v)
	}
	hostile := `"><img src=http://leak.example/x onerror=console.error(1)><script>console.error("seen")</script><link rel=stylesheet href=//leak.example/></style><style>@import "http://leak.example/css"`
	v = visitPage(t, browser, written(t, report(func(name string) string { return name + hostile })))
	if len(v.requests) > 0 || len(v.console) > 0 {
		t.Errorf("requests %q, console %q", v.requests, v.console)
	}
	for _, want := range []string{"<h1>12 links were created from 20 rows, 1 rejected.</h1>", "</footer>", `<rect class="rejected"`, "merged&quot;&gt;&lt;img"} {
		if want = html.UnescapeString(want); !strings.Contains(html.UnescapeString(v.dom), want) {
			t.Errorf("the browser has no %s", want)
		}
	}
	// On a narrow screen (no window of this browser is narrower than 500) nothing is wider than it, also a text without a place to break it.
	page := written(t, report(func(name string) string { return name + strings.Repeat("w", 500) }))
	page = strings.Replace(page, "Content-Security-Policy", "none", 1)
	v = visitPage(t, browser, strings.Replace(page, "</body>", `<script>document.body.append("too wide by "+(document.documentElement.scrollWidth-document.documentElement.clientWidth)+" of "+innerWidth)</script></body>`, 1))
	if !strings.Contains(v.dom, "too wide by 0 of 500") {
		t.Errorf("%.50s", v.dom[max(strings.LastIndex(v.dom, "too wide "), 0):])
	}
}
