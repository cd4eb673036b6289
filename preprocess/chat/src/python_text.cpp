// SPDX-License-Identifier: Apache-2.0
#include "python_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <millrace/formats/detail/utf8.hpp>

#include "python_text_tables.hpp"

namespace millrace::chat {
namespace {

constexpr int deepest = 250;  // values in values, when they are printed or compared

void check_depth(int depth) {
  if (depth > deepest) throw value_problem("a value is nested more than 250 levels deep");
}

bool in_ranges(const point_range* ranges, std::size_t count, char32_t c) {
  const auto* found = std::upper_bound(
      ranges, ranges + count, c, [](char32_t p, const point_range& r) { return p < r.first; });
  return found != ranges && c <= (found - 1)->last;
}

bool is_cased(char32_t c) {
  return in_ranges(cased_ranges, cased_range_count, c);
}
bool is_case_ignorable(char32_t c) {
  return in_ranges(case_ignorable_ranges, case_ignorable_range_count, c);
}

void append_hex(std::uint32_t number, int digits, std::string& out) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[number >> shift & 15U];
  }
}

void append_integer(std::int64_t number, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end.ptr);
}

void append_string_repr(std::string_view text, std::string& out) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"'
                                                                                            : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == U'\\' || c == static_cast<char32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == U'\n') {
      out += "\\n";
    } else if (c == U'\r') {
      out += "\\r";
    } else if (c == U'\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(text.substr(begin, at - begin));
    } else {
      const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
      out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
      append_hex(c, digits, out);
    }
  }
  out += quote;
}

void append_json_string(std::string_view text, bool ensure_ascii, std::string& out) {
  out += '"';
  std::size_t plain = 0;  // text from here on is copied as it is
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x7F || !ensure_ascii)) {
      ++at;
      continue;
    }
    out.append(text.substr(plain, at - plain));
    const char32_t c = next_code_point(text, at);
    plain = at;
    constexpr std::string_view names = "\"\\bfnrt";
    constexpr std::string_view bytes = "\"\\\b\f\n\r\t";
    if (const auto found = c < 0x80 ? bytes.find(static_cast<char>(c)) : std::string_view::npos;
        found != std::string_view::npos) {
      out += '\\';
      out += names[found];
    } else if (c < 0x10000) {
      out += "\\u";
      append_hex(c, 4, out);
    } else {
      out += "\\u";
      append_hex(0xD800 + ((c - 0x10000) >> 10), 4, out);
      out += "\\u";
      append_hex(0xDC00 + (c & 0x3FFU), 4, out);
    }
  }
  out.append(text.substr(plain));
  out += '"';
}

void append_items(std::span<const value> items, char open, char close, std::string& out,
                  int depth) {
  out += open;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    append_repr(items[i], out, depth + 1);
  }
  out += close;
}

void append_entries(std::span<const dict_entry> entries, std::string& out, int depth) {
  out += '{';
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i != 0) out += ", ";
    append_repr(entries[i].key, out, depth + 1);
    out += ": ";
    append_repr(entries[i].item, out, depth + 1);
  }
  out += '}';
}

std::strong_ordering compare_digits(std::string_view a, std::string_view b) {
  const bool negative = a[0] == '-';
  if (negative != (b[0] == '-'))
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  auto order = a.size() <=> b.size();
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  if (order == 0) order = a.compare(b) <=> 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  return negative ? 0 <=> order : order;
}

std::partial_ordering compare_numbers(const value& a, const value& b) {
  const auto big = [](const value& v) { return v.is(value_kind::big_integer); };
  const auto real = [](const value& v) { return v.is(value_kind::real); };
  if (!real(a) && !real(b)) {
    if (!big(a) && !big(b)) return a.integer() <=> b.integer();
    std::string digits[2];
    for (int i = 0; i < 2; ++i) {
      const value& v = i == 0 ? a : b;
      if (big(v)) {
        digits[i] = v.text();
      } else {
        append_integer(v.integer(), digits[i]);
      }
    }
    return compare_digits(digits[0], digits[1]);
  }
  // A long double holds every int64 exactly on the processors that this project supports.
  const auto exact = [&](const value& v) -> long double {
    if (real(v)) return v.real();
    if (!big(v)) return static_cast<long double>(v.integer());
    return std::strtold(std::string(v.text()).c_str(), nullptr);
  };
  return exact(a) <=> exact(b);
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t lead = byte(at);
  if (lead < 0x80) {
    ++at;
    return lead;
  }
  const std::size_t more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t c = lead & (0x3FU >> more);
  for (std::size_t i = 1; i <= more; ++i) c = c << 6 | (byte(at + i) & 0x3FU);
  at += more + 1;
  return c;
}

