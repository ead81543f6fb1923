// Runs SQL statements, or none, in an in-memory DuckDB.
//
//   node duckdb.mjs PACKAGE_DIRECTORY THREADS SQL…
import { createRequire } from "node:module";
import { join } from "node:path";

const [directory, threads, ...statements] = process.argv.slice(2);
const duckdb = createRequire(join(directory, "package.json"))("@duckdb/node-api");
const instance = await duckdb.DuckDBInstance.create(":memory:", { threads });
const connection = await instance.connect();
for (const sql of statements) await connection.run(sql);
connection.closeSync();
