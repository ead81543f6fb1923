#!/bin/sh
# with.sh spark|flink COMMAND… downloads the job server of Beam for Spark or Flink with Maven, starts it with
# an engine in the same process, and runs the command, which finds its address in BEAM_JOB_SERVER, and its
# process number in BEAM_JOB_SERVER_PID. Maven's own settings say where it downloads from, and it keeps what it
# has downloaded. All other files are in a temporary directory, which is removed in any case.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
engine=$1
shift
say() { echo "$0 $engine: $*" >&2; }
fail() { say "$*"; exit 1; }

case $engine in
spark) driver='org.apache.beam.runners.spark.SparkJobServerDriver --spark-master-url=local[2]' ;;
flink) driver='org.apache.beam.runners.flink.FlinkJobServerDriver --flink-master=[local]' ;;
*) fail 'the engine must be spark or flink' ;;
esac
for tool in java mvn; do
	command -v $tool >/dev/null || fail "NOT TESTED: there is no $tool. Install Java 17 and Maven."
done

dir=$(mktemp -d)
server=
end() {
	code=$?
	trap - EXIT
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || :
		wait "$server" 2>/dev/null || :
	fi
	rm -rf "$dir"
	exit $code
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cp "$here/$engine.xml" "$dir/pom.xml"
say 'downloading the job server, 150 to 260 MB, unless Maven has it'
(cd "$dir" && mvn -B -q -Dstyle.color=never dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir/lib") ||
	fail "NOT TESTED: Maven did not get what $engine.xml lists. Does your registry serve these versions?"

opens=
for package in lang net io nio lang.reflect text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
	opens="$opens --add-opens=java.base/java.$package=ALL-UNNAMED"
done
for package in nio.ch util.calendar security.action; do
	opens="$opens --add-opens=java.base/sun.$package=ALL-UNNAMED"
done
mkdir "$dir/tmp"
port=$((20000 + $$ % 10000 * 3))
# shellcheck disable=SC2086 # several words each
(cd "$dir" && TMPDIR="$dir/tmp" SPARK_LOCAL_IP=127.0.0.1 exec java -Xmx1g $opens -Djava.io.tmpdir="$dir/tmp" -cp "$dir/lib/*" $driver \
	--job-host=127.0.0.1 --job-port=$port --artifact-port=$((port + 1)) --expansion-port=$((port + 2)) --artifacts-dir="$dir/tmp") >"$dir/log" 2>&1 &
server=$!

code=0
BEAM_JOB_SERVER=127.0.0.1:$port BEAM_JOB_SERVER_PID=$server "$@" || code=$?
if [ $code != 0 ] || ! kill -0 "$server" 2>/dev/null; then
	say 'the end of what the job server said:'
	tail -n 30 "$dir/log" >&2
fi
kill -0 "$server" 2>/dev/null || fail 'the job server has ended by itself'
exit $code
