#!/usr/bin/env bash
# Builds haproxy locally where no image registry can be reached, from Debian's package, with the contract of the official
# image: configuration in /usr/local/etc/haproxy/haproxy.cfg, not root. (An import cannot set its stop signal, SIGUSR1.)
#   build.sh TAG     DOCKER_HOST names the engine. As root on Debian; the package is unpacked, not installed.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
TAG=$1
. "$HERE/../root-files.sh"
W=$(mktemp -d -t throughline-haproxy-image.XXXXXX); trap 'rm -rf "$W"' EXIT
R=$W/root D=$W/debian

install_if_missing busybox-static /bin/busybox
mkdir -p "$W/archives/partial" "$D"
download() { apt-get install -y -qq --no-install-recommends --download-only --reinstall -o Dir::Cache::archives="$W/archives" haproxy >/dev/null 2>&1; }
download || { apt-get update -qq >&2; download; }
for package in "$W"/archives/*.deb; do dpkg -x "$package" "$D"; done

make_root "$R"
mkdir -p "$R"/usr/local/{sbin,etc/haproxy} "$R/var/lib/haproxy"
cp "$D/usr/sbin/haproxy" "$R/usr/local/sbin/"
# What the machine lacks of its libraries lies beside it.
folder=$R$(dirname "$(ldd /bin/bash | grep -oE '/[^ ]*/libc\.so\.6')"); mkdir -p "$folder"
find "$D" -name '*.so*' -exec cp -L {} "$folder/" \;
LD_LIBRARY_PATH=$folder copy_libraries "$R" "$R/usr/local/sbin/haproxy"
printf 'root:x:0:0:root:/root:/bin/bash\nhaproxy:x:99:99::/var/lib/haproxy:/bin/false\n' >"$R/etc/passwd"
printf 'root:x:0:\nhaproxy:x:99:\n' >"$R/etc/group"
chown 99:99 "$R/var/lib/haproxy"
tar -C "$R" -cf - . | docker import -c 'USER haproxy' -c 'WORKDIR /var/lib/haproxy' \
  -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/bin:/bin' \
  -c 'CMD ["haproxy","-W","-db","-f","/usr/local/etc/haproxy/haproxy.cfg"]' \
  -c 'LABEL throughline.local-stand-in=true' - "$TAG" >/dev/null
