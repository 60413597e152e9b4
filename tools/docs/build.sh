#!/usr/bin/env bash
# Builds out/site/{en,zh} from the Markdown files. A link or a picture that leads nowhere, and a page that would load anything
# from another place, end it with an error.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venv-docs/bin/python
rm -rf out/site
for language in en zh; do
  "$python" -m sphinx -q -E -n -W --keep-going -b html -t "$language" -d "build/site/$language" -c tools/docs . "out/site/$language"
done
for place in :docs/en/symptoms en/:docs/en/symptoms zh/:docs/zh/symptoms; do
  target=${place#*:}.html
  [ -n "${place%%:*}" ] || target=en/$target
  printf '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=%s"><a href="%s">msprobe</a>\n' \
    "$target" "$target" >"out/site/${place%%:*}index.html"
done
"$python" tools/docs/check_site.py out/site
echo "out/site/index.html"
