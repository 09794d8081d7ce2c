#!/bin/sh
# A Python as far as environments_test.cc can see: does what `-m venv` and `-m pip install -r`
# leave behind. FAKE_PIP: "fail", or "lazy" (leaves numpy out). FAKE_VERSION, FAKE_VENV,
# FAKE_PACKAGES: what it says of itself. FAKE_LOG gets a line per virtual environment.
set -e
case "$*" in
  "-c import sys"*)
    echo "bakeoff:${FAKE_VERSION:-3.11}"
    exit "${FAKE_VENV:-0}"
    ;;
  "-c import importlib"*)
    echo "noise"
    echo "bakeoff:Torch==9.9"
    echo "bakeoff:numpy==2.0"
    if [ "$FAKE_PACKAGES" != few ]; then echo "bakeoff:safetensors==1.0"; fi
    ;;
  "-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
    cp "$0" "$3/bin/python"
    echo "$3" >> "$FAKE_LOG"
    ;;
  "-m pip install "*)
    for list; do :; done
    while read -r pin; do
      case "$pin" in "#"* | "") continue ;; esac
      echo "Collecting $pin (from -r list)"
      if [ "$FAKE_PIP" = fail ]; then
        echo "some noise"
        echo "ERROR: No matching distribution found for $pin"
        exit 1
      fi
      if [ "$FAKE_PIP" = lazy ] && [ "$pin" = "numpy==2.4.6" ]; then continue; fi
      info="$(dirname "$0")/../lib/python3.11/site-packages/$(echo "$pin" | sed s/==/-/).dist-info"
      mkdir -p "$info"
      touch "$info/RECORD"
    done < "$list"
    ;;
  *)
    echo "unexpected: $*"
    exit 9
    ;;
esac
