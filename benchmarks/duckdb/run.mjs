// Runs SQL statements in an in-memory DuckDB.
//
//   node run.mjs PACKAGE_FOLDER THREADS SQL…
//
// With no SQL it prints the version.
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, threads, ...statements] = process.argv.slice(2);
const duckdb = createRequire(join(folder, "package.json"))("@duckdb/node-api");
if (statements.length === 0) {
  console.log(duckdb.version());
} else {
  const instance = await duckdb.DuckDBInstance.create(":memory:", { threads });
  const connection = await instance.connect();
  for (const sql of statements) await connection.run(sql);
  connection.closeSync();
}
