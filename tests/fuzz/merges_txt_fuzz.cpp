// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include <millrace/error.hpp>

#include "gpt2/gpt2_files.hpp"

/// If a file is accepted, every merge in it joins known tokens. If the file is refused, the error
/// offset is within the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer::detail;
  constexpr std::string_view tokens[] = {"a", "b", "c", "ab", "bc", "abc", "aa"};
  token_ids ids;
  for (std::size_t i = 0; i < std::size(tokens); ++i) {
    ids.emplace(tokens[i], static_cast<std::int32_t>(i));
  }
  const auto text_of = [&](std::int32_t id) { return std::string(tokens[id]); };
  for (const merge_rule& rule :
       parse_merges_txt({reinterpret_cast<const char*>(data), size}, ids)) {
    if (text_of(rule.left) + text_of(rule.right) != text_of(rule.result)) std::abort();
  }
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
