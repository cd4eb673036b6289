// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/error.hpp>

#include "normalize/normalizers.hpp"

/// Each charsmap is refused with a library error, or can normalize texts. One of these texts
/// consists of the bytes of the charsmap itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer::detail;
  const std::string blob(reinterpret_cast<const char*>(data), size);
  const charsmap rules(blob, 0);
  (void)rules.find(blob);
  const normalizer_pointer normal = make_precompiled(rules);
  std::string buffer;
  for (const std::string& text :
       {blob, std::string("ae\u0301 \u0915\u094D\u0915\r\n\u00A9\u200D")}) {
    (void)normal->normalize(text, buffer);
  }
  return 0;
} catch (const millrace::error&) {
  return 0;
}
