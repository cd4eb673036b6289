// SPDX-License-Identifier: Apache-2.0
#include "split/bert_matcher.hpp"

#include <string>
#include <string_view>

#include "unicode/normalization.hpp"
#include "unicode/reference_sets.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

bool is_its_own_nfd(std::uint32_t point) {
  std::string text;
  append_code_point(text, point);
  std::string buffer;
  return normalize_to(normal_form::nfd, text, buffer) == text;
}

bert_cut_points make_cut_points() {
  // A character that a step of the normalizer drops, or might drop, is not a cut point.
  code_point_set dropped(reference_set::bert_control);
  dropped.add(code_point_set(reference_set::bert_nonspacing_mark));
  dropped.add(code_point_set(reference_set::combining_mark));
  const code_point_set punctuation(reference_set::punctuation);
  bert_cut_points cuts;
  for (std::uint32_t point = 0; point < code_point_set::limit; ++point) {
    if (dropped.contains(point)) continue;
    if (class_of(point) == char_class::space) cuts.space.add(point, point);
    if (punctuation.contains(point) && lowercase_of(point) == point && is_its_own_nfd(point)) {
      cuts.alone.add(point, point);
      cuts.alone_with_chinese.add(point, point);
    }
    if (is_bert_chinese(point)) cuts.alone_with_chinese.add(point, point);
  }
  return cuts;
}

}  // namespace

const bert_cut_points& bert_cuts() noexcept {
  static const bert_cut_points cuts = make_cut_points();
  return cuts;
}

}  // namespace millrace::tokenizer::detail
