// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include <millrace/formats/detail/token_arrays.hpp>

/// What is accepted must be the same after it is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto row = parse_array_row(text); row && (row->end < 0 || row->begin.value_or(0) < 0)) {
    return 0;  // the caller compares them with the document before
  }
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const llm_c_view found = parse_llm_c(bytes.first(std::min(size, llm_c_header_bytes)), size);
    const auto header = encode_llm_c_header(found.type, found.tokens);
    if (!std::equal(header.begin(), header.begin() + 12, bytes.begin())) std::abort();
  } catch (const millrace::format_error& e) {
    if (e.offset() > size) std::abort();
  }
  const nanoset_metadata read = parse_nanoset_metadata(text);
  const nanoset_metadata again = parse_nanoset_metadata(encode_nanoset_metadata(read));
  const bool same = again.tokenizer == read.tokenizer && again.tokens == read.tokens;
  if (!same || again.type != read.type) std::abort();
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
