// SPDX-License-Identifier: Apache-2.0
#include "byte_level_tokenizer.hpp"

#include <cstddef>
#include <string_view>

#include <millrace/formats/sha256.hpp>

#include "utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class byte_level_encoder final : public encoder {
 public:
  std::size_t max_ids(std::size_t size_bytes) const noexcept override { return size_bytes; }

  std::optional<encode_fault> encode(std::string_view text, std::uint16_t* ids,
                                     std::size_t& count) override {
    return widen(text, ids, count);
  }
  std::optional<encode_fault> encode(std::string_view text, std::int32_t* ids,
                                     std::size_t& count) override {
    return widen(text, ids, count);
  }

 private:
  template <class Id>
  static std::optional<encode_fault> widen(std::string_view text, Id* __restrict ids,
                                           std::size_t& count) {
    // A counted loop over pointers that cannot overlap: compilers turn it into vector widening.
    const char* const bytes = text.data();
    const std::size_t size = text.size();
    for (std::size_t i = 0; i < size; ++i) ids[i] = static_cast<unsigned char>(bytes[i]);
    count = size;
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<encoder> byte_level_tokenizer::make_encoder() const {
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

std::string byte_level_tokenizer::fingerprint() const {
  return formats::sha256_hex("type ByteLevelTokenizer\n");
}

}  // namespace millrace::tokenizer::detail
