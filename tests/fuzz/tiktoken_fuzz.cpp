// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string>

#include "bpe/merge_table.hpp"
#include "tiktoken/ranked_tokens.hpp"

/// If a file is accepted, every merge is consistent: the bytes of its two parts, joined, are the
/// bytes of its result. If the file is refused, the error offset is within the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer::detail;
  ranked_tokens ranked;
  parse_rank_file({reinterpret_cast<const char*>(data), size}, ranked);
  const token_table& tokens = ranked.tokens;
  if (tokens.count() > size) std::abort();
  for (const merge_rule& rule : merges_of_ranked(ranked, ranked.byte_ids(size))) {
    const std::string parts(tokens.bytes(rule.left));
    if (parts + std::string(tokens.bytes(rule.right)) != tokens.bytes(rule.result)) std::abort();
  }
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
