# SPDX-License-Identifier: Apache-2.0
# Megatron's tools/merge_datasets.py asserts that every file in its folder belongs to a dataset: for
# each name without its last suffix, there must be a .bin and an .idx. The sidecars satisfy this.
command -v python3 > /dev/null || { echo 'no python3 to state the rule in' >&2; exit 77; }
printf '{"text": "a", "title": "b"}\nno JSON\n{"text": "cd", "title": "e"}\n' > in.jsonl
mkdir parts
preprocess_bytes --input in.jsonl --json-keys text title --output-prefix parts/v1.2 \
  --on-bad-record quarantine 2> log
for suffix in bin idx meta sum src bad; do
  test -s parts/v1.2_text_document.$suffix
  test -s parts/v1.2_title_document.$suffix
done
cat > megatron_prefixes.py << 'PYTHON'
import os, sys
folder = sys.argv[1]
names = [name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name))]
prefixes = sorted({os.path.splitext(name)[0] for name in names})
for prefix in prefixes:
    for suffix in (".bin", ".idx"):
        if prefix + suffix not in names:
            sys.exit(f"{prefix} has no {suffix}")
print(*prefixes)
PYTHON
python3 megatron_prefixes.py parts
# A name with one more suffix would break this rule.
cp parts/v1.2_text_document.meta parts/v1.2_text_document.meta.json
python3 megatron_prefixes.py parts
