// SPDX-License-Identifier: Apache-2.0
#include "unicode/normalization.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

#include "unicode/normalization_tables.hpp"
#include "unicode/reference_sets.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Hangul syllables follow a formula. A syllable consists of one of 19 leading consonants, one of 21
// vowels, and one of 27 trailing consonants or none.
constexpr std::uint32_t syllable_base = 0xAC00;
constexpr std::uint32_t lead_base = 0x1100;
constexpr std::uint32_t vowel_base = 0x1161;
constexpr std::uint32_t tail_base = 0x11A7;
constexpr std::uint32_t lead_count = 19;
constexpr std::uint32_t vowel_count = 21;
constexpr std::uint32_t tail_count = 28;
constexpr std::uint32_t syllable_count = lead_count * vowel_count * tail_count;

constexpr unsigned alone = 0;     // the character is unchanged next to any characters
constexpr unsigned in_order = 4;  // it is unchanged if the marks are in order

inline bool is_stable(normal_form form, std::uint32_t point, unsigned how = alone) noexcept {
  constexpr std::uint32_t block_size = 128;
  if (point >= 0x110000) return true;
  const std::size_t block = stable_block_of[point / block_size];
  const unsigned flags = stable_blocks[block * block_size + point % block_size];
  return (flags >> (static_cast<unsigned>(form) + how) & 1) != 0;
}

std::uint32_t class_of_mark(std::uint32_t point) noexcept {
  const std::uint32_t* end = combining_class_runs + combining_class_runs_size;
  return std::upper_bound(combining_class_runs, end, point << 8 | 0xFF)[-1] & 0xFF;
}

struct marked {
  std::uint32_t point;
  std::uint32_t combining_class;
};

// A character with what it replaces, as in changed_character.
struct changed_mark : marked {
  std::int32_t change = 0;
};

const decomposition* find(const decomposition* list, std::size_t size,
                          std::uint32_t point) noexcept {
  const decomposition* found =
      std::lower_bound(list, list + size, point,
                       [](const decomposition& d, std::uint32_t p) { return d.point < p; });
  return found != list + size && found->point == point ? found : nullptr;
}

void push(std::vector<marked>& out, std::uint32_t point) {
  out.push_back({point, class_of_mark(point)});
}

void decompose(normal_form form, std::uint32_t point, std::vector<marked>& out) {
  if (point - syllable_base < syllable_count) {
    const std::uint32_t syllable = point - syllable_base;
    out.push_back({lead_base + syllable / (vowel_count * tail_count), 0});
    out.push_back({vowel_base + syllable / tail_count % vowel_count, 0});
    if (syllable % tail_count != 0) out.push_back({tail_base + syllable % tail_count, 0});
    return;
  }
  const decomposition* found = nullptr;
  if (form == normal_form::nfkc || form == normal_form::nfkd) {
    found = find(compatible_decompositions, compatible_decompositions_size, point);
  }
  if (!found) found = find(canonical_decompositions, canonical_decompositions_size, point);
  if (!found) return push(out, point);
  for (std::uint32_t i = 0; i < found->count; ++i) push(out, decomposed_points[found->begin + i]);
}

template <class Mark>
void sort_marks(Mark* begin, Mark* end) {
  const auto less = [](const Mark& a, const Mark& b) {
    return a.combining_class < b.combining_class;
  };
  if (std::is_sorted(begin, end, less)) return;
  constexpr std::ptrdiff_t few = 16;
  if (end - begin > few) return std::stable_sort(begin, end, less);
  for (Mark* next = begin + 1; next < end; ++next) {
    Mark* const place = std::upper_bound(begin, next, *next, less);
    std::rotate(place, next, next + 1);
  }
}

// Sorts each run of marks between two starters by combining class. Marks of equal class keep their
// order.
template <class Mark>
void reorder(std::vector<Mark>& points) {
  Mark* const all = points.data();
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    while (end < points.size() && points[end].combining_class != 0) ++end;
    if (end > begin + 1) sort_marks(all + begin, all + end);
    begin = end + 1;
  }
}

// The character that two characters compose to, or 0.
std::uint32_t composed(std::uint32_t first, std::uint32_t second) noexcept {
  if (first - lead_base < lead_count && second - vowel_base < vowel_count) {
    return syllable_base + ((first - lead_base) * vowel_count + (second - vowel_base)) * tail_count;
  }
  const std::uint32_t tail = second - tail_base;
  if (first - syllable_base < syllable_count && (first - syllable_base) % tail_count == 0 &&
      tail - 1 < tail_count - 1) {
    return first + tail;
  }
  const composition* end = compositions + compositions_size;
  const composition* found = std::lower_bound(
      compositions, end, std::tie(first, second),
      [](const composition& c, const auto& pair) { return std::tie(c.first, c.second) < pair; });
  return found != end && found->first == first && found->second == second ? found->composed : 0;
}

