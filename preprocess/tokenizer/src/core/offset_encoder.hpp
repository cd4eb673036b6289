// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "core/added_tokens.hpp"
#include "core/aligned_text.hpp"
#include "core/composed_tokenizer.hpp"
#include "core/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// Encodes one part of a text with the steps of composed_tokenizer, and notes the span of each id.
/// The encoder's own encode_part() does the same without spans, and faster.
class offset_encoder {
 public:
  /// @param engine, limit  those of the composed encoder
  offset_encoder(const tokenizer_parts& parts, section_encoder& engine, growth_limit& limit,
                 id_buffer& ids, std::vector<byte_span>& spans)
      : parts_(&parts),
        engine_(&engine),
        limit_(&limit),
        ids_(&ids),
        spans_(&spans),
        first_id_(ids.size()) {}

  std::optional<encode_fault> encode(const text_part& part);

  std::int64_t special_tokens_found() const noexcept { return special_tokens_; }

 private:
  std::optional<encode_fault> encode_raw(section raw, std::size_t begin);
  template <class Encode, class Place>
  std::optional<encode_fault> split(const added_token_finder& finder, const section& whole,
                                    const Encode& encode, const Place& place);
  void trim(byte_span& span, spaces_at_ends spaces, std::size_t index) const;
  void put_template(const std::vector<std::int32_t>& ids);

  const tokenizer_parts* parts_;
  section_encoder* engine_;
  growth_limit* limit_;
  id_buffer* ids_;
  std::vector<byte_span>* spans_;
  std::size_t first_id_;
  std::string_view text_;
  bool begins_text_ = true;
  std::size_t template_ids_ = 0;  // ids of the template before those of the text
  std::int64_t special_tokens_ = 0;
};

}  // namespace millrace::tokenizer::detail
