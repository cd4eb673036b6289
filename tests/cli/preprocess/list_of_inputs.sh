# SPDX-License-Identifier: Apache-2.0
mkdir in
for i in 1 2 3; do printf '{"text": "%s"}\n' $i > "in/$i file"; done
printf 'in/3 file\n\nin/[12]*\r\n-\n' > list.txt
printf '{"text": "4"}\n' | preprocess_bytes --input @list.txt --output-prefix out 2> log
od -An -tc out_text_document.bin
printf '@list.txt\n' > lists.txt
! preprocess_bytes --input @lists.txt --output-prefix none
! preprocess_bytes --input - - --output-prefix none
