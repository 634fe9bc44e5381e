#!/usr/bin/env bash
# A private Docker engine on a socket of its own, for machines that have none. As root, on Debian or Ubuntu.
#   engine.sh start   starts it if it does not answer (installs docker.io and iptables if they are missing); prints its URL
#   engine.sh stop    ends it with its containers; images stay for the next start
#   engine.sh url     prints its URL
# Everything it keeps is below THROUGHLINE_DOCKER_ROOT (default /var/lib/throughline/docker).
set -euo pipefail
ROOT=${THROUGHLINE_DOCKER_ROOT:-/var/lib/throughline/docker}
SOCKET=$ROOT/docker.sock
PIDFILE=$ROOT/pid
POOLS=172.30.0.0/15 # of the bridge (172.30.0.0/24) and of the networks that users make (172.31.0.0/16)

answers() { [ -S "$SOCKET" ] && timeout 5 docker -H "unix://$SOCKET" version >/dev/null 2>&1; }

# The name of the outside interface; empty without a default route.
outside() { ip -o route show default 2>/dev/null | awk '{print $5; exit}'; }

# rules -C|-I|-D: packets for our bridges stay on this machine, also when their network is gone, and nobody outside
# opens a connection to a container: ports of user-made networks are published on every address.
rules() {
  local action=$1 face; face=$(outside)
  [ -n "$face" ] || return 0
  for chain in DOCKER-USER OUTPUT; do rule "$action" "$chain" -o "$face" -d "$POOLS" -j REJECT; done
  rule "$action" DOCKER-USER -i "$face" -m conntrack --ctstate NEW -j REJECT
}
rule() {
  local action=$1 chain=$2; shift 2
  if iptables -C "$chain" "$@" 2>/dev/null; then [ "$action" = -I ] || iptables -D "$chain" "$@"
  else [ "$action" = -D ] || iptables -I "$chain" 1 "$@"; fi
}

install_missing() {
  command -v dockerd >/dev/null && command -v docker >/dev/null && command -v iptables >/dev/null && return 0
  command -v apt-get >/dev/null || { echo "engine.sh: dockerd or iptables is missing, and there is no apt-get to install them." >&2; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends docker.io iptables iproute2 >&2
}

# After an unclean end pid files name dead or foreign processes, and shims keep the old containers alive: dockerd would
# wait for a containerd that is gone, and fail. Only what names our folder on its command line is ended.
clear_remains() {
  local file dir words
  for file in "$PIDFILE" "$ROOT/exec/containerd/containerd.pid"; do
    [ -f "$file" ] || continue
    words=$(tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$file")/cmdline" || true)
    case $words in *"$ROOT/"*) kill -9 "$(cat "$file")" 2>/dev/null || true ;; esac
    rm -f "$file"
  done
  for dir in /proc/[0-9]*; do
    words=$(tr '\0' ' ' 2>/dev/null <"$dir/cmdline" || true)
    case $words in *containerd-shim*"-address $ROOT/exec/containerd/containerd.sock"*)
      # shellcheck disable=SC2046  # several ids
      kill -9 $(cat "$dir"/task/*/children 2>/dev/null) "${dir#/proc/}" 2>/dev/null || true ;;
    esac
  done
  rm -f "$SOCKET" "$ROOT"/exec/containerd/*.sock "$ROOT"/exec/containerd/*.sock.ttrpc
}

start() {
  [ "$(id -u)" = 0 ] || { echo "engine.sh: a private Docker engine needs root." >&2; exit 1; }
  mkdir -p "$ROOT"; chmod 711 "$ROOT"
  exec 9>"$ROOT/lock"; flock -w 120 9 # two lanes may start at once
  install_missing
  if ! answers; then
    clear_remains
    setsid dockerd --data-root "$ROOT/data" --exec-root "$ROOT/exec" --pidfile "$PIDFILE" \
      -H "unix://$SOCKET" --group root --bip 172.30.0.1/24 --default-address-pool base=172.31.0.0/16,size=24 \
      --ip 127.0.0.1 --log-level warn --shutdown-timeout 5 --log-opt max-size=10m --log-opt max-file=2 \
      >"$ROOT/dockerd.log" 2>&1 </dev/null 9>&- &
    for _ in $(seq 300); do answers && break; sleep 0.1; done
    answers || { tail -n 30 "$ROOT/dockerd.log" >&2; echo "engine.sh: dockerd does not answer." >&2; exit 1; }
  fi
  rules -I
  echo "unix://$SOCKET"
}

stop() {
  [ -f "$PIDFILE" ] || return 0
  local pid; pid=$(cat "$PIDFILE")
  grep -qa dockerd "/proc/$pid/cmdline" 2>/dev/null || { rm -f "$PIDFILE"; return 0; }
  rules -D || true
  kill "$pid"
  for _ in $(seq 150); do [ -d "/proc/$pid" ] || return 0; sleep 0.1; done
  kill -9 "$pid"
  clear_remains
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  url) echo "unix://$SOCKET" ;;
  *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
