# SPDX-License-Identifier: Apache-2.0
# Compares datasets: equal ones, other types, a changed token, and documents that were dropped,
# inserted, swapped, copied or appended.
cat > a.jsonl << 'LINES'
{"text": "a red fox"}
{"text": "Red foxes: naïve foxes"}
{"text": "none here"}
{"text": "the last one"}
LINES
made() {  # NAME: makes a dataset of NAME.jsonl
  preprocess_bytes --input $1.jsonl --output-prefix $1 --append-eod --overwrite 2> log
}
made a
differs() {  # TITLE NAME [FLAGS]
  echo "-- $1"
  inspect_dataset diff a_text_document $2_text_document "${@:3}" || echo "exit $?"
}
differs 'itself' a
sed 's/red/rad/' a.jsonl > b.jsonl; made b
differs 'a token' b
differs 'a token, without surroundings' b --context 0 --json
sed 2d a.jsonl > b.jsonl; made b
differs 'a dropped document' b
sed '2{p;s/naïve/wise/}' a.jsonl > b.jsonl; made b
differs 'an inserted document' b --list 0
sed '2{h;d};3G' a.jsonl > b.jsonl; made b
differs 'two swapped documents' b
sed 2p a.jsonl > b.jsonl; made b
differs 'a copied document' b
(cat a.jsonl; echo '{"text": "more"}') > b.jsonl; made b
differs 'appended documents' b
echo -- 'the other way'
inspect_dataset diff b_text_document.idx a_text_document --json || echo "exit $?"
sed 's/here/her/' a.jsonl > b.jsonl; made b
differs 'a shorter document' b
# The same ids, once in uint16 and once in int32.
for width in 512 70000; do
  echo '{"text": "1 2 300 4"}' | preprocess_data --input - --output-prefix w$width \
      --tokenizer-type NullTokenizer --vocab-size $width 2> log
done
inspect_dataset diff w512_text_document w70000_text_document
# The same for any number of threads.
sed '2d;s/red/rad/' a.jsonl > b.jsonl; made b
for workers in 1 2 5; do
  inspect_dataset diff a_text_document b_text_document --workers $workers --json || true
done | sort | uniq -c | sed 's/^ *//' | cut -c 1-60
