// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>

#include "renderer.hpp"

namespace millrace::chat {
namespace {

bool has_argument(std::span<const value> given, std::size_t i) {
  return i < given.size() && !is_missing(given[i]);
}

/// The digits of a number in Python's notation without underscores, or an empty text if it is not
/// one: a digit must be on both sides of each underscore.
std::string without_underscores(std::string_view text) {
  std::string out;
  const auto digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
      return {};
    }
  }
  return out;
}

bool parse_real(std::string_view source, double& out) {
  std::string text = without_underscores(strip_space(source, strip_side::both));
  if (text.empty()) return false;
  std::string lower = to_lower(text);
  const std::size_t sign = lower[0] == '-' || lower[0] == '+' ? 1 : 0;
  const std::string unsigned_text = lower.substr(sign);
  const bool is_word =
      unsigned_text == "inf" || unsigned_text == "infinity" || unsigned_text == "nan";
  if (!is_word && lower.find_first_not_of("0123456789+-.e") != std::string::npos) return false;
  char* end = nullptr;
  out = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && end != text.c_str();
}

/// The whole number in `text` without leading zeros, or an empty text.
std::string parse_digits(std::string_view source) {
  std::string text = without_underscores(strip_space(source, strip_side::both));
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (at == text.size() || text.find_first_not_of("0123456789", at) != std::string::npos) return {};
  const bool negative = text[0] == '-';
  text.erase(0, std::min(text.find_first_not_of('0', at), text.size() - 1));
  return negative && text != "0" ? "-" + text : text;
}

}  // namespace

value renderer::to_real(const value& of, const value& default_value) {
  if (of.is(value_kind::undefined)) fail_undefined(of);
  double number = 0;
  if (is_number(of)) {
    number = to_double(of);
    if (std::isinf(number) && of.is(value_kind::big_integer))
      fail("an integer is too large for a float");
    return value(number);
  }
  if (of.is_string() && parse_real(of.text(), number)) return value(number);
  return default_value;
}

value renderer::to_integer(const value& of, const value& default_value) {
  if (of.is(value_kind::undefined)) fail_undefined(of);
  const auto from_digits = [&](const std::string& digits) {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec == std::errc()) return value(number);
    return value(value_kind::big_integer, own(digits).text());
  };
  const auto from_real = [&](double number) {
    std::string digits(330, '\0');
    const int size = std::snprintf(digits.data(), digits.size(), "%.0f", std::trunc(number));
    digits.resize(static_cast<std::size_t>(size));
    return from_digits(digits == "-0" ? "0" : digits);
  };
  switch (of.kind()) {
    case value_kind::boolean:
    case value_kind::integer:
      return value(of.integer());
    case value_kind::big_integer:
      return of;
    case value_kind::real:
      if (std::isinf(of.real())) fail("int of an infinite float");
      return std::isnan(of.real()) ? default_value : from_real(of.real());
    case value_kind::string: {
      if (const std::string digits = parse_digits(of.text());
          !digits.empty() && digits.size() <= 4300) {
        return from_digits(digits);
      }
      double number = 0;
      if (!parse_real(of.text(), number) || !std::isfinite(number)) return default_value;
      return from_real(number);
    }
    default:
      return default_value;
  }
}

value renderer::to_json(const value& of, arguments given) {
  json_style style;
  style.ensure_ascii = has_argument(given, 0) && truth(given[0]);
  if (has_argument(given, 1) && !given[1].is(value_kind::none)) {
    style.pretty = true;
    style.item_separator = ",";
    if (given[1].is_string()) {
      style.indent = given[1].text();
    } else {
      const std::int64_t width = integer_argument(given[1], "the indent of tojson");
      if (width > 1000) fail("the indent of tojson is more than 1000");
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
    }
  }
  if (has_argument(given, 2) && !given[2].is(value_kind::none)) {
    const auto items = all_items(given[2]);
    if (items.size() != 2) fail("the separators of tojson must be two strings");
    style.item_separator = string_argument(items[0], "a separator of tojson");
    style.key_separator = string_argument(items[1], "a separator of tojson");
  }
  style.sort_keys = has_argument(given, 3) && truth(given[3]);
  std::string out;
  append_json(of, style, out);
  charge(out.size());
  return own(out);
}

