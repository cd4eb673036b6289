// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <millrace/formats/detail/in_quotes.hpp>

#include "regex/pattern_reader.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::pair<std::string_view, reference_set> posix_sets[] = {
    {"alnum", reference_set::posix_alnum}, {"alpha", reference_set::posix_alpha},
    {"blank", reference_set::posix_blank}, {"cntrl", reference_set::posix_cntrl},
    {"digit", reference_set::posix_digit}, {"graph", reference_set::posix_graph},
    {"lower", reference_set::posix_lower}, {"print", reference_set::posix_print},
    {"punct", reference_set::posix_punct}, {"space", reference_set::posix_space},
    {"upper", reference_set::posix_upper}, {"xdigit", reference_set::posix_xdigit},
    {"word", reference_set::posix_word}};

constexpr std::pair<std::string_view, reference_set> script_sets[] = {
    {"arabic", reference_set::script_arabic},
    {"armenian", reference_set::script_armenian},
    {"bengali", reference_set::script_bengali},
    {"cyrillic", reference_set::script_cyrillic},
    {"devanagari", reference_set::script_devanagari},
    {"georgian", reference_set::script_georgian},
    {"greek", reference_set::script_greek},
    {"hangul", reference_set::script_hangul},
    {"han", reference_set::script_han},
    {"hebrew", reference_set::script_hebrew},
    {"hiragana", reference_set::script_hiragana},
    {"katakana", reference_set::script_katakana},
    {"latin", reference_set::script_latin},
    {"tamil", reference_set::script_tamil},
    {"telugu", reference_set::script_telugu},
    {"thai", reference_set::script_thai}};

