#!/usr/bin/env bash
# Builds apache/kafka locally where no image registry can be reached, with the contract of the official image (KAFKA_*
# variables, /etc/kafka/docker/run, /opt/kafka/bin/*.sh): Kafka's jars, a small JRE, bash and busybox.
#   build.sh TAG JARS     JARS: the folder that infra/kafka/pom.xml fills. DOCKER_HOST names the engine.
# As root on Debian: it installs busybox-static and a JDK 17 if they are missing.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
TAG=$1 JARS=$2
. "$HERE/../root-files.sh"
W=$(mktemp -d -t throughline-kafka-image.XXXXXX); trap 'rm -rf "$W"' EXIT
R=$W/root

find_jdk() { # jlink of 17 and its modules: another Java may come first on the PATH
  local javac
  for javac in "${JAVA_HOME:-/none}/bin/javac" "$(readlink -f "$(command -v javac || echo /none)")" /usr/lib/jvm/*17*/bin/javac; do
    [ -x "$javac" ] && [ -d "$(dirname "$javac")/../jmods" ] && "$javac" -version 2>&1 | grep -q '^javac 17\.' && { dirname "$(dirname "$(readlink -f "$javac")")"; return; }
  done
  return 1
}

install_if_missing busybox-static /bin/busybox
JDK=$(find_jdk) || { install_if_missing openjdk-17-jdk-headless /no/jdk; JDK=$(find_jdk); }
make_root "$R"
mkdir -p "$R"/{home/appuser,mnt/shared/config,opt,usr/lib,usr/logs}
"$JDK/bin/jlink" --module-path "$JDK/jmods" --output "$R/opt/java" --no-header-files --no-man-pages --strip-java-debug-attributes \
  --add-modules java.base,java.compiler,java.desktop,java.logging,java.management,java.management.rmi,java.naming,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.crypto.ec,jdk.management,jdk.management.agent,jdk.net,jdk.unsupported,jdk.zipfs
strip -p --strip-unneeded "$R"/opt/java/lib/server/libjvm.so 2>/dev/null || true
mapfile -t objects < <(find "$R/opt/java" -name '*.so' ! -name 'libawt*' ! -name 'libsplash*' ! -name 'libfontmanager*'; echo "$R/opt/java/bin/java")
copy_libraries "$R" "${objects[@]}"
printf 'root:x:0:0:root:/root:/bin/bash\nappuser:x:1000:1000::/home/appuser:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n' >"$R/etc/passwd"
printf 'root:x:0:\nappuser:x:1000:\nnogroup:x:65534:\n' >"$R/etc/group"
"$R/opt/java/bin/java" -XX:+UseSerialGC -Xshare:dump >/dev/null 2>&1 || true
"$R/opt/java/bin/java" -XX:+UseG1GC -Xshare:dump >/dev/null

K=$R/opt/kafka
mkdir -p "$K"/{bin,config,libs,logs} "$R"/etc/kafka/{docker,secrets} "$R/var/lib/kafka/data"
cp -p "$JARS"/*.jar "$K/libs/"
install -m755 "$HERE/kafka-run-class.sh" "$K/bin/"
cat >"$K/bin/kafka-server-start.sh" <<'S'
#!/bin/bash
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G} KAFKA_LOG_LEVEL=${KAFKA_LOG_LEVEL:-info}
exec "$(dirname "$0")/kafka-run-class.sh" kafka.Kafka "$@"
S
while read -r name class; do
  printf '#!/bin/bash\nexec "$(dirname "$0")/kafka-run-class.sh" %s "$@"\n' "$class" >"$K/bin/$name.sh"
done <"$HERE/../../kafka/tools.txt"
cp "$HERE"/etc-kafka-docker/* "$R/etc/kafka/docker/"
cp "$HERE"/etc-kafka-docker/*log4j2.yaml "$K/config/"
chmod 755 "$K"/bin/*.sh "$R/etc/kafka/docker/run"
chown -R 1000:1000 "$K" "$R/usr/logs" "$R/mnt/shared/config" "$R/home/appuser"
chown -R 1000:0 "$R/var/lib/kafka" "$R/etc/kafka"; chmod -R ug+w "$R/var/lib/kafka" "$R/etc/kafka"

CHANGES=(-c 'USER appuser' -c 'CMD ["/etc/kafka/docker/run"]' -c 'EXPOSE 9092'
  -c 'VOLUME ["/etc/kafka/secrets","/var/lib/kafka/data","/mnt/shared/config"]'
  -c 'ENV JAVA_HOME=/opt/java' -c 'ENV PATH=/opt/java/bin:/usr/local/bin:/usr/bin:/bin' -c 'ENV LANG=C.UTF-8'
  -c 'LABEL throughline.local-stand-in=true')
tar -C "$R" --exclude='./dev/*' -cf - . | docker import "${CHANGES[@]}" - "throughline/kafka-without-archives:local" >/dev/null

# A second, small layer: class-data archives for the format step and for the broker, as the official image has them.
# 12 s once, 2 s less for every broker.
C=throughline-kafka-archives-$$
trap 'docker rm -f -v "$C" >/dev/null 2>&1 || true; rm -rf "$W"' EXIT
docker run --name "$C" --network none --hostname localhost throughline/kafka-without-archives:local bash -c '
  set -e
  export KAFKA_HEAP_OPTS=-Xmx256m KAFKA_LOG_DIRS=/tmp/archives
  export STORAGE_JVM_OPTS=-XX:ArchiveClassesAtExit=/tmp/storage.jsa
  KAFKA_JVM_PERFORMANCE_OPTS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit=/tmp/kafka.jsa" /etc/kafka/docker/run >/tmp/archives.log 2>&1 & p=$!
  for i in $(seq 600); do grep -q "Kafka Server started" /tmp/archives.log && break; sleep 0.1; done
  export STORAGE_JVM_OPTS=
  /opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 --create --topic archives >/dev/null
  kill $p; wait $p || true
  mv /tmp/storage.jsa /tmp/kafka.jsa /opt/kafka/
  rm -rf /tmp/archives* /opt/kafka/config/server.properties /tmp/hsperfdata_*' >&2 || { docker logs "$C" >&2; exit 1; }
docker commit "${CHANGES[@]}" "$C" "$TAG" >/dev/null