std::size_t count_code_points(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_ascii(std::string_view text) noexcept {
  unsigned any = 0;
  for (const char c : text) any |= static_cast<unsigned char>(c);
  return any < 0x80;
}

std::size_t byte_of_code_point(std::string_view text, std::size_t index) noexcept {
  std::size_t at = 0;
  while (index != 0) {
    ++at;
    while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
    --index;
  }
  return at;
}

bool is_python_space(char32_t c) noexcept {
  if (c < 0x80) return c == ' ' || (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

namespace {

template <class Wanted>
std::string_view strip_if(std::string_view text, strip_side side, Wanted wanted) {
  if (side != strip_side::right) {
    while (!text.empty()) {
      std::size_t at = 0;
      if (!wanted(next_code_point(text, at))) break;
      text.remove_prefix(at);
    }
  }
  if (side != strip_side::left) {
    while (!text.empty()) {
      std::size_t begin = text.size() - 1;
      while ((text[begin] & 0xC0) == 0x80) --begin;
      std::size_t at = begin;
      if (!wanted(next_code_point(text, at))) break;
      text = text.substr(0, begin);
    }
  }
  return text;
}

}  // namespace

std::string_view strip_space(std::string_view text, strip_side side) noexcept {
  return strip_if(text, side, is_python_space);
}

std::string_view strip_any_of(std::string_view text, std::string_view characters, strip_side side) {
  std::vector<char32_t> set;
  for (std::size_t at = 0; at < characters.size();) set.push_back(next_code_point(characters, at));
  return strip_if(text, side,
                  [&](char32_t c) { return std::find(set.begin(), set.end(), c) != set.end(); });
}

bool is_printable(char32_t c) noexcept {
  if (c < 0x7F) return c >= 0x20;
  return !in_ranges(unprintable_ranges, unprintable_range_count, c);
}

void append_cased(char32_t c, letter_case to, std::string& out) {
  if (c < 0x80) {
    const bool change = to == letter_case::lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
    out += static_cast<char>(change ? c ^ 0x20U : c);
    return;
  }
  const case_run* runs = to == letter_case::upper   ? upper_runs
                         : to == letter_case::lower ? lower_runs
                                                    : title_runs;
  const std::size_t run_count = to == letter_case::upper   ? upper_run_count
                                : to == letter_case::lower ? lower_run_count
                                                           : title_run_count;
  const case_text* texts = to == letter_case::upper   ? upper_texts
                           : to == letter_case::lower ? lower_texts
                                                      : title_texts;
  const std::size_t text_count = to == letter_case::upper   ? upper_text_count
                                 : to == letter_case::lower ? lower_text_count
                                                            : title_text_count;
  const auto* text = std::lower_bound(texts, texts + text_count, c,
                                      [](const case_text& t, char32_t p) { return t.point < p; });
  if (text != texts + text_count && text->point == c) {
    out += text->utf8;
    return;
  }
  const auto* run = std::upper_bound(runs, runs + run_count, c,
                                     [](char32_t p, const case_run& r) { return p < r.first; });
  if (run != runs) {
    --run;
    if (c <= run->last && (c - run->first) % run->step == 0) {
      c = static_cast<char32_t>(static_cast<std::int32_t>(c) + run->delta);
    }
  }
  formats::append_utf8(c, out);
}

namespace {

/// Appends the lower case of the code point in text[begin, end). A capital sigma at the end of a
/// word becomes a final one.
void append_lower(std::string_view text, std::size_t begin, std::size_t end, char32_t c,
                  std::string& out) {
  if (c != 0x3A3) return append_cased(c, letter_case::lower, out);
  bool cased_before = false;
  for (std::size_t at = begin; at > 0;) {
    --at;
    while ((text[at] & 0xC0) == 0x80) --at;
    std::size_t next = at;
    const char32_t before = next_code_point(text, next);
    if (is_case_ignorable(before)) continue;
    cased_before = is_cased(before);
    break;
  }
  bool cased_after = false;
  for (std::size_t at = end; at < text.size();) {
    const char32_t after = next_code_point(text, at);
    if (is_case_ignorable(after)) continue;
    cased_after = is_cased(after);
    break;
  }
  formats::append_utf8(cased_before && !cased_after ? 0x3C2 : 0x3C3, out);
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    append_lower(text, begin, at, c, out);
  }
  return out;
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();)
    append_cased(next_code_point(text, at), letter_case::upper, out);
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (begin == 0) {
      append_cased(c, letter_case::title, out);
    } else {
      append_lower(text, begin, at, c, out);
    }
  }
  return out;
}

std::string titled(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (in_word) {
      append_lower(text, begin, at, c, out);
    } else {
      append_cased(c, letter_case::title, out);
    }
    in_word = is_cased(c);
  }
  return out;
}

