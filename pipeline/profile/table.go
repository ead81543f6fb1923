package profile

import (
	"cmp"
	"strings"
)

// An entry is a profile as it is written below: lists are joined by commas, and a column stands
// after its role as ParseColumn takes it.
type entry struct {
	name, product            string
	learned                  []Learned
	header, optional, column string

	format, document, beside string
	tags                     string // ",", if it is empty
	batch, null              bool
	members, every, alone    bool
	without                  string
}

// table has all profiles, those of one product together.
var table = profiles([]entry{
	{
		name: "bitly", product: "Bitly, CSV", learned: []Learned{Told},
		header: "long_url,custom_bitlink", optional: "title,archived,tags,created_at",
		column: "url=long_url,code=path(custom_bitlink),title=title,archived=archived,tags=tags,created_at=created_at",
	}, {
		name: "bitly-dashboard", product: "Bitly, CSV of the dashboard", learned: []Learned{Told},
		header: "Bitlink,Title,Long URL,Tags", optional: "Created,Total Clicks,Campaign",
		column: "url=Long URL,code=path(Bitlink),title=Title,tags=Tags,created_at=Created,clicks=Total Clicks",
	}, {
		name: "bitly-links", product: "Bitly, CSV of today's dashboard", learned: []Learned{Told},
		header: "Link,Custom Link,Destination URL", optional: "Title,Created,Tags",
		column: "url=Destination URL,code=path(Link),code=path(Custom Link),title=Title,tags=Tags,created_at=Created",
		every:  true,
	}, {
		name: "bitly-gov", product: "Bitly, CSV of 1.USA.gov", learned: []Learned{Seen},
		header: "short_domain,hash,long_url,created",
		column: "url=long_url,code=hash,domain=short_domain,created_at=created",
	}, {
		name: "bitly-api", product: "Bitly, JSON of the API", learned: []Learned{Seen},
		header: "id,custom_bitlinks,long_url", optional: "link,title,archived,tags,created_at,deeplinks",
		column:   "url=long_url,code=path(id),code=list(path(custom_bitlinks)),title=title,archived=archived,targets=deeplinks,tags=tags,created_at=created_at",
		document: "links", beside: "pagination",
	}, {
		name: "bulk", product: "bulk export", learned: []Learned{Read},
		header: "workspace_id,short_code,kind,canonical_url",
		optional: "original_url,url_key,base_key,attrs,title,tags,clicks,attrs_created_at,attrs_avg_redirect_ms,expires_at,max_uses,access_count,avg_redirect_ms," +
			"link_type,owner_id,ref,status,marked_at,run_id,created_at,updated_at,changed_run,change",
		column: "url=original_url,url=canonical_url,code=short_code,workspace=workspace_id,kind=kind,title=title,tags=tags," +
			"created_at=attrs_created_at,clicks=clicks,clicks=access_count,avg_redirect_ms=attrs_avg_redirect_ms,avg_redirect_ms=avg_redirect_ms,expires_at=expires_at,archived=status,stored_at=created_at",
		members: true,
	}, {
		name: "cloudshortener", product: "cloudshortener", learned: []Learned{Read},
		header: "original_url|target,shortcode,expires_at|expiry", optional: "hits", // of which so many are left this month
		column: "url=original_url,url=target,code=shortcode,expires_at=expires_at,expires_at=expiry",
		alone:  true,
	}, {
		name: "drupal", product: "Drupal Short URL", learned: []Learned{Documented},
		header: "slug,destination,slug_mode,label,langcode,redirect_status,domain",
		column: "url=destination,code=slug,domain=domain,title=label,redirect_code=redirect_status",
	}, {
		name: "dub", product: "Dub, older CSV", learned: []Learned{Read},
		header: "link,url,clicks|createdAt|updatedAt|archived", optional: "id,tags,clicks,createdAt,updatedAt,archived",
		column: "url=url,code=path(link),tags=tags,created_at=createdAt,clicks=clicks,archived=archived",
		tags:   ", ",
	}, {
		name: "dub-api", product: "Dub, JSON of the API", learned: []Learned{Documented},
		header: "domain,key,url,shortLink,expiresAt",
		optional: "id,externalId,tenantId,programId,partnerId,trackConversion,archived,expiredUrl,disabledAt,password,proxy,title,description,image,video,rewrite,doIndex," +
			"ios,android,geo,geo.*,testVariants,publicStats,tags,tagId,comments,qrCode,utm_source,utm_medium,utm_campaign,utm_term,utm_content,folderId,userId,user,user.*," +
			"workspaceId,projectId,clicks,lastClicked,leads,sales,saleAmount,createdAt,updatedAt",
		column: "url=url,code=key,domain=domain,title=title,tags=tags,created_at=createdAt,clicks=clicks,password=password,archived=archived,archived=disabledAt," +
			"expires_at=expiresAt,targets=ios,targets=android,targets=geo,targets=geo.*,targets=testVariants",
	}, {
		name: "dub-labels", product: "Dub, CSV with labels", learned: []Learned{Told},
		header: "Short link,Destination URL", optional: "Clicks,Created at,Updated at,Tags,Archived",
		column: "url=Destination URL,code=path(Short link),tags=Tags,created_at=Created at,clicks=Clicks,archived=Archived",
		tags:   ", ",
	}, {
		name: "gogovmy", product: "GoGovMY (of Dub)", learned: []Learned{Seen},
		header: "id,domain,key,url,archived,expiresAt,passwordEnabledAt,banned,clicks,lastClicked,createdAt,updatedAt,tags,shortLink", optional: "title",
		column: "url=url,code=key,domain=domain,title=title,tags=tags,created_at=createdAt,clicks=clicks,password=passwordEnabledAt," +
			"archived=archived,archived=banned,expires_at=expiresAt",
		null: true,
	}, {
		name: "kutt", product: "Kutt, JSON of the API", learned: []Learned{Read},
		header: "address,target,banned,visit_count", optional: "id,link,description,domain,password,expiration,expire_in,created_at,updated_at",
		column: "url=target,code=address,domain=domain,title=description,created_at=created_at,clicks=visit_count," +
			"password=password,archived=banned,expires_at=expire_in,expires_at=expiration",
		document: "data", beside: "limit,skip,total",
	}, {
		name: "polr", product: "Polr, table", learned: []Learned{Told},
		header: "short_url,long_url,ip,clicks,creator,secret_key", optional: "is_disabled,created_at",
		column: "url=long_url,code=short_url,created_at=created_at,clicks=clicks,password=secret_key,archived=is_disabled,ip=ip",
	}, {
		name: "rebrandly", product: "Rebrandly", learned: []Learned{Documented},
		header: "slashtag,destination,shortUrl", optional: "id,domain,domain.fullName,title,createdAt,clicks,status",
		column: "url=destination,code=slashtag,domain=domain,domain=domain.fullName,domain=shortUrl,title=title,created_at=createdAt,clicks=clicks,archived=status",
	}, {
		name: "rebrandly-csv", product: "Rebrandly, CSV", learned: []Learned{Told},
		header: "slashtag,destination,domainName", optional: "title,description,tags",
		column: "url=destination,code=slashtag,domain=domainName,title=title,tags=tags",
	}, {
		name: "redis-links", product: "Short URL Generator (Go, Redis)", learned: []Learned{Read},
		header: "originalURL,shortURL,maxUsage,currentUsage", optional: "expiry,active,createdAt,updatedAt",
		column: "url=originalURL,code=shortURL,expires_at=expiry,max_uses=maxUsage,clicks=currentUsage,enabled=active,created_at=createdAt",
	}, {
		name: "redirection", product: "WordPress Redirection, CSV", learned: []Learned{Read},
		header: "source,target,regex,code,type,hits,title", optional: "status,match",
		column: "url=target,code=trim(source),title=title,clicks=hits,archived=status,regex=regex,redirect_code=code",
	}, {
		name: "redirection-json", product: "WordPress Redirection, JSON", learned: []Learned{Documented},
		header: "url,action_code,action_data.url,regex", optional: "id,match_url,enabled,hits,title",
		column:   "url=action_data.url,code=trim(url),title=title,clicks=hits,enabled=enabled,regex=regex,redirect_code=action_code",
		document: "redirects", beside: "plugin,groups",
	}, {
		name: "shlink", product: "Shlink, standard CSV", learned: []Learned{Seen, Read},
		header: "Long URL,Tags,Short code|Short URL,Title", optional: "Domain,Short code,Short URL",
		column: "url=Long URL,code=Short code,code=path(Short URL),domain=Domain,title=Title,tags=Tags",
		tags:   "|",
	}, {
		name: "shlink-api", product: "Shlink, JSON of the API", learned: []Learned{Read},
		header: "shortCode,shortUrl,longUrl,dateCreated,title",
		optional: "visitsSummary.total,visitsSummary.nonBots,visitsSummary.bots,visitsCount,tags,meta,meta.validSince,meta.validUntil,meta.maxVisits," +
			"domain,crawlable,forwardQuery,hasRedirectRules,deviceLongUrls.*",
		column: "url=longUrl,code=shortCode,domain=domain,title=title,tags=tags,created_at=dateCreated,clicks=visitsSummary.total,clicks=visitsCount," +
			"starts_at=meta.validSince,expires_at=meta.validUntil,max_uses=meta.maxVisits,targets=hasRedirectRules,targets=deviceLongUrls.*",
		document: "shortUrls.data", beside: "pagination",
	}, {
		name: "shlink-web", product: "Shlink, CSV of the web client", learned: []Learned{Seen, Read},
		header: "createdAt,domain,shortCode,shortUrl,longUrl,title,tags,visits",
		column: "url=longUrl,code=shortCode,domain=domain,title=title,tags=tags,created_at=createdAt,clicks=visits",
		tags:   "|",
	}, {
		name: "short-link", product: "URL shortener in Java, table short_link", learned: []Learned{Read},
		header:   "workspace_id,short_code,original_url,normalized_url",
		optional: "id,title,created_by,created_at,updated_at,expires_at,is_active,click_count,is_deleted,metadata,max_clicks",
		column: "url=original_url,url=normalized_url,code=short_code,workspace=workspace_id,title=title,created_at=created_at,clicks=click_count,expires_at=expires_at," +
			"max_uses=max_clicks,enabled=is_active,archived=is_deleted",
		without: "canonical_url",
	}, {
		name: "short-urls", product: "Shortener of temporary links, table short_urls", learned: []Learned{Read},
		header: "short_code,original_url,link_type,status,user_id|redirect_count", optional: "id,user_id,expires_at,redirect_count,avg_redirect_ms,created_at,updated_at",
		column: "url=original_url,code=short_code,archived=status,expires_at=expires_at,clicks=redirect_count,avg_redirect_ms=avg_redirect_ms,created_at=created_at," +
			"link_type=link_type,owner_id=user_id",
		without: "canonical_url",
	}, {
		name: "shortio", product: "Short.io, TSV", learned: []Learned{Seen},
		header: "id,short_url,original_url,title,path,tags,folder_name", optional: "folder_id,android_url,iphone_url,utm_source,utm_medium,utm_campaign,utm_term,utm_content," +
			"clicks_limit,cloaking,password,password_contact,ttl,expire_at,expire_url,redirect_type,split_url,split_percent,skip_qs,archived,has_password,created_at,updated_at,owner",
		column: "url=original_url,code=path,domain=short_url,title=title,tags=tags,created_at=created_at,password=password,password=has_password,archived=archived," +
			"expires_at=expire_at,max_uses=clicks_limit,targets=android_url,targets=iphone_url,targets=split_url,redirect_code=redirect_type",
	}, {
		name: "shortio-dashboard", product: "Short.io, CSV of the dashboard", learned: []Learned{Told},
		header: "OriginalURL,Path,Title,Tags,CreatedAt",
		column: "url=OriginalURL,code=Path,title=Title,tags=Tags,created_at=CreatedAt",
	}, {
		name: "sink", product: "Sink", learned: []Learned{Read},
		header: "url,slug,createdAt,updatedAt", optional: "id,comment,expiration,title,description,image,password,tags,geo,geo.*,apple,google",
		column: "url=url,code=slug,title=title,tags=tags,created_at=createdAt,password=password,expires_at=expiration," +
			"targets=geo,targets=geo.*,targets=apple,targets=google",
		document: "links", beside: "version,exportedAt,count",
	}, {
		name: "tinyurl", product: "TinyURL", learned: []Learned{Documented},
		header: "alias,url,domain,tags,created_at,expires_at",
		column: "url=url,code=alias,domain=domain,tags=tags,created_at=created_at,expires_at=expires_at",
	}, {
		name: "urlteam", product: "URLTeam, BEACON", learned: []Learned{Seen, Read},
		column: "url=url,code=code", format: "beacon",
	}, {
		name: "yourls", product: "YOURLS, table", learned: []Learned{Read, Told},
		header: "keyword,url", optional: "title,timestamp,ip,clicks",
		column: "url=url,code=keyword,title=title,created_at=timestamp,clicks=clicks,ip=ip",
		batch:  true,
	}, {
		name: "yourls-csv", product: "YOURLS, CSV of the plugin", learned: []Learned{Read},
		header: "source,target,hits",
		column: "url=target,code=trim(source),clicks=hits",
	},
})

// profiles makes profiles of the entries.
func profiles(entries []entry) (list []*Profile) {
	for _, e := range entries {
		p := &Profile{
			Name: e.name, Product: e.product, Learned: e.learned, Header: split(e.header), Optional: split(e.optional),
			Format: e.format, Document: e.document, Beside: split(e.beside), Batch: e.batch, Null: e.null, Members: e.members, Every: e.every, Alone: e.alone, Without: split(e.without), Tags: cmp.Or(e.tags, ","),
			known: map[string]bool{},
		}
		for _, text := range split(e.column) {
			role, name, _ := strings.Cut(text, "=")
			c := ParseColumn(name)
			c.Role = Role(role)
			p.Columns = append(p.Columns, c)
		}
		for _, name := range split(strings.ReplaceAll(e.header+","+e.optional, "|", ",")) {
			p.known[Fold(name)] = true
		}
		list = append(list, p)
	}
	return list
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
