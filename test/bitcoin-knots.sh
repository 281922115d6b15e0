#!/usr/bin/env bash
# Makes a Bitcoin node for the tests: Bitcoin Knots, which Debian has in its unstable suite. Nothing is installed: its packages,
# with the libraries that they need, are unpacked into a folder of the user's cache, and the node runs with their own loader.
# Prints where its program is; exits with 1 and the reason where it cannot be had. Needs apt and dpkg-deb; about 30 MB are
# downloaded, once, from the Debian mirror that this machine's own sources name.
set -euo pipefail

folder="${XDG_CACHE_HOME:-$HOME/.cache}/bursar/bitcoin-knots"
program="$folder/bitcoind"
if [ -x "$program" ]; then
  echo "$program"
  exit 0
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
for need in apt-get dpkg-deb "$keyring"; do
  command -v "$need" > /dev/null || [ -e "$need" ] || { echo "no Bitcoin node: $need is missing" >&2; exit 1; }
done

# A list of sources has Debian's archive at .../debian; its security archive has another path.
mirror="$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null | grep -v '^ *#' |
  grep -oE '(https?|file|mirror\+[a-z]+):/[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ')" || true
[ -n "$mirror" ] || { echo 'no Bitcoin node: the sources of apt name no Debian mirror' >&2; exit 1; }

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,archives/partial,root}
: > "$work/status"
echo "deb [signed-by=$keyring] $mirror sid main" > "$work/sources.list"
cat > "$work/apt.conf" << CONF
Dir::State "$work";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$work/archives";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Debug::NoLocking "true";
Acquire::Languages "none";
CONF
export APT_CONFIG="$work/apt.conf"
{
  apt-get -q update
  # Nothing counts as installed here, so that all that it needs is downloaded with it.
  apt-get -q -y --download-only install bitcoin-knots
  for package in "$work"/archives/*.deb; do dpkg-deb -x "$package" "$work/root"; done
} >&2

binary="$(find "$work/root" -type f -name bitcoind -perm -u+x | head -n 1)"
loader="$(find "$work/root" -name 'ld-linux*.so.*' | head -n 1)"
[ -n "$binary" ] && [ -n "$loader" ] || { echo 'no Bitcoin node: the packages have none' >&2; exit 1; }
libraries="$(find "$work/root" -name '*.so.*' -printf '%h\n' | sort -u | sed "s#^$work/root#$folder/root#" | paste -sd:)"
mkdir -p "$folder"
rm -rf "$folder/root"
mv "$work/root" "$folder/root"
cat > "$program.new" << RUN
#!/bin/sh
exec '${loader/#$work\/root/$folder/root}' --library-path '$libraries' '${binary/#$work\/root/$folder/root}' "\$@"
RUN
chmod +x "$program.new"
mv "$program.new" "$program"
echo "$program"
