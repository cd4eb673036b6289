# SPDX-License-Identifier: Apache-2.0
# Writes one page that needs nothing else. tests/docs/report_page.py looks at it in a browser.
echo '{"text": "a red </script> fox"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
inspect_dataset report a_text_document --output a.html --verify > log
# Two scripts and a style; the policy allows those two by their hashes, and no text can end one.
grep -c '<script' a.html
grep -o 'Content-Security-Policy" content="[^"]*' a.html | sed 's/sha256-[^ ]*/HASH/g'
sed -n '/id="data"/{s/<[^>]*>//g;p}' a.html > page.json
python3 - << 'CHECK'
import json
page = json.load(open("page.json"))
side = page["sides"][0]
print(page["command"], side["checksums"]["state"], page["run"])
print("".join(side["documents"][0]["texts"]), side["commands"]["info"])
CHECK
inspect_dataset report a_text_document a_text_document --output b.html --redact --json | sed 's/[0-9]*}/N}/'
for flags in '' '--output b.html --documents 201' '--output b.html --documents=-1' '--output none/b.html' \
    '--output b.html --order megatron' 'a_text_document b --output b.html' \
    'a_text_document a_text_document --output b.html'; do
  code=0
  inspect_dataset report a_text_document $flags > out 2> err || code=$?
  echo "$flags: $code: $(head -n 1 err)"
done
printf x | dd of=a_text_document.bin conv=notrunc status=none
inspect_dataset report a_text_document --output b.html --verify > log || echo $?
grep -c 'differ from those that were written' b.html