// Calls joined(starter, next) when `next` was composed with the character before it, `starter`.
template <class Mark, class Joined>
void compose(std::vector<Mark>& points, Joined joined) {
  std::size_t size = 0;
  std::size_t starter = points.size();  // no starter yet
  for (const Mark next : points) {
    if (starter < size) {
      // Some characters between the starter and `next` block the composition: another starter, or a
      // mark whose class is not lower than that of `next`.
      const std::uint32_t before = points[size - 1].combining_class;
      const bool adjacent = size - 1 == starter;
      const bool blocked = !adjacent && (before == 0 || before >= next.combining_class);
      if (!blocked) {
        if (const std::uint32_t point = composed(points[starter].point, next.point)) {
          points[starter].point = point;
          joined(points[starter], next);
          continue;
        }
      }
    }
    if (next.combining_class == 0) starter = size;
    points[size++] = next;
  }
  points.resize(size);
}

// The number of bytes that are looked at together.
constexpr std::size_t step = 64;

// True if the `step` bytes from `begin` are ASCII.
bool is_ascii_step(const char* begin) noexcept {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < step; i += sizeof any) {
    std::uint64_t eight;
    std::memcpy(&eight, begin + i, sizeof eight);
    any |= eight;
  }
  return (any & 0x8080808080808080) == 0;
}

// Skips steps of ASCII bytes. Returns the offset where it stops.
std::size_t skip_ascii(std::string_view text, std::size_t at) noexcept {
  while (text.size() - at >= step && is_ascii_step(text.data() + at)) at += step;
  return at;
}

// Returns -1 if the three bytes may begin a character that is not stable in NFC, otherwise 0. All
// characters of some ranges are stable: Latin (up to U+02FF), Cyrillic (up to U+047F), ideographs
// and most Hangul syllables. A continuation byte begins no character. For kana, punctuation and
// full-width forms, the second and third bytes decide.
//
// Bytes are signed, because every vector unit can compare signed bytes. ASCII bytes are then not
// negative. The code has no branches and uses integers that are 0 or -1, so that compilers can
// vectorize it.
constexpr signed char may_be_unstable_in_nfc(signed char byte, signed char second,
                                             signed char third) noexcept {
  constexpr auto of = [](int value) { return static_cast<signed char>(value - 0x100); };
  constexpr auto when = [](bool holds) { return static_cast<signed char>(-int{holds}); };
  constexpr auto both = [](signed char a, signed char b) {
    return static_cast<signed char>(a & b);
  };
  constexpr auto any = [](signed char a, signed char b) { return static_cast<signed char>(a | b); };
  constexpr auto is_in = [=](signed char value, int low, int high) {
    return both(when(value >= of(low)), when(value <= of(high)));
  };
  const signed char odd = both(when(byte < 0), when(byte >= of(0xCC)));
  // Not stable: the combining marks from U+302A and from U+3099.
  const signed char odd_kana = any(both(when(second == of(0x80)), is_in(third, 0xAA, 0xAF)),
                                   both(when(second == of(0x82)), is_in(third, 0x99, 0x9A)));
  const signed char even =
      any(any(is_in(byte, 0xD0, 0xD1), is_in(byte, 0xE4, 0xE9)), is_in(byte, 0xEB, 0xEC));
  // Stable: U+2002 to U+203F, and U+FF00 and above.
  const signed char even_mark =
      both(when(byte == of(0xE2)), both(when(second == of(0x80)), when(third >= of(0x82))));
  const signed char even_wide = both(when(byte == of(0xEF)), when(second >= of(0xBC)));
  const signed char even_kana = both(when(byte == of(0xE3)), static_cast<signed char>(~odd_kana));
  return both(odd, static_cast<signed char>(~any(any(even, even_kana), any(even_mark, even_wide))));
}