value renderer::dictsort(const value& of, arguments given) {
  if (of.is(value_kind::undefined)) fail_undefined(of);
  if (!of.is(value_kind::dict)) fail(std::string("dictsort needs a dict, found ") + type_name(of));
  const bool case_sensitive = has_argument(given, 0) && truth(given[0]);
  std::size_t by = 0;
  if (has_argument(given, 1)) {
    const std::string_view name = given[1].is_string() ? given[1].text() : "";
    if (name != "key" && name != "value") fail("the argument by of dictsort must be key or value");
    by = name == "key" ? 0 : 1;
  }
  struct keyed {
    value key;
    value pair;
  };
  std::vector<keyed> pairs;
  for (const dict_entry& entry : of.entries()) {
    const value pair[2] = {entry.key, entry.item};
    value key = pair[by];
    if (key.is_string() && !case_sensitive) key = own(to_lower(key.text()));
    pairs.push_back({key, value(value_kind::tuple, pool_.list(pair).items())});
  }
  charge(pairs.size() * 64);
  const bool reverse = has_argument(given, 2) && truth(given[2]);
  std::stable_sort(pairs.begin(), pairs.end(), [&](const keyed& a, const keyed& b) {
    return reverse ? less(b.key, a.key) : less(a.key, b.key);
  });
  std::vector<value> sorted;
  sorted.reserve(pairs.size());
  for (const keyed& one : pairs) sorted.push_back(one.pair);
  return pool_.list(sorted);
}

value renderer::sort(const value& of, arguments given) {
  const bool reverse = has_argument(given, 0) && truth(given[0]);
  const bool case_sensitive = has_argument(given, 1) && truth(given[1]);
  if (has_argument(given, 2) && given[2].is_string() &&
      given[2].text().find(',') != std::string_view::npos) {
    fail("sort by several attributes is not supported");
  }
  struct keyed {
    value key;
    value item;
  };
  std::vector<keyed> items;
  for (const value& one : all_items(of)) {
    value key = has_argument(given, 2) ? item_by_path(one, given[2], value()) : one;
    if (key.is_string() && !case_sensitive) key = own(to_lower(key.text()));
    items.push_back({key, one});
  }
  charge(items.size() * 64);
  std::stable_sort(items.begin(), items.end(), [&](const keyed& a, const keyed& b) {
    // Jinja compares lists of one key each, so keys that are equal need no order.
    if (equal(a.key, b.key)) return false;
    if (a.key.is(value_kind::undefined)) fail_undefined(a.key);
    if (b.key.is(value_kind::undefined)) fail_undefined(b.key);
    return reverse ? less(b.key, a.key) : less(a.key, b.key);
  });
  std::vector<value> sorted;
  sorted.reserve(items.size());
  for (const keyed& one : items) sorted.push_back(one.item);
  return pool_.list(sorted);
}

value renderer::join(const value& of, arguments given) {
  std::string out;
  const std::string_view between = has_argument(given, 0) ? text_of(given[0]) : std::string_view();
  bool first = true;
  item_source source = iterate(of);
  value one;
  while (next(source, one)) {
    step();
    if (!first) out += between;
    first = false;
    if (has_argument(given, 1)) one = item_by_path(one, given[1], value());
    append_text(one, out);
    if (out.size() > limits_.memory_bytes) fail("the result of join is too long");
  }
  charge(out.size());
  return own(out);
}

value renderer::generator(const node& filter, const value& input, arguments given) {
  auto* made = new (pool_.allocate(sizeof(generator_data), alignof(generator_data))) generator_data;
  made->filter = &filter;
  made->input = input;
  made->arguments = given;
  return value(value_kind::generator, made);
}

value renderer::generator_of(std::span<const value> items) {
  auto* made = new (pool_.allocate(sizeof(generator_data), alignof(generator_data))) generator_data;
  made->items = items;
  return value(value_kind::generator, made);
}