constexpr std::pair<std::string_view, std::string_view> long_names[] = {
    {"letter", "L"},           {"mark", "M"},
    {"number", "N"},           {"punctuation", "P"},
    {"symbol", "S"},           {"separator", "Z"},
    {"uppercaseletter", "Lu"}, {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"}, {"modifierletter", "Lm"},
    {"otherletter", "Lo"},     {"nonspacingmark", "Mn"},
    {"decimalnumber", "Nd"},   {"control", "Cc"},
    {"format", "Cf"}};

template <class Table>
auto value_of(const Table& table, std::string_view name) {
  const auto* found = std::ranges::find(table, name, [](const auto& entry) { return entry.first; });
  return found == std::end(table) ? nullptr : &found->second;
}

// Normalizes a property name: case, spaces, hyphens and underscores are not significant.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

code_point_set property(const pattern_reader& in, std::string_view name) {
  std::string plain = plain_name(name);
  code_point_set set;
  if (const auto* script = value_of(script_sets, plain)) {
    set.add(bounds_of(*script));
    return set;
  }
  if (const auto* category = value_of(long_names, plain)) plain = *category;
  if (!plain.empty() && plain[0] >= 'a' && plain[0] <= 'z') {
    plain[0] = static_cast<char>(plain[0] - 'a' + 'A');
  }
  if (plain.size() > 2 || !set.add_category(plain)) {
    in.fail("the property " + formats::in_quotes(name) + " is not supported");
  }
  return set;
}

escape read_property(pattern_reader& in, bool negated) {
  if (!in.take("{")) in.fail("\\p without braces is not supported");
  if (in.take("^")) negated = !negated;
  const auto name = in.take_until('}');
  if (!name) in.fail("the braces of \\p have no end");
  escape found{.is_set = true, .set = property(in, *name)};
  if (negated) found.set.invert();
  return found;
}

std::uint32_t hex_digit(std::uint32_t c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Reads a hexadecimal number of at least `least` and at most `limit` digits.
std::uint32_t read_hex(pattern_reader& in, std::size_t least, std::size_t limit) {
  std::uint32_t value = 0;
  std::size_t count = 0;
  for (; count < limit && !in.at_end(); ++count) {
    const std::size_t before = in.offset();
    const std::uint32_t digit = hex_digit(in.next());
    if (digit == 16) {
      in.go_to(before);
      break;
    }
    value = value << 4 | digit;
  }
  if (count < least) in.fail("hexadecimal digits are missing");
  if (value >= code_point_set::limit) in.fail("is not a code point");
  return value;
}

escape read_hex_escape(pattern_reader& in) {
  if (in.take("{")) {
    const std::uint32_t value = read_hex(in, 1, 6);
    if (!in.take("}")) in.fail("expected '}' after the hexadecimal digits");
    return {.point = value, .set = {}};
  }
  const std::uint32_t value = read_hex(in, 1, 2);
  if (value >= 0x80) in.fail("\\x means a byte here, not a character; write \\x{...}");
  return {.point = value, .set = {}};
}

escape named_set(reference_set name, bool negated) {
  escape found{.is_set = true, .set = code_point_set(name)};
  if (negated) found.set.invert();
  return found;
}

escape hex_digits(bool negated) {
  escape found{.is_set = true, .set = {}};
  found.set.add('0', '9');
  found.set.add('a', 'f');
  found.set.add('A', 'F');
  if (negated) found.set.invert();
  return found;
}

// A class that is being read. It is an intersection of unions.
class class_builder {
 public:
  void add(std::uint32_t first, std::uint32_t last) noexcept { current_.add(first, last); }
  void add(const code_point_set& set) noexcept { current_.add(set); }
  code_point_set& current() noexcept { return current_; }

  void intersect() {
    if (has_left_) current_.intersect(left_);
    left_ = std::move(current_);
    current_ = code_point_set();
    has_left_ = true;
  }
  code_point_set finish(bool negated) {
    if (has_left_) current_.intersect(left_);
    if (negated) current_.invert();
    return std::move(current_);
  }

 private:
  code_point_set current_;
  code_point_set left_;
  bool has_left_ = false;
};

void read_posix(pattern_reader& in, class_builder& out) {
  const bool negated = in.take("^");
  const auto name = in.take_until(':');
  const auto* known = name ? value_of(posix_sets, *name) : nullptr;
  if (known == nullptr || !in.take("]")) in.fail("unknown class in [: :]");
  code_point_set set(*known);
  if (negated) set.invert();
  out.add(set);
}

// Reads the end of a range if a hyphen follows `first`. Adds that range, or only `first`, to `out`.
void read_range(pattern_reader& in, std::uint32_t first, bool ignores_case, std::size_t depth,
                class_builder& out) {
  std::uint32_t last = first;
  const std::size_t hyphen = in.offset();
  if (in.take("-")) {
    if (in.sees("]")) {
      in.go_to(hyphen);  // a hyphen at the end is a literal
    } else {
      if (in.at_end() || in.sees("[") || in.sees("&&")) in.fail("a range without an end");
      last = in.next();
      if (last == '\\') {
        const escape end = read_escape(in, true);
        if (end.is_set) in.fail("a range that ends with a set");
        last = end.point;
      }
      if (last < first) in.fail("a range that ends before it begins");
      // In Oniguruma, a class with such a range loses the characters beyond ASCII when it is
      // negated.
      if (depth > 0 && first == 0 && last >= 0x80) {
        in.fail("a range from U+0000 to beyond ASCII in a nested class is not supported");
      }
      if (in.sees("-") && !in.sees("-]")) in.fail("a hyphen after a range is not supported");
    }
  }
  out.add(first, last);
  if (!ignores_case) return;
  for (std::uint32_t point = first; point <= last; ++point) add_cases(in, point, out.current());
}

void read_item(pattern_reader& in, bool ignores_case, std::size_t depth, class_builder& out) {
  if (in.take("[:")) return read_posix(in, out);
  if (in.take("[")) return out.add(read_class(in, ignores_case, depth + 1));
  const std::uint32_t first = in.next();
  if (first != '\\') return read_range(in, first, ignores_case, depth, out);
  const std::size_t behind = in.offset();
  if (in.take("b")) return read_range(in, 0x08, ignores_case, depth, out);
  const escape found = read_escape(in, true);
  if (!found.is_set) return read_range(in, found.point, ignores_case, depth, out);
  const bool has_letters = found.set.meets('A', 'Z') || found.set.meets('a', 'z');
  if (ignores_case && has_letters) {
    in.go_to(behind);
    in.fail("a set with letters in a class under (?i) is not supported");
  }
  if (in.sees("-") && !in.sees("-]")) in.fail("a hyphen after a set is not supported");
  out.add(found.set);
}

}  // namespace

escape read_escape(pattern_reader& in, bool in_class) {
  if (in.at_end()) in.fail("a backslash at the end");
  const std::size_t begin = in.offset();
  const std::uint32_t c = in.next();
  switch (c) {
    case 's':
    case 'S':
      return named_set(reference_set::white_space, c == 'S');
    case 'd':
    case 'D':
      return named_set(reference_set::decimal, c == 'D');
    case 'w':
    case 'W':
      return named_set(in_class ? reference_set::posix_word : reference_set::word, c == 'W');
    case 'h':
    case 'H':
      return hex_digits(c == 'H');
    case 'p':
    case 'P':
      return read_property(in, c == 'P');
    case 'x':
      return read_hex_escape(in);
    case 'u':
      return {.point = read_hex(in, 4, 4), .set = {}};
    default:
      break;
  }
  constexpr std::string_view names = "ntrfvae";
  constexpr std::string_view values = "\n\t\r\f\v\a\x1b";
  if (c < 0x80) {
    const std::size_t named = names.find(static_cast<char>(c));
    if (named != std::string_view::npos) {
      return {.point = static_cast<unsigned char>(values[named]), .set = {}};
    }
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (alphanumeric) {
      in.go_to(begin);
      in.fail("the escape \\" + std::string(1, static_cast<char>(c)) + " is not supported");
    }
  }
  return {.point = c, .set = {}};
}

void add_cases(const pattern_reader& in, std::uint32_t point, code_point_set& set) {
  if (point >= 0x80) in.fail("a character beyond ASCII under (?i) is not supported");
  const bool upper = point >= 'A' && point <= 'Z';
  const bool lower = point >= 'a' && point <= 'z';
  set.add(point, point);
  if (!upper && !lower) return;
  const std::uint32_t other = point ^ 0x20;
  set.add(other, other);
  if ((point | 0x20) == 'k') set.add(0x212A, 0x212A);
  if ((point | 0x20) == 's') set.add(0x017F, 0x017F);
}

code_point_set read_class(pattern_reader& in, bool ignores_case, std::size_t depth) {
  if (depth > 100) in.fail("classes are nested too deeply");
  const std::size_t begin = in.offset();
  const bool negated = in.take("^");
  class_builder out;
  bool is_first = true;
  for (;; is_first = false) {
    if (in.at_end()) {
      in.go_to(begin);
      in.fail("a class without an end");
    }
    if (!is_first && in.take("]")) return out.finish(negated);
    if (in.take("&&")) {
      if (is_first || in.sees("]") || in.sees("&&")) in.fail("&& without a set on each side");
      out.intersect();
      continue;
    }
    read_item(in, ignores_case, depth, out);
  }
}

}  // namespace millrace::tokenizer::detail
