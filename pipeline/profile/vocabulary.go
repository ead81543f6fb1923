package profile

import "strings"

// vocabulary has the names of columns by which programs of all kinds say what a link is, by role. They
// are compared without case, blanks, underscores, hyphens, dots and marks.
var vocabulary = words(map[Role]string{
	Password: "password,passwd,hasPassword,isPassword,passwordProtected,isPasswordProtected,protected,isProtected,passwordHash,passwordEnabledAt",
	Archived: "archived,isArchived,archivedAt,disabled,isDisabled,disabledAt,banned,isBanned,bannedAt,deleted,isDeleted,deletedAt,inactive,isInactive,suspended,isSuspended,blocked,isBlocked",
	Enabled:  "enabled,isEnabled,active,isActive",
	Regex:    "regex,isRegex,regexp,isPattern",
	Targets: "ios,iosUrl,iosTarget,iphone,iphoneUrl,ipadUrl,android,androidUrl,androidTarget,mobileUrl,geo,geoTargeting,countryTargeting,deviceTargeting,targeting,targets," +
		"splitUrl,hasRedirectRules,redirectRules,testVariants,abTest,rotation",
	Expires: "expiresAt,expires,expireAt,expiresOn,expiry,expiryDate,expireDate,expiration,expirationDate,expirationTime,expiredAt,expirationAt,expireAtDatetime,validUntil,validTo,validTill,endDate,endsAt,endsOn,endTime",
	MaxUses: "maxUses,maxVisits,maxClicks,maxViews,expireAtViews,maxUsage,clickLimit,clicksLimit,limitClicks,usageLimit,useLimit,visitLimit,visitsLimit",
	Starts:  "startsAt,startsOn,startAt,startDate,startTime,validSince,validFrom,activeFrom,notBefore,publishAt,publishDate",

	Domain:    "domain,domainName,shortDomain,customDomain,brandedDomain,domainFullName",
	Title:     "title,linkTitle,label",
	Tags:      "tags,tagNames",
	CreatedAt: "createdAt,created,dateCreated,createdDate,createdOn,creationDate,creationTime,creationTimestamp,dateAdded",
	Clicks:    "clicks,totalClicks,clickCount,clicksCount,hits,visits,visitCount,visitsCount,visitsTotal,visitsSummaryTotal,redirectCount,accessCount",
	Redirect:  "redirectCode,redirectType,redirectStatus,redirectStatusCode,statusCode,httpStatus,httpStatusCode,httpCode,actionCode",

	LinkType: "linkType",
	Owner:    "ownerId",
	Ref:      "ref",
})

// others are objects that a record may have beside its link: what their members say is not said of the
// link, but for members of the role. (None has the role URL.)
var others = words(map[Role]string{
	URL:    "user,owner,creator,createdBy,author,updatedBy,domain,folder,team,group,workspace,project,organization,account,tags,tag,campaign,utm,qr,qrCode,webhook,pixel",
	Clicks: "analytics,stats,statistics,tracking",
})

func words(byRole map[Role]string) map[string]Role {
	roles := map[string]Role{}
	for role, names := range byRole {
		for _, name := range split(names) {
			roles[foldAll(name)] = role
		}
	}
	return roles
}

// foldAll is Fold, and leaves out dots and the marks of Archived?, Password: and Expires*.
func foldAll(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(".?:*", r) {
			return -1
		}
		return r
	}, Fold(name))
}

// RoleOf returns the role that a column of this name is known to have, whoever wrote the file; "":
// none. Of a member of an object in JSON, whose name is its path, the last part counts, but not where
// the object is another thing than the link. (Of what programs call a list of targets, all members
// are one.)
func RoleOf(name string) Role {
	if role, ok := vocabulary[foldAll(name)]; ok {
		return role
	}
	object, member, nested := cutLast(name)
	if !nested {
		return ""
	}
	for part := range strings.SplitSeq(object, ".") {
		if role := others[foldAll(part)]; role != "" && role != vocabulary[foldAll(member)] {
			return ""
		}
	}
	if first, _, _ := strings.Cut(name, "."); vocabulary[foldAll(first)] == Targets {
		return Targets
	}
	return vocabulary[foldAll(member)]
}

// IsStatus reports whether a column of this name is known to have redirect codes, or words for what became
// of links.
func IsStatus(name string) bool { return strings.TrimPrefix(foldAll(name), "link") == string(Status) }

// cutLast cuts a path before its last part.
func cutLast(path string) (object, member string, found bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// ParamOf returns the parameter of link rules of which a column of this name is known to be; "": of
// none.
func ParamOf(name string) Role {
	switch role := RoleOf(name); role {
	case Expires, MaxUses, LinkType, Owner, Ref:
		return role
	}
	return ""
}
