// Makes the fixtures of this folder: node make.mjs FOLDER (README.md has the versions).
import { DuckDBInstance } from '@duckdb/node-api';
import * as arrow from 'apache-arrow';
import pl from 'nodejs-polars';
import parquet from 'parquet-wasm/node';
import { writeFileSync } from 'node:fs';
const out = process.argv[2];
const db = await (await DuckDBInstance.create(':memory:')).connect();
const query = `SELECT 'http://example.com/' || i AS url, CASE WHEN i % 3 = 0 THEN NULL ELSE 'team ' || (i % 5) END AS team,
  i AS n, i::UBIGINT AS u, (i / 4.0)::DOUBLE AS f, (i - 3)::DECIMAL(30,2) AS price, DATE '1970-01-01' - i::INTEGER AS day,
  TIMESTAMP '2024-02-29 01:02:03.5' + INTERVAL (i) SECOND AS at, i % 2 = 0 AS even,
  '00112233-4455-6677-8899-aabbccddeeff'::UUID AS id, {'by': {'name': CASE WHEN i = 2 THEN NULL ELSE 'me' END}} AS made, ['a','b'] AS tags,
  TIME '01:02:03' AS clock, '\\xFF\\x00'::BLOB AS raw
  FROM range(7) t(i)`;
const untagged = `SELECT * EXCLUDE tags FROM (${query})`; // V2 with a list fails in this version
for (const [name, query_, options] of [['v1', query, "PARQUET_VERSION V1"], ['v2', untagged, "PARQUET_VERSION V2, COMPRESSION zstd"]]) {
  await db.run(`COPY (${query_}) TO '${out}/duckdb-${name}.parquet' (FORMAT parquet, ${options})`);
}
const dict = (values) => arrow.vectorFromArray(values, new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8()));
const table = new arrow.Table({
  url: arrow.vectorFromArray(['http://example.com/0', 'http://example.com/1', 'http://example.com/2'], new arrow.Utf8()),
  team: dict(['red', null, 'red']),
  large: arrow.vectorFromArray(['x', '', null], new arrow.LargeUtf8()),
  n: arrow.vectorFromArray([1, -2, null], new arrow.Int32()),
});
writeFileSync(`${out}/js.arrow`, arrow.tableToIPC(table, 'file'));
writeFileSync(`${out}/js.arrows`, arrow.tableToIPC(table, 'stream'));
const old = new arrow.RecordBatchStreamWriter({ writeLegacyIpcFormat: true });
old.writeAll(table);
writeFileSync(`${out}/js-old.arrows`, old.toUint8Array(true));
const frame = pl.DataFrame({ url: ['http://example.com/0', 'http://example.com/1', 'http://example.com/2'], team: ['red', null, 'red'], n: [0, -1, -2] });
frame.writeIPC(`${out}/polars.arrow`, { compression: 'lz4' });
const even = [...Array(40).keys()].map((i) => (i === 1 ? null : i < 20 || i % 2 === 0)); // true as a run, then bits
const flags = new arrow.Table({ url: arrow.vectorFromArray(even.map((_, i) => `http://example.com/${i}`), new arrow.Utf8()), even: arrow.vectorFromArray(even, new arrow.Bool()) });
writeFileSync(`${out}/rust-v2.parquet`, parquet.writeParquet(parquet.Table.fromIPCStream(arrow.tableToIPC(flags, 'stream')),
  new parquet.WriterPropertiesBuilder().setWriterVersion(parquet.WriterVersion.V2).build()));
