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
  using kind = grapheme_kind;
  const kind before = last_.kind();
  const kind after = next.kind();
  if (before == kind::cr && after == kind::lf) return true;
  const auto separates = [](kind k) {
    return k == kind::control || k == kind::cr || k == kind::lf;
  };
  if (separates(before) || separates(after)) return false;
  const bool after_v_or_t = after == kind::hangul_v || after == kind::hangul_t;
  switch (before) {
    case kind::hangul_l:
      if (after == kind::hangul_l || after == kind::hangul_v || after == kind::hangul_lv ||
          after == kind::hangul_lvt) {
        return true;
      }
      break;
    case kind::hangul_v:
    case kind::hangul_lv:
      if (after_v_or_t) return true;
      break;
    case kind::hangul_t:
    case kind::hangul_lvt:
      if (after == kind::hangul_t) return true;
      break;
    case kind::prepend:
      return true;
    default:
      break;
  }
  if (after == kind::extend || after == kind::zwj || after == kind::spacing_mark) return true;
  if (next.consonant() && conjunct_ == conjunct::linked) return true;
  if (next.pictograph() && sequence_ == sequence::joined) return true;
  return after == kind::regional && sequence_ == sequence::half_flag;
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
