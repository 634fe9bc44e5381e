#!/usr/bin/env bash
# Builds a base for service images locally where no image registry can be reached: node, npm, bash and busybox, with the
# certificates that this machine trusts. Never publish it.
#   build.sh TAG NODE     NODE: the binary. DOCKER_HOST names the engine. npm is this machine's.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
TAG=$1 NODE=$(readlink -f "$2")
. "$HERE/../root-files.sh"
W=$(mktemp -d -t throughline-node-image.XXXXXX); trap 'rm -rf "$W"' EXIT
R=$W/root

install_if_missing busybox-static /bin/busybox
make_root "$R"
mkdir -p "$R"/{etc/ssl/certs,home/node,usr/local/bin,usr/local/lib/node_modules}
cp "$NODE" "$R/usr/local/bin/node"; strip "$R/usr/local/bin/node" 2>/dev/null || true
cp -a "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$R/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$R/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$R/usr/local/bin/npx"
copy_libraries "$R" "$R/usr/local/bin/node"
cp -L /etc/ssl/certs/ca-certificates.crt "$R/etc/ssl/certs/"
printf 'root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/bash\n' >"$R/etc/passwd"
printf 'root:x:0:\nnode:x:1000:\n' >"$R/etc/group"
chown 1000:1000 "$R/home/node"
tar -C "$R" -cf - . | docker import -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin' \
  -c 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' -c 'CMD ["node"]' \
  -c 'LABEL throughline.local-stand-in=true' - "$TAG" >/dev/null
