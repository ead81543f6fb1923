package canon

import (
	"strings"
	"testing"
)

// The lists are invented, in the style of links that people shorten.

var ordinaryURLs = strings.Split(strings.TrimSpace(`
https://www.example.com/blog/2023/04/how-we-cut-our-cloud-bill-in-half-without-tears
https://news.example.org/world/europe/article-1182736-budget-vote-delayed-until-spring
https://shop.example.net/catalog/outdoor/tents/alpine-pro-2?color=green&size=2&ref=home
https://docs.example.dev/guide/getting-started/installation-on-linux#prerequisites
http://www.council.example.uk/residents/bins-and-recycling/collection-days/calendar.pdf
https://github.example/linkforge/bulk/pull/482/files?diff=split&w=1
https://video.example.com/watch?list=PL0a7f3c9&t=73&v=dQw4w9WgXcQ
https://www.example.com/campaign/spring?utm_campaign=sale&utm_medium=email&utm_source=news
https://maps.example.com/place/Old+Town+Hall/@52.5170365,13.3888599,17z
https://wiki.example.org/wiki/Deferred_acceptance_algorithm_(matching_theory)
http://data.gov.example/dataset/road-traffic-counts-2019/resource/5f1d3c2a-7c1b-4f0e
https://careers.example.com/jobs/search?department=engineering&location=berlin&page=2
https://www.example.edu/~smith/papers/sorting-with-bounded-memory-revised.pdf
https://support.example.com/hc/en-us/articles/360012345678-Resetting-your-password
https://open.example.fm/playlist/37i9dQZF1DXcBWIGoYBM5M?si=4f8a2c
http://www.museum.example/exhibitions/2017/faces-of-the-river/opening-hours/
https://api.example.com/v2/accounts/8812/transactions?from=2024-01-01&limit=100&to=2024-03-31
https://www.example.co.uk/news/uk-politics-61234567
https://cdn.example.net/assets/img/products/000123/large/front-view-1200x1200.webp
https://forum.example.com/t/why-does-my-build-take-twenty-minutes/18822/14
https://calendar.example.com/event?action=TEMPLATE&dates=20240501T090000Z&text=Standup
https://www.tickets.example/events/berlin/philharmonie/season-opening-concert-2024
https://app.example.io/projects/7f2c/boards/19/cards/4401?tab=comments
http://blog.example.net/2011/08/17/a-short-history-of-the-query-string/
https://store.example.com/en-gb/products/wireless-headphones-series-5-black
https://pay.example.com/checkout/session/cs_live_a1b2c3d4e5f6g7h8i9j0k1l2m3n4
https://www.example.org/donate?amount=25&campaign=winter-appeal&currency=EUR
https://photos.example.com/album/AF1QipN5zXc/photo/AF1QipOq8r2?key=dGhpcyBpcyBub3Q
https://en.encyclopedia.example/wiki/Base58
https://www.health.example/conditions/seasonal-flu/symptoms-and-treatment
https://lists.example.org/archives/list/users/2020-November/004512.html
https://www.example.com/search?q=bounded+memory+external+sort&source=toolbar
https://travel.example.com/hotels/portugal/lisbon/alfama?checkin=2024-06-01&guests=2
http://static.example.gov/publications/annual-report-2014-15-accessible-version.pdf
https://play.example.com/store/apps/details?hl=en&id=org.example.reader
https://www.example.com/r/programming/comments/8xq2n1/what_i_learned_from_a_rewrite/
https://mail.example.com/unsubscribe/3f9d2b77-0a51-4f22-9a33-0b6b1c9e7a10
https://status.example.com/incidents/zk3m2v9x1q
https://www.bank.example/personal/savings/easy-access-account/rates-and-charges
https://meet.example.com/abc-defg-hij
https://learn.example.com/courses/statistics-101/lectures/7?autoplay=1&start=300
http://www.parliament.example/business/committees/transport/inquiries/rail-fares/
https://podcasts.example.com/show/on-the-line/id1469394914?i=1000650000000
https://www.example.com/products/12345/reviews?page=3&sort=helpful#review-99
https://archive.example.org/details/cihm_46023/page/n15/mode/2up
https://registry.example.io/package/left-pad/versions/1.3.0
https://weather.example.com/forecast/hourly/53.55,9.99?units=metric
https://www.news-site.example/2024/02/29/technology/leap-day-bugs-again.html?smid=url-share
https://forms.example.com/d/e/1FAIpQLSc8d3bQ/viewform?usp=sf_link
https://www.example.com/de/ueber-uns/presse/pressemitteilungen/2022/neue-standorte
https://code.example.org/project/browse/src/main/java/Parser.java?at=refs%2Fheads%2Fmaster
https://www.example.com/articles/r%C3%A9sum%C3%A9-writing-tips
https://drive.example.com/file/d/1zQx8s7y6w5v4u3t2r1q0p/view?usp=sharing
https://recipes.example.com/vegetarian/main-courses/roasted-squash-risotto
http://www.library.example/search/catalogue?author=le+guin&format=book&sort=year
https://www.realestate.example/for-sale/2-bedroom-flat-riverside-quarter-88231
https://social.example/@reader/109876543210987654
https://tracker.example.com/issues/BULK-1027?filter=open&view=board
https://www.school.example/parents/term-dates/2023-2024
https://downloads.example.org/releases/4.2.1/bulk-4.2.1-linux-amd64.tar.gz
https://www.airline.example/booking/manage?lang=en&locator=X7K2PQ
https://research.example.edu/groups/databases/publications/2019/range-partitioning.html
https://www.example.com/newsletter/issue-148?utm_medium=email&utm_source=weekly
https://events.example.org/conf/2024/schedule/day-2/talks/canonical-urls-in-practice
`), "\n")

