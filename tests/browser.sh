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
