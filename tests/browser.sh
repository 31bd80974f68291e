#!/bin/sh
# Opens the page of `patsat report` in headless Chromium, light and dark, wide and narrow: it shows what is there, says
# nothing on the console, asks for nothing over the network, and is no wider than the window.
#   tests/browser.sh PATSAT [FOLDER for screenshots]
set -eu
patsat=$1
shots=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
browser=
for name in ${CHROMIUM:-} chromium-headless-shell chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then browser=$name; break; fi
done
if [ -z "$browser" ]; then
  echo "no Chromium is installed (CHROMIUM names one): the page is not looked at" >&2
  exit 1
fi

export PATSAT_STORE="$work/store.sqlite"
for program in asum scal; do
  "$patsat" optimize "programs/$program.pat" --size n=100000 --budget 6 --device portable >/dev/null 2>&1
done
"$patsat" report -o "$work/report.html" >/dev/null 2>&1

# A copy that says of itself what it looks like.
sed 's|</body>|<script>addEventListener("load", () => {\
  const style = getComputedStyle(document.body), root = document.documentElement;\
  const dots = [...document.querySelectorAll("circle")];\
  const seen = dots.filter(d => d.getBoundingClientRect().width > 2).length;\
  const fetched = performance.getEntriesByType("resource").length;\
  document.title = ["seen", seen, "of", dots.length, "fetched", fetched, "over",\
    Math.max(0, root.scrollWidth - innerWidth), "text", style.color, "page", style.backgroundColor].join(" ");\
});</script></body>|' "$work/report.html" >"$work/copy.html"

# look NAME SCHEME WIDTH: leaves what the page says in $said. Dark is 0, light is 1.
look() {
  name=$1
  set -- --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr \
    --blink-settings="preferredColorScheme=$2" --window-size="$3,2600"
  "$browser" "$@" --dump-dom "file://$work/copy.html" >"$work/dom" 2>"$work/log"
  if grep CONSOLE "$work/log" >&2; then
    echo "$name: the console is not empty" >&2
    exit 1
  fi
  said=$(sed -n 's|.*<title>\(seen [^<]*\)</title>.*|\1|p' "$work/dom")
  echo "$name: $said"
  # Every dot of every chart is seen, and there are some.
  if ! echo "$said" | grep -Eq '^seen ([1-9][0-9]*) of \1 fetched 0 over 0 '; then
    echo "$name: dots are not seen, something is fetched, or the page is too wide" >&2
    exit 1
  fi
  if [ -n "$shots" ]; then
    "$browser" "$@" --screenshot="$shots/$name.png" "file://$work/report.html" >/dev/null 2>&1
  fi
}

look light 1 1200
light=$said
look dark 0 1200
if [ "${light##* text }" = "${said##* text }" ]; then
  echo "light and dark look the same" >&2
  exit 1
fi
look narrow 1 400
