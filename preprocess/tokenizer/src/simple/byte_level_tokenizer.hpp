// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// Megatron's byte-level tokenizer: ids are the bytes of the text. Ids 256 to 511 are reserved
/// for special tokens and never come from text. They decode to U+FFFD.
class byte_level_tokenizer final : public tokenizer {
 public:
  std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const override;
  std::int64_t vocab_size() const noexcept override { return 512; }
  std::optional<std::int32_t> eod() const noexcept override { return 0; }
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::string fingerprint() const override;
  std::size_t last_cut(std::string_view text) const override;
};

}  // namespace millrace::tokenizer::detail
