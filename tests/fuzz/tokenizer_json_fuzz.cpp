// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "hugging_face/tokenizer_file.hpp"

/// Each tokenizer.json is refused with a library error, or can encode and decode.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer;
  detail::tokenizer_file file({reinterpret_cast<const char*>(data), size});
  const detail::composed_tokenizer tokenizer(file.make_parts({}));
  const auto encoder = tokenizer.make_encoder(std::size_t{1} << 16);
  id_buffer ids;
  for (const std::string_view text : {"Hello  world<|x|>\n", "", " \xC3\xA9\xE4\xB8\xAD 0 "}) {
    (void)encoder->encode(text, ids);
  }
  const std::vector<std::int64_t> wide(ids.ids().begin(), ids.ids().end());
  (void)tokenizer.decode(wide);
  return 0;
} catch (const millrace::error&) {
  return 0;
}
