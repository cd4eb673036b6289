// SPDX-License-Identifier: Apache-2.0
#include "regex/regex_splitter.hpp"

#include <optional>
#include <utility>

#include "regex/regex.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// The match to follow one that ended at `last_end`, or the first if `last_end` is nothing. An
// empty match that touches the one before is passed over, by a whole character.
std::optional<regex::match> next_match(const regex& pattern, std::string_view text,
                                       std::optional<std::size_t> last_end,
                                       regex::scratch& memory) {
  std::size_t from = last_end.value_or(0);
  while (from <= text.size()) {
    const auto found = pattern.find(text, from, memory);
    if (!found || found->begin != found->end || found->end != last_end) return found;
    if (found->end == text.size()) break;
    from = found->end + code_point_at(text, found->end).size_bytes;
  }
  return std::nullopt;
}

class regex_stage final : public piece_stage {
 public:
  regex_stage(std::string_view pattern, split_behavior behavior, bool invert)
      : pattern_(pattern), behavior_(behavior), invert_(invert) {}

  void cut(const section& piece, stage_scratch& scratch, piece_list& out) const override {
    std::vector<stretch>& parts = scratch.stretches;
    parts.clear();
    regex::scratch memory;
    std::optional<std::size_t> last_end;
    std::size_t covered = 0;
    while (const auto found = next_match(pattern_, piece.text, last_end, memory)) {
      if (covered != found->begin) parts.push_back({covered, found->begin, invert_});
      parts.push_back({found->begin, found->end, !invert_});
      covered = found->end;
      last_end = covered;
    }
    if (covered != piece.text.size()) parts.push_back({covered, piece.text.size(), invert_});
    append_pieces(piece.text, parts, behavior_, out);
  }

 private:
  regex pattern_;
  split_behavior behavior_;
  bool invert_;
};

class regex_replace final : public normalizer {
 public:
  regex_replace(std::string_view pattern, std::string content)
      : pattern_(pattern), content_(std::move(content)) {
    if (pattern_.may_match_empty()) {
      throw pattern_error(0, "a pattern to be replaced that may match nothing is not supported");
    }
  }

  std::string_view normalize(std::string_view text, std::string& buffer) const override {
    regex::scratch memory;
    auto found = pattern_.find(text, 0, memory);
    if (!found) return text;
    buffer.clear();
    std::size_t copied = 0;
    for (; found; found = pattern_.find(text, copied, memory)) {
      buffer.append(text, copied, found->begin - copied).append(content_);
      copied = found->end;
    }
    buffer.append(text, copied);
    return buffer;
  }

 private:
  regex pattern_;
  std::string content_;
};

}  // namespace

stage_pointer make_regex_stage(std::string_view pattern, split_behavior behavior, bool invert) {
  return std::make_unique<regex_stage>(pattern, behavior, invert);
}
normalizer_pointer make_regex_replace(std::string_view pattern, std::string content) {
  return std::make_unique<regex_replace>(pattern, std::move(content));
}

}  // namespace millrace::tokenizer::detail