// ---------------------------------------------------------------------------------------------

void append_real(double number, std::string& out) {
  if (std::isnan(number)) {
    out += "nan";
    return;
  }
  if (std::signbit(number)) out += '-';
  number = std::fabs(number);
  if (std::isinf(number)) {
    out += "inf";
    return;
  }
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  const std::string_view shortest(text, static_cast<std::size_t>(end.ptr - text));
  const std::size_t mark = shortest.find('e');
  std::string digits(shortest.substr(0, mark));
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  const int exponent = std::atoi(std::string(shortest.substr(mark + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    if (std::abs(exponent) < 10) out += '0';
    append_integer(std::abs(exponent), out);
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() < whole) digits.append(whole - digits.size(), '0');
    out.append(digits, 0, whole).append(".");
    if (digits.size() > whole) {
      out.append(digits, whole);
    } else {
      out += '0';
    }
  }
}

void append_text(const value& of, std::string& out) {
  switch (of.kind()) {
    case value_kind::string:
      out.append(of.text());
      return;
    case value_kind::undefined:
      return;
    default:
      append_repr(of, out);
  }
}

void append_repr(const value& of, std::string& out, int depth) {
  check_depth(depth);
  switch (of.kind()) {
    case value_kind::none:
      out += "None";
      return;
    case value_kind::boolean:
      out += of.integer() != 0 ? "True" : "False";
      return;
    case value_kind::integer:
      return append_integer(of.integer(), out);
    case value_kind::big_integer:
      out.append(of.text());
      return;
    case value_kind::real:
      return append_real(of.real(), out);
    case value_kind::string:
      if (of.is_markup()) out += "Markup(";
      append_string_repr(of.text(), out);
      if (of.is_markup()) out += ')';
      return;
    case value_kind::list:
      return append_items(of.items(), '[', ']', out, depth);
    case value_kind::tuple:
      append_items(of.items(), '(', ')', out, depth);
      if (of.items().size() == 1) out.insert(out.size() - 1, ",");
      return;
    case value_kind::dict:
      return append_entries(of.entries(), out, depth);
    case value_kind::undefined:
      out += "Undefined";
      return;
    case value_kind::space: {
      const auto* space = static_cast<const space_data*>(of.object());
      out += "<Namespace ";
      append_entries({space->entries, space->size}, out, depth);
      out += '>';
      return;
    }
    default:
      throw value_problem(std::string("a value of type ") + type_name(of) + " cannot be printed");
  }
}

void append_json(const value& of, const json_style& style, std::string& out, int depth) {
  check_depth(depth);
  const auto line = [&](int level) {
    if (!style.pretty) return;
    out += '\n';
    for (int i = 0; i < level; ++i) out += style.indent;
  };
  switch (of.kind()) {
    case value_kind::none:
      out += "null";
      return;
    case value_kind::boolean:
      out += of.integer() != 0 ? "true" : "false";
      return;
    case value_kind::integer:
    case value_kind::big_integer:
      return append_repr(of, out);
    case value_kind::real:
      if (std::isnan(of.real())) {
        out += "NaN";
      } else if (std::isinf(of.real())) {
        out += of.real() < 0 ? "-Infinity" : "Infinity";
      } else {
        append_real(of.real(), out);
      }
      return;
    case value_kind::string:
      return append_json_string(of.text(), style.ensure_ascii, out);
    case value_kind::list:
    case value_kind::tuple: {
      if (of.items().empty()) {
        out += "[]";
        return;
      }
      out += '[';
      bool first = true;
      for (const value& item : of.items()) {
        if (!first) out += style.item_separator;
        first = false;
        line(depth + 1);
        append_json(item, style, out, depth + 1);
      }
      line(depth);
      out += ']';
      return;
    }
    case value_kind::dict: {
      if (of.entries().empty()) {
        out += "{}";
        return;
      }
      std::vector<const dict_entry*> entries;
      for (const dict_entry& entry : of.entries()) entries.push_back(&entry);
      if (style.sort_keys) {
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto* a, const auto* b) { return less(a->key, b->key); });
      }
      out += '{';
      bool first = true;
      for (const dict_entry* entry : entries) {
        if (!first) out += style.item_separator;
        first = false;
        line(depth + 1);
        std::string key;
        if (entry->key.is_string()) {
          key = entry->key.text();
        } else if (entry->key.is(value_kind::none) || is_number(entry->key)) {
          append_json(entry->key, style, key, depth + 1);
        } else {
          throw value_problem(
              std::string("tojson: keys must be str, int, float, bool or None, not ") +
              type_name(entry->key));
        }
        append_json_string(key, style.ensure_ascii, out);
        out += style.key_separator;
        append_json(entry->item, style, out, depth + 1);
      }
      line(depth);
      out += '}';
      return;
    }
    default:
      throw value_problem(std::string("tojson: a value of type ") + type_name(of) +
                          " is not JSON serializable");
  }
}

