package rules

import "time"

// parseUTC reads a date, or a time of RFC 3339 in UTC and whole seconds, of the years 1 to 9999 as
// Unix time. So nearly all lists have their times, and these are read three times as fast as by
// package time.
func parseUTC(text []byte) (seconds int64, ok bool) {
	clock := 0
	switch len(text) {
	case len(time.DateOnly):
	case len("2006-01-02T15:04:05Z"):
		hour, minute, second := twoDigits(text[11:]), twoDigits(text[14:]), twoDigits(text[17:])
		if text[10] != 'T' || text[13] != ':' || text[16] != ':' || text[19] != 'Z' || hour > 23 || minute > 59 || second > 59 {
			return 0, false
		}
		clock = (hour*60+minute)*60 + second
	default:
		return 0, false
	}
	year, month, day := 100*twoDigits(text)+twoDigits(text[2:]), twoDigits(text[5:]), twoDigits(text[8:])
	if text[4] != '-' || text[7] != '-' || year < 1 || year > 9999 || month < 1 || month > 12 {
		return 0, false
	}
	before, days := daysBefore[month-1], daysBefore[month]-daysBefore[month-1]
	if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		switch {
		case month == 2:
			days++
		case month > 2:
			before++
		}
	}
	if day < 1 || day > days {
		return 0, false
	}
	year--
	days = 365*year + year/4 - year/100 + year/400 + before + day - 1
	return year1 + 86400*int64(days) + int64(clock), true
}

// daysBefore is the number of days before each month of a year that is no leap year, and after it.
var daysBefore = [...]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365}

// twoDigits returns the number with which a text begins; more than any if that is none.
func twoDigits(text []byte) int {
	tens, ones := text[0]-'0', text[1]-'0'
	if tens > 9 || ones > 9 {
		return 1 << 20
	}
	return 10*int(tens) + int(ones)
}
