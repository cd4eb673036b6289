// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "tiktoken/megatron_vocab.hpp"

/// If a vocabulary is accepted, it has exactly the requested ids. If it is refused, the error
/// offset is within the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer::detail;
  const std::int32_t wanted = size % 2 == 0 ? 2 : 260;
  ranked_tokens ranked;
  parse_megatron_vocab({reinterpret_cast<const char*>(data), size}, 5, 5 + wanted, ranked);
  for (std::int32_t id = 5; id < 5 + wanted; ++id) {
    if (ranked.find(ranked.tokens.bytes(id)) != id) std::abort();
  }
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
