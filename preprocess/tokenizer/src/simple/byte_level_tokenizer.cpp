// SPDX-License-Identifier: Apache-2.0
#include "simple/byte_level_tokenizer.hpp"

#include <cstddef>
#include <string_view>

#include <millrace/formats/detail/sha256.hpp>

#include "unicode/neighbours.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class byte_level_encoder final : public encoder {
 public:
  std::optional<encode_fault> encode(std::string_view text, id_buffer& ids) override {
    // Use a counted loop and pointers that do not alias, so that compilers vectorize the
    // conversion.
    const char* const bytes = text.data();
    const std::size_t size = text.size();
    std::int32_t* __restrict out = ids.room(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(bytes[i]);
    ids.add(size);
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<encoder> byte_level_tokenizer::make_encoder(std::size_t) const {
  return std::make_unique<byte_level_encoder>();
}

std::string byte_level_tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < 256) {
      text += static_cast<char>(id);
    } else {
      text += replacement_character;
    }
  }
  return text;
}

std::size_t byte_level_tokenizer::last_cut(std::string_view text) const {
  return text.size() < 2 ? 0 : character_before(text, text.size());
}

std::string byte_level_tokenizer::fingerprint() const {
  return formats::sha256_hex("type ByteLevelTokenizer\n");
}

}  // namespace millrace::tokenizer::detail
