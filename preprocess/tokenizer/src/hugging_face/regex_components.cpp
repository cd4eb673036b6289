// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/regex_components.hpp"

#include <utility>

#include "messages/in_quotes.hpp"
#include "regex/parse_pattern.hpp"
#include "regex/regex.hpp"

namespace millrace::tokenizer::detail {
namespace {

class regex_stage final : public piece_stage {
 public:
  regex_stage(std::string_view pattern, split_behavior behavior, bool invert)
      : pattern_(pattern), behavior_(behavior), invert_(invert) {}

  void cut(const section& piece, stage_scratch& scratch, piece_list& out) const override {
    std::vector<stretch>& parts = scratch.stretches;
    parts.clear();
    regex_search search(pattern_, piece.text, scratch.matching);
    std::size_t covered = 0;
    while (const auto found = search.next()) {
      if (covered != found->begin) parts.push_back({covered, found->begin, invert_});
      parts.push_back({found->begin, found->end, !invert_});
      covered = found->end;
    }
    if (covered != piece.text.size()) parts.push_back({covered, piece.text.size(), invert_});
    append_pieces(piece.text, parts, behavior_, out);
  }

 private:
  regex pattern_;
  split_behavior behavior_;
  bool invert_;
};

// Refuses a pattern that can match the empty text. In Hugging Face, such a match inserts text, and
// later steps then duplicate that text.
std::string_view never_empty(std::string_view pattern) {
  if (may_be_empty(parse_pattern(pattern).root)) {
    throw pattern_error("a pattern to be replaced that may match nothing is not supported");
  }
  return pattern;
}

class regex_replace final : public normalizer {
 public:
  regex_replace(std::string_view pattern, std::string content)
      : pattern_(never_empty(pattern)),
        content_(std::move(content)),
        name_("Replace " + in_quotes(pattern)) {}

  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin(name_);
    regex_memory memory;
    regex_search search(pattern_, text, memory);
    auto found = search.next();
    if (!found) return text;
    buffer.clear();
    std::size_t copied = 0;
    for (; found; found = search.next()) {
      limit.expect(buffer.size() + (found->begin - copied) + content_.size());
      buffer.append(text, copied, found->begin - copied).append(content_);
      copied = found->end;
    }
    limit.expect(buffer.size() + (text.size() - copied));
    buffer.append(text, copied);
    return buffer;
  }

 private:
  regex pattern_;
  std::string content_;
  std::string name_;
};

}  // namespace

stage_pointer make_regex_stage(std::string_view pattern, split_behavior behavior, bool invert) {
  return std::make_unique<regex_stage>(pattern, behavior, invert);
}
normalizer_pointer make_regex_replace(std::string_view pattern, std::string content) {
  return std::make_unique<regex_replace>(pattern, std::move(content));
}

}  // namespace millrace::tokenizer::detail
