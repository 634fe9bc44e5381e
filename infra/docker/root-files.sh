# For the image builds beside it: what makes a folder the root of a small Linux. Sourced.

# R: the folder. bash, busybox for everything else, users, name service.
make_root() {
  local R=$1 applet
  mkdir -p "$R"/{bin,dev,etc,lib64,proc,root,run,sys,tmp,usr/bin,var/lib,var/tmp}
  chmod 1777 "$R/tmp"
  cp /bin/busybox "$R/bin/busybox"
  for applet in $("$R/bin/busybox" --list | grep -vx busybox); do ln -sf busybox "$R/bin/$applet"; done
  rm -f "$R/bin/bash"; cp /bin/bash "$R/bin/bash"
  ln -sf /bin/env "$R/usr/bin/env"; ln -sf /bin/bash "$R/usr/bin/bash"
  echo 'hosts: files dns' >"$R/etc/nsswitch.conf"
  cp -L /lib64/ld-linux-x86-64.so.2 "$R/lib64/" 2>/dev/null || true
}

# R FILE...: every library that bash and the files name, and those that are loaded later: by the name service, and by
# libraries inside of jars (zstd).
copy_libraries() {
  local R=$1 lib folder; shift
  folder=$(dirname "$(ldd /bin/bash | grep -oE '/[^ ]*/libc\.so\.6')")
  {
    ldd /bin/bash; ldd "$@" 2>/dev/null
    for lib in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2 libstdc++.so.6 libgcc_s.so.1 libpthread.so.0 libdl.so.2 librt.so.1; do echo "$folder/$lib"; done
  } | grep -oE '/(usr/)?lib[^ :]*\.so[^ :]*' | grep -v "^$R" | sort -u | while read -r lib; do
    [ -e "$lib" ] || continue
    mkdir -p "$R$(dirname "$lib")"; cp -L "$lib" "$R$lib"
  done
}

# PACKAGE COMMAND...: installs Debian packages if a command is missing. Needs root.
install_if_missing() {
  local packages=$1 command missing=; shift
  for command in "$@"; do command -v "$command" >/dev/null || [ -e "$command" ] || missing=$command; done
  [ -n "$missing" ] || return 0
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086  # several packages
  apt-get install -y -qq --no-install-recommends $packages >&2 2>/dev/null || { apt-get update -qq >&2; apt-get install -y -qq --no-install-recommends $packages >&2; }
}