// ---------------------------------------------------------------------------------------------

bool is_number(const value& of) noexcept {
  return of.is(value_kind::integer) || of.is(value_kind::boolean) || of.is(value_kind::real) ||
         of.is(value_kind::big_integer);
}

double to_double(const value& number) {
  if (number.is(value_kind::real)) return number.real();
  if (number.is(value_kind::big_integer))
    return std::strtod(std::string(number.text()).c_str(), nullptr);
  return static_cast<double>(number.integer());
}

bool equal(const value& a, const value& b, int depth) {
  check_depth(depth);
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  if (is_number(a)) return is_number(b) && compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case value_kind::none:
    case value_kind::undefined:
      return true;
    case value_kind::string:
      return a.text() == b.text();
    case value_kind::list:
    case value_kind::tuple:
    case value_kind::range:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                        [&](const value& x, const value& y) { return equal(x, y, depth + 1); });
    case value_kind::dict:
      return a.entries().size() == b.entries().size() &&
             std::all_of(a.entries().begin(), a.entries().end(), [&](const dict_entry& entry) {
               const value* other = find_key(b, entry.key);
               return other != nullptr && equal(entry.item, *other, depth + 1);
             });
    case value_kind::view:
      throw value_problem("== is not supported between views of dicts");
    default:
      return a.object() == b.object();
  }
}

bool less(const value& a, const value& b, int depth) {
  check_depth(depth);
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  if (is_number(a) && is_number(b)) return compare_numbers(a, b) < 0;
  if (a.is_string() && b.is_string()) return a.text() < b.text();
  if (a.kind() == b.kind() && (a.is(value_kind::list) || a.is(value_kind::tuple))) {
    const auto x = a.items();
    const auto y = b.items();
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(x[i], y[i], depth + 1)) return less(x[i], y[i], depth + 1);
    }
    return x.size() < y.size();
  }
  throw value_problem(std::string("values of types ") + type_name(a) + " and " + type_name(b) +
                      " have no order");
}

bool truth(const value& of) noexcept {
  switch (of.kind()) {
    case value_kind::none:
    case value_kind::undefined:
      return false;
    case value_kind::boolean:
    case value_kind::integer:
      return of.integer() != 0;
    case value_kind::real:
      return of.real() != 0;
    case value_kind::string:
      return !of.text().empty();
    case value_kind::list:
    case value_kind::tuple:
    case value_kind::range:
    case value_kind::view:
      return !of.items().empty();
    case value_kind::dict:
      return !of.entries().empty();
    default:
      return true;
  }
}

const char* type_name(const value& of) noexcept {
  switch (of.kind()) {
    case value_kind::none:
      return "NoneType";
    case value_kind::boolean:
      return "bool";
    case value_kind::integer:
    case value_kind::big_integer:
      return "int";
    case value_kind::real:
      return "float";
    case value_kind::string:
      return of.is_markup() ? "Markup" : "str";
    case value_kind::list:
      return "list";
    case value_kind::tuple:
      return "tuple";
    case value_kind::dict:
      return "dict";
    case value_kind::undefined:
      return "Undefined";
    case value_kind::range:
      return "range";
    case value_kind::view:
      return "view of a dict";
    case value_kind::space:
      return "namespace";
    case value_kind::generator:
      return "generator";
    case value_kind::macro:
      return "macro";
    case value_kind::method:
      return "method";
    case value_kind::function:
      return "function";
    case value_kind::loop:
      return "loop";
  }
  return "";
}

void check_hashable(const value& key, int depth) {
  check_depth(depth);
  if (key.is(value_kind::tuple)) {
    for (const value& item : key.items()) check_hashable(item, depth + 1);
  } else if (key.is(value_kind::list) || key.is(value_kind::dict) || key.is(value_kind::view)) {
    throw value_problem(std::string("a value of type ") + type_name(key) +
                        " cannot be the key of a dict");
  }
}

const value* find_key(const value& dict, const value& key) {
  if (key.is_string()) return dict.find(key.text());
  for (const dict_entry& entry : dict.entries()) {
    if (equal(entry.key, key)) return &entry.item;
  }
  return nullptr;
}

}  // namespace millrace::chat