var dirtyURLs = strings.Split(strings.TrimSpace(`
HTTP://WWW.Example.COM/Blog/2023/04/How-We-Cut-Our-Cloud-Bill-In-Half
https://news.example.org:443/world/europe/article-1182736-budget-vote-delayed
https://shop.example.net/catalog/tents/alpine-pro-2?size=2&color=green&ref=home
http://www.council.example.uk:80/residents/../business/bins/./collection-days/calendar.pdf
https://video.example.com/watch?v=dQw4w9WgXcQ&t=73&list=PL0a7f3c9#comments
https://www.example.com/campaign/spring/?utm_source=news&utm_medium=email&utm_campaign=sale
http://Example.com//assets//img///products/000123/front-view.webp
https://www.example.com/%7Esmith/papers/sorting%2dwith%2dbounded%2dmemory.pdf
https://code.example.org/browse/Parser.java?at=refs%2fheads%2fmaster&a=%e2%9c%93
HTTPS://API.EXAMPLE.COM:443/v2/accounts/8812/?to=2024-03-31&from=2024-01-01&limit=100
http://www.example.com:80/search?q=[bounded]&page=2&filter={open}#results
https://recipes.example.com/main courses/roasted squash
http://blog.example.net/2011/08/17/a-short-history-of-the-query-string/?replytocom=55&
https://wiki.example.org/wiki/Caf%c3%a9_(disambiguation)#See_also
http://www.Museum.example/exhibitions/2017/../2018/faces-of-the-river/
https://store.example.com/en-gb/products/headphones?variant=black|large&ref=a
`), "\n")

var idnURLs = strings.Split(strings.TrimSpace(`
https://www.bücher.example/katalog/neuheiten?seite=2
https://日本語.example/docs/start
http://STRAẞE.example/a
https://пример.example/новости/2024
`), "\n")

func benchmarkAppend(b *testing.B, p Profile, urls []string) {
	raw, size := make([][]byte, len(urls)), 0
	for i, u := range urls {
		raw[i] = []byte(u)
		size += len(u)
	}
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	b.SetBytes(int64(size / len(urls)))
	i := 0
	for b.Loop() {
		if _, err := p.Append(dst, raw[i]); err != nil {
			b.Fatal(err)
		}
		if i++; i == len(raw) {
			i = 0
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	b.Run("kind=ordinary", func(b *testing.B) { benchmarkAppend(b, Profile{}, ordinaryURLs) })
	b.Run("kind=dirty", func(b *testing.B) { benchmarkAppend(b, Profile{}, dirtyURLs) })
	b.Run("kind=idn", func(b *testing.B) { benchmarkAppend(b, Profile{}, idnURLs) })
	p := Profile{KeepFragment: true, StripParams: mustStrip("utm_*,gclid,fbclid")}
	b.Run("kind=ordinary/profile=fragment+strip", func(b *testing.B) { benchmarkAppend(b, p, ordinaryURLs) })
	b.Run("kind=dirty/profile=fragment+strip", func(b *testing.B) { benchmarkAppend(b, p, dirtyURLs) })
}
