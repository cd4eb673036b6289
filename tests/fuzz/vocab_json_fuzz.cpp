// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unordered_set>

#include <millrace/error.hpp>

#include "gpt2/gpt2_files.hpp"

/// If a file is accepted, its entries are sorted by id and their tokens are distinct. If the file
/// is refused, the error offset is within the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer::detail;
  std::unordered_set<std::string> keys;
  std::int32_t last = -1;
  for (const vocab_entry& entry : parse_vocab_json({reinterpret_cast<const char*>(data), size})) {
    if (entry.id <= last || !keys.insert(entry.spelled).second) std::abort();
    last = entry.id;
  }
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
