// SPDX-License-Identifier: Apache-2.0
#include "core/offset_encoder.hpp"

#include <algorithm>
#include <span>

#include <millrace/formats/detail/in_quotes.hpp>

#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

bool is_trimmed(std::uint32_t point) noexcept {
  constexpr std::uint32_t spelled_space = 0x120;  // in GPT-2's byte alphabet
  return point == spelled_space || class_of(point) == char_class::space;
}

}  // namespace

spaces_at_ends spaces_of(std::string_view token) noexcept {
  spaces_at_ends spaces;
  for (std::size_t at = 0; at < token.size(); ++spaces.left) {
    const code_point point = code_point_at(token, at);
    if (!is_trimmed(point.value)) break;
    at += point.size_bytes;
  }
  for (std::size_t end = token.size(); end > 0; ++spaces.right) {
    const std::size_t at = character_before(token, end);
    if (!is_trimmed(code_point_at(token, at).value)) break;
    end = at;
  }
  return spaces;
}

std::optional<encode_fault> offset_encoder::encode(const text_part& part) {
  if (!parts_->offsets_fault.empty()) return encode_fault{0, parts_->offsets_fault};
  text_ = part.text;
  begins_text_ = part.is_first;
  if (part.is_first && part.with_template) {
    put_template(parts_->ids_before);
    template_ids_ = parts_->ids_before.size();
  }
  auto fault = split(
      parts_->raw_tokens, {part.text, part.is_first, !part.is_first},
      [&](section raw, std::size_t begin) {
        try {
          return encode_raw(raw, begin);
        } catch (const unencodable_text& e) {
          return std::optional(encode_fault{0, e.what()});
        }
      },
      [](byte_span span) { return span; });
  if (!fault && part.is_last && part.with_template) put_template(parts_->ids_behind);
  return fault;
}

void offset_encoder::put_template(const std::vector<std::int32_t>& ids) {
  ids_->append(ids);
  spans_->resize(spans_->size() + ids.size());
}

std::optional<encode_fault> offset_encoder::encode_raw(section raw, std::size_t begin) {
  section normalized = raw;
  std::string buffer;
  if (parts_->normal) {
    normalized.text = parts_->normal->normalize(raw.text, buffer, *limit_);
  }
  const bool is_same =
      normalized.text.data() == raw.text.data() && normalized.text.size() == raw.text.size();
  aligned_text aligned;
  if (!is_same) {
    aligned = aligned_text(raw.text);
    parts_->normal->align(aligned);
    if (aligned.text() != normalized.text) {
      return encode_fault{0, "the places of normalized characters are not known in this text"};
    }
  }
  const auto place = [&](byte_span span) {
    if (!is_same) {
      span = span.begin < span.end ? aligned.origin(span.begin, span.end) : byte_span{0, 0};
    }
    return byte_span{begin + span.begin, begin + span.end};
  };
  const auto encode = [&](section part, std::size_t at) {
    const std::size_t first = ids_->size();
    const std::size_t first_span = spans_->size();
    auto fault = engine_->encode_with_offsets(part, *ids_, *spans_);
    if (fault) return fault;
    const auto found = std::span(*spans_).subspan(first_span);
    if (!is_same || begin + at != 0) {
      for (byte_span& span : found) span = place({at + span.begin, at + span.end});
    }
    if (parts_->trims.empty()) return fault;
    const auto ids = ids_->ids().subspan(first);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto id = static_cast<std::size_t>(ids[i]);
      if (id < parts_->token_spaces.size()) trim(found[i], parts_->token_spaces[id], first + i);
    }
    return fault;
  };
  auto fault = split(parts_->normalized_tokens, normalized, encode, place);
  limit_->expect_ids(ids_->size() - first_id_);
  return fault;
}

// The loop of composed_encoder::split. `place` maps a span of `whole` to the original text.
template <class Encode, class Place>
std::optional<encode_fault> offset_encoder::split(const added_token_finder& finder,
                                                  const section& whole, const Encode& encode,
                                                  const Place& place) {
  const std::string_view text = whole.text;
  std::size_t begin = 0;
  std::size_t search = 0;
  const auto encode_to = [&](std::size_t end) -> std::optional<encode_fault> {
    if (begin >= end) return std::nullopt;
    auto fault = encode(section{.text = text.substr(begin, end - begin),
                                .at_start = whole.at_start && begin == 0,
                                .continues = whole.continues && begin == 0},
                        begin);
    if (fault) fault->offset_bytes += begin;
    return fault;
  };
  while (search < text.size() && !finder.empty()) {
    const auto found = finder.next(text, search, begin);
    if (!found) break;
    if (auto fault = encode_to(found->begin)) return fault;
    if (found->begin < found->end) {
      const std::string_view token = text.substr(found->begin, found->end - found->begin);
      if (found->special) {
        if (parts_->special_tokens_are_faults) {
          return encode_fault{found->begin,
                              "the special token " + formats::in_quotes(token) + " in the text"};
        }
        ++special_tokens_;
      }
      byte_span span = place({found->begin, found->end});
      if (!parts_->trims.empty()) trim(span, spaces_of(token), ids_->size());
      ids_->push_back(found->id);
      spans_->push_back(span);
    }
    begin = found->end;
    search = found->search_from;
  }
  return encode_to(text.size());
}

// As in Hugging Face, counts characters, whatever they are. `index` is that of the id.
void offset_encoder::trim(byte_span& span, spaces_at_ends spaces, std::size_t index) const {
  for (const offset_trim& each : parts_->trims) {
    std::size_t left = spaces.left;
    const std::size_t before = each.follows_template ? 0 : template_ids_;
    const bool is_first = begins_text_ && (index == first_id_ + before || span.begin == 0);
    if (left == 1 && is_first && each.add_prefix_space) left = 0;
    for (; left > 0 && span.begin < span.end; --left) {
      span.begin += code_point_at(text_, span.begin).size_bytes;
    }
    std::size_t end = span.end;
    std::size_t right = spaces.right;
    for (; right > 0 && end > 0; --right) end = character_before(text_, end);
    if (right == 0 || !begins_text_) span.end = std::max(end, span.begin);
  }
}

}  // namespace millrace::tokenizer::detail
