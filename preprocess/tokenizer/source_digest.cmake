# SPDX-License-Identifier: Apache-2.0
# Writes the C++ source OUTPUT, which defines the SHA-256 of FILES (cache/tokenizer_cache.hpp).
#   cmake "-DFILES=a;b" -DOUTPUT=PATH -P source_digest.cmake
list(SORT FILES)
foreach(file IN LISTS FILES)
  file(SHA256 "${file}" digest)
  string(APPEND all "${digest} ${file}\n")
endforeach()
string(SHA256 digest "${all}")
file(WRITE "${OUTPUT}" "#include \"cache/tokenizer_cache.hpp\"
const char* const millrace::tokenizer::detail::source_digest = \"${digest}\";
")