/// Runs map, select, reject, selectattr, rejectattr or items.
void renderer::compute(generator_data& of) {
  const node& n = *of.filter;
  of.filter = nullptr;
  check_stack();
  std::vector<value> made;
  const auto code = static_cast<filter_code>(n.code);
  if (code == filter_code::items) {
    if (!of.input.is(value_kind::undefined)) {
      if (!of.input.is(value_kind::dict)) {
        fail(std::string("the filter items needs a dict, found ") + type_name(of.input));
      }
      of.items = call_method(of.input, method_code::items, {}, {}).items();
    }
    return;
  }
  if (!truth(of.input)) return;
  const bool by_attribute = code == filter_code::selectattr || code == filter_code::rejectattr;
  const bool wanted = code == filter_code::select || code == filter_code::selectattr;
  item_source source = iterate(of.input);
  value one;
  while (next(source, one)) {
    step();
    if (code == filter_code::map) {
      if (n.b != nullptr) {
        made.push_back(apply_filter(*n.b, one, of.arguments));
      } else {
        made.push_back(item_by_path(one, of.arguments[0], of.arguments[1]));
      }
      continue;
    }
    const value tested = by_attribute ? item_by_path(one, of.arguments[0], value()) : one;
    const arguments rest = by_attribute ? of.arguments.subspan(1) : of.arguments;
    const bool result = n.b == nullptr
                            ? truth(tested)
                            : test_result(static_cast<test_code>(n.b->code), tested, rest);
    if (result == wanted) made.push_back(one);
  }
  of.items = pool_.list(made).items();
}

value renderer::apply_filter(const node& n, const value& input, arguments given) {
  step();
  switch (static_cast<filter_code>(n.code)) {
    case filter_code::abs:
      if (input.is(value_kind::undefined)) fail_undefined(input);
      if (!is_number(input)) fail(std::string("abs needs a number, found ") + type_name(input));
      if (input.is(value_kind::real)) return value(std::fabs(input.real()));
      if (input.is(value_kind::big_integer) ? input.text()[0] == '-' : input.integer() < 0)
        return negate(input);
      return input.is(value_kind::boolean) ? value(input.integer()) : input;
    case filter_code::capitalize: {
      const value text = soft(input);
      charge(text.text().size());
      return own_like(text, capitalized(text.text()));
    }
    case filter_code::default_value: {
      const bool replaces = input.is(value_kind::undefined) ||
                            (has_argument(given, 1) && truth(given[1]) && !truth(input));
      if (!replaces) return input;
      return has_argument(given, 0) ? given[0] : value(std::string_view());
    }
    case filter_code::dictsort:
      return dictsort(input, given);
    case filter_code::first: {
      item_source source = iterate(input);
      value one;
      static constexpr std::string_view name = "the first item of an empty sequence";
      return next(source, one) ? one : undefined_value(&name);
    }
    case filter_code::float_number:
      return to_real(input, has_argument(given, 0) ? given[0] : value(0.0));
    case filter_code::indent:
      return indent(input, given);
    case filter_code::int_number:
      if (has_argument(given, 1) && !equal(given[1], value(std::int64_t{10}))) {
        fail("the filter int with another base than 10 is not supported");
      }
      return to_integer(input, has_argument(given, 0) ? given[0] : value(std::int64_t{0}));
    case filter_code::items:
    case filter_code::map:
    case filter_code::select:
    case filter_code::selectattr:
    case filter_code::reject:
    case filter_code::rejectattr:
      return generator(n, input, given);
    case filter_code::join:
      return join(input, given);
    case filter_code::last: {
      if (input.is(value_kind::generator))
        fail("the filter last needs a sequence, found generator");
      const auto items = all_items(input);
      static constexpr std::string_view name = "the last item of an empty sequence";
      return items.empty() ? undefined_value(&name) : items.back();
    }
    case filter_code::length:
      return value(static_cast<std::int64_t>(length(input)));
    case filter_code::list:
      return pool_.list(all_items(input));
    case filter_code::lower: {
      const value text = soft(input);
      charge(text.text().size());
      return own_like(text, to_lower(text.text()));
    }
    case filter_code::upper: {
      const value text = soft(input);
      charge(text.text().size());
      return own_like(text, to_upper(text.text()));
    }
    case filter_code::replace: {
      const value count = has_argument(given, 2) && !given[2].is(value_kind::none)
                              ? given[2]
                              : value(std::int64_t{-1});
      const value three[3] = {value(text_of(given[0])), value(text_of(given[1])), count};
      return call_string_method(value(text_of(input)), method_code::replace, three);
    }
    case filter_code::reverse: {
      if (input.is_string()) return slice(input, {}, {}, value(std::int64_t{-1}));
      const auto items = all_items(input);
      std::vector<value> reversed(items.rbegin(), items.rend());
      const value made = pool_.list(reversed);
      return input.is(value_kind::generator) ? made : generator_of(made.items());
    }
    case filter_code::safe:
      return soft(input).as_markup(true);
    case filter_code::sort:
      return sort(input, given);
    case filter_code::string:
      return soft(input);
    case filter_code::title: {
      // Words begin after white space and some brackets, but not after other punctuation.
      const value text = soft(input);
      const std::string_view source = text.text();
      charge(source.size());
      std::string out;
      std::size_t begin = 0;
      const auto word = [&](std::size_t end) {
        if (end == begin) return;
        std::size_t after = begin;
        append_cased(next_code_point(source, after), letter_case::upper, out);
        out += to_lower(source.substr(after, end - after));
        begin = end;
      };
      for (std::size_t at = 0; at < source.size();) {
        const std::size_t before = at;
        const char32_t c = next_code_point(source, at);
        if (is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<') {
          word(before);
          out += source.substr(before, at - before);
          begin = at;
        }
      }
      word(source.size());
      return own_like(value(), out);
    }
    case filter_code::tojson:
      return to_json(input, given);
    case filter_code::trim: {
      const value text = soft(input);
      const bool any = has_argument(given, 0) && !given[0].is(value_kind::none);
      return call_string_method(text, method_code::strip, any ? given.subspan(0, 1) : arguments{});
    }
  }
  fail("an unknown filter");
}