std::size_t skip_stable_in_nfc(std::string_view text, std::size_t at) noexcept {
  std::size_t end = at;
  for (; text.size() - end >= step + 2; end += step) {
    if (is_ascii_step(text.data() + end)) continue;
    signed char any = 0;
    for (std::size_t i = end; i < end + step; ++i) {
      const auto byte = [&](std::size_t k) { return static_cast<signed char>(text[k]); };
      any =
          static_cast<signed char>(any | may_be_unstable_in_nfc(byte(i), byte(i + 1), byte(i + 2)));
    }
    if (any != 0) break;
  }
  // Go back to the start of a character, because a step may end inside one.
  while (end > at && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return end;
}

struct stretch_to_normalize {
  std::size_t begin;  // start of the last stable character before `found`, or start of the scan
  std::size_t found;  // the first unstable character, or the end of the text
};

stretch_to_normalize next_unstable(normal_form form, std::string_view text, std::size_t at) {
  std::size_t last = at;
  std::uint32_t last_class = 0;  // class of the latest mark after the character at `last`
  while (at < text.size()) {
    const std::size_t next =
        form == normal_form::nfc ? skip_stable_in_nfc(text, at) : skip_ascii(text, at);
    if (next > at) {
      at = next;
      last = character_before(text, at);
      last_class = 0;
      if (at == text.size()) break;
    }
    // Check the next 256 bytes one character at a time, so that isolated non-ASCII characters do
    // not each cost a scan of 64 bytes.
    const std::size_t by_hand = at + std::min<std::size_t>(text.size() - at, 256);
    while (at < by_hand) {
      const code_point point = code_point_at(text, at);
      if (point.value < 0x80 || is_stable(form, point.value)) {
        last = at;
        last_class = 0;
      } else {
        if (!is_stable(form, point.value, in_order)) return {last, at};
        const std::uint32_t mark = class_of_mark(point.value);
        if (mark < last_class) return {last, at};
        last_class = mark;
      }
      at += point.size_bytes;
    }
  }
  return {text.size(), text.size()};
}

}  // namespace

std::string_view normalize_to(normal_form form, std::string_view text, std::string& buffer,
                              const std::function<void(std::size_t)>& made) {
  constexpr std::size_t untold = 4096;  // bytes or code points between two calls of `made`
  std::vector<marked> points;
  std::string piece;
  std::size_t copied = 0;  // bytes of `text` already in the buffer
  bool changed = false;
  std::size_t tell_at = untold;
  const auto tell = [&](std::size_t now) {
    if (now < tell_at || !made) return;
    tell_at = now + untold;
    made(now);
  };
  for (std::size_t at = 0; at < text.size();) {
    const stretch_to_normalize stretch = next_unstable(form, text, at);
    if (stretch.found >= text.size()) break;
    points.clear();
    const std::size_t written = changed ? buffer.size() : 0;
    std::size_t end = stretch.begin;
    while (end < text.size()) {
      const code_point point = code_point_at(text, end);
      if (end > stretch.found && is_stable(form, point.value)) break;
      decompose(form, point.value, points);
      end += point.size_bytes;
      // Report here too. A stretch may be the whole text, although most stretches are very short.
      tell(written + points.size());
    }
    reorder(points);
    if (form == normal_form::nfc || form == normal_form::nfkc)
      compose(points, [](marked&, const marked&) {});
    piece.clear();
    for (const marked& point : points) append_code_point(piece, point.point);
    at = end;
    if (piece == text.substr(stretch.begin, end - stretch.begin)) continue;
    if (!changed) buffer.clear();
    changed = true;
    buffer.append(text, copied, stretch.begin - copied).append(piece);
    copied = end;
  }
  if (!changed) return text;
  buffer.append(text, copied);
  return buffer;
}

std::vector<changed_character> changes_of(normal_form form, std::string_view text) {
  std::vector<changed_mark> points;
  points.reserve(text.size());
  std::vector<marked> parts;
  for (std::size_t at = 0; at < text.size();) {
    const code_point point = code_point_at(text, at);
    at += point.size_bytes;
    parts.clear();
    decompose(form, point.value, parts);
    std::int32_t change = 0;
    for (const marked& part : parts) {
      points.push_back({part, change});
      change = 1;
    }
  }
  reorder(points);
  if (form == normal_form::nfc || form == normal_form::nfkc) {
    compose(points, [](changed_mark& starter, const changed_mark& next) {
      starter.change += next.change - 1;
    });
  }
  std::vector<changed_character> changes;
  changes.reserve(points.size());
  for (const changed_mark& point : points) changes.push_back({point.point, point.change});
  return changes;
}

std::uint32_t lowercase_of(std::uint32_t point) noexcept {
  const lowercase_pair* end = lowercase_pairs + lowercase_pairs_size;
  const lowercase_pair* found =
      std::lower_bound(lowercase_pairs, end, point,
                       [](const lowercase_pair& pair, std::uint32_t p) { return pair.from < p; });
  return found != end && found->from == point ? found->to : point;
}

}  // namespace millrace::tokenizer::detail
