// SPDX-License-Identifier: Apache-2.0
#include "unicode/grapheme_class.hpp"

namespace millrace::tokenizer::detail {

bool grapheme_boundaries::begins(grapheme_class next) noexcept {
  const bool joined = joins(next);
  go_on(next, joined);
  return !joined;
}

// Applies the rules GB3 to GB13 of UAX #29, in order.
bool grapheme_boundaries::joins(grapheme_class next) const noexcept {
  using type = grapheme_kind;
  const type before = last_.kind();
  const type after = next.kind();
  if (before == type::cr && after == type::lf) return true;
  const auto separates = [](type k) {
    return k == type::control || k == type::cr || k == type::lf;
  };
  if (separates(before) || separates(after)) return false;
  const bool after_v_or_t = after == type::hangul_v || after == type::hangul_t;
  switch (before) {
    case type::hangul_l:
      if (after == type::hangul_l || after == type::hangul_v || after == type::hangul_lv ||
          after == type::hangul_lvt) {
        return true;
      }
      break;
    case type::hangul_v:
    case type::hangul_lv:
      if (after_v_or_t) return true;
      break;
    case type::hangul_t:
    case type::hangul_lvt:
      if (after == type::hangul_t) return true;
      break;
    case type::prepend:
      return true;
    default:
      break;
  }
  if (after == type::extend || after == type::zwj || after == type::spacing_mark) return true;
  if (next.consonant() && conjunct_ == conjunct::linked) return true;
  if (next.pictograph() && sequence_ == sequence::joined) return true;
  return after == type::regional && sequence_ == sequence::half_flag;
}

void grapheme_boundaries::go_on(grapheme_class next, bool joined) noexcept {
  if (next.consonant()) {
    conjunct_ = conjunct::open;
  } else if (!next.linked()) {
    conjunct_ = conjunct::none;
  } else if (next.linker() && conjunct_ == conjunct::open) {
    conjunct_ = conjunct::linked;
  }

  const bool in_pictograph = sequence_ == sequence::pictograph;
  if (next.pictograph()) {
    sequence_ = sequence::pictograph;
  } else if (next.kind() == grapheme_kind::regional) {
    const bool closes = joined && sequence_ == sequence::half_flag;
    sequence_ = closes ? sequence::none : sequence::half_flag;
  } else if (in_pictograph && next.kind() == grapheme_kind::zwj) {
    sequence_ = sequence::joined;
  } else if (!in_pictograph || next.kind() != grapheme_kind::extend) {
    sequence_ = sequence::none;
  }
  last_ = next;
}

}  // namespace millrace::tokenizer::detail