value renderer::apply_test(test_code code, const value& input, arguments given) {
  return value(test_result(code, input, given));
}

bool renderer::test_result(test_code code, const value& input, arguments given) {
  const auto rest_of_division = [&](std::int64_t by) {
    if (input.is(value_kind::undefined)) fail_undefined(input);
    return arithmetic(node_kind::modulo, input, value(by));
  };
  switch (code) {
    case test_code::boolean:
      return input.is(value_kind::boolean);
    case test_code::defined:
      return !input.is(value_kind::undefined);
    case test_code::undefined:
      return input.is(value_kind::undefined);
    case test_code::divisibleby:
      if (input.is_string()) fail("divisibleby needs a number");
      return equal(arithmetic(node_kind::modulo, input, given[0]), value(std::int64_t{0}));
    case test_code::eq:
      return compare_once(compare_code::eq, input, given[0]);
    case test_code::ne:
      return compare_once(compare_code::ne, input, given[0]);
    case test_code::lt:
      return compare_once(compare_code::lt, input, given[0]);
    case test_code::le:
      return compare_once(compare_code::le, input, given[0]);
    case test_code::gt:
      return compare_once(compare_code::gt, input, given[0]);
    case test_code::ge:
      return compare_once(compare_code::ge, input, given[0]);
    case test_code::in:
      return compare_once(compare_code::in, input, given[0]);
    case test_code::even:
    case test_code::odd:
      if (input.is_string()) fail("even and odd need a number");
      return equal(rest_of_division(2), value(std::int64_t{code == test_code::odd ? 1 : 0}));
    case test_code::true_value:
      return input.is(value_kind::boolean) && input.integer() != 0;
    case test_code::false_value:
      return input.is(value_kind::boolean) && input.integer() == 0;
    case test_code::none:
      return input.is(value_kind::none);
    case test_code::integer:
      return input.is(value_kind::integer) || input.is(value_kind::big_integer);
    case test_code::float_number:
      return input.is(value_kind::real);
    case test_code::number:
      return is_number(input);
    case test_code::string:
      return input.is_string();
    case test_code::mapping:
      return input.is(value_kind::dict);
    case test_code::sequence:
      return input.is_string() || input.is(value_kind::list) || input.is(value_kind::tuple) ||
             input.is(value_kind::dict) || input.is(value_kind::range) ||
             input.is(value_kind::undefined);
    case test_code::iterable:
      return input.is_string() || input.is(value_kind::list) || input.is(value_kind::tuple) ||
             input.is(value_kind::dict) || input.is(value_kind::range) ||
             input.is(value_kind::undefined) || input.is(value_kind::view) ||
             input.is(value_kind::generator) || input.is(value_kind::loop);
    case test_code::lower:
    case test_code::upper: {
      // str.islower(): there is a cased character, and none of the other case.
      const std::string_view text = text_of(input);
      charge(text.size());
      const std::string lower = to_lower(text);
      const std::string upper = to_upper(text);
      return lower != upper && text == (code == test_code::lower ? lower : upper);
    }
  }
  fail("an unknown test");
}

}  // namespace millrace::chat
