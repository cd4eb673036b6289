// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "renderer.hpp"

namespace millrace::chat {
namespace {

bool is_integer(const value& of) {
  return of.is(value_kind::integer) || of.is(value_kind::boolean);
}

const char* symbol(node_kind kind) {
  switch (kind) {
    case node_kind::subtract:
      return "-";
    case node_kind::multiply:
      return "*";
    case node_kind::divide:
      return "/";
    case node_kind::floor_divide:
      return "//";
    case node_kind::modulo:
      return "%";
    case node_kind::power:
      return "**";
    default:
      return "+";
  }
}

/// Python's % of floats: the sign is that of the divisor.
double real_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  if ((b < 0) != (rest < 0)) rest += b;
  return rest;
}

double real_floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

/// The method names of Python's dict and list that change the object. Jinja's sandbox hides them.
bool changes_dict(std::string_view name) {
  return name == "pop" || name == "popitem" || name == "update" || name == "clear" ||
         name == "setdefault";
}

}  // namespace

value renderer::negate(const value& of) {
  if (of.is(value_kind::real)) return value(-of.real());
  if (of.is(value_kind::big_integer)) {
    const std::string_view digits = of.text();
    if (digits[0] == '-') return value(value_kind::big_integer, digits.substr(1));
    if (digits == "9223372036854775808") return value(std::numeric_limits<std::int64_t>::min());
    return value(value_kind::big_integer, own("-" + std::string(digits)).text());
  }
  if (of.integer() == std::numeric_limits<std::int64_t>::min()) {
    return value(value_kind::big_integer, std::string_view("9223372036854775808"));
  }
  return value(-of.integer());
}

value renderer::escaped(const value& of) {
  if (of.is_string() && of.is_markup()) return of;
  const std::string_view text = text_of(of);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return own(out).as_markup(true);
}

value renderer::add(const value& a, const value& b) {
  if (a.is_string() && b.is_string()) {
    charge(a.text().size() + b.text().size());
    if (!a.is_markup() && !b.is_markup()) return value(pool_.concatenate(a.text(), b.text()));
    // Markup escapes what it is joined with.
    return value(pool_.concatenate(escaped(a).text(), escaped(b).text())).as_markup(true);
  }
  return arithmetic(node_kind::add, a, b);
}

value renderer::repeat(const value& sequence, const value& times) {
  if (!is_integer(times))
    fail(std::string("cannot repeat a value by a value of type ") + type_name(times));
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, times.integer()));
  if (sequence.is_string()) {
    const std::string_view text = sequence.text();
    if (!text.empty() && count > limits_.memory_bytes / text.size())
      fail("a repeated string is too long");
    charge(text.size() * count);
    std::string out;
    for (std::size_t i = 0; i < count && !text.empty(); ++i) out += text;
    return own_like(sequence, out);
  }
  const auto items = sequence.items();
  if (!items.empty() && count > limits_.memory_bytes / sizeof(value) / items.size()) {
    fail("a repeated list is too long");
  }
  charge(items.size() * count);
  auto* made = pool_.allocate_array<value>(items.size() * count);
  for (std::size_t i = 0; i < count && !items.empty(); ++i) {
    std::uninitialized_copy(items.begin(), items.end(), made + i * items.size());
  }
  return value(sequence.kind(), std::span<const value>(made, items.size() * count));
}

/// The operator % of a string: %s, %r, %d and %%.
value renderer::format(const value& pattern, const value& with) {
  if (pattern.is_markup()) fail("% of a string marked as safe is not supported");
  const bool is_tuple = with.is(value_kind::tuple);
  const std::span<const value> given = is_tuple ? with.items() : std::span<const value>(&with, 1);
  const std::string_view text = pattern.text();
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    if (++at == text.size()) fail("a format ends after %");
    if (text[at] == '%') {
      out += '%';
      continue;
    }
    if (text[at] != 's' && text[at] != 'd' && text[at] != 'r') {
      fail(std::string("the format %") + text[at] + " is not supported; %s, %r, %d and %% are");
    }
    if (used == given.size()) fail("too few arguments for a format");
    const value& one = given[used++];
    if (text[at] == 's') {
      append_text(one, out);
    } else if (text[at] == 'r') {
      append_repr(one, out);
    } else {
      if (!is_integer(one) && !one.is(value_kind::big_integer)) fail("%d needs an integer");
      append_repr(is_integer(one) ? value(one.integer()) : one, out);
    }
  }
  const bool is_mapping = with.is(value_kind::dict) || with.is(value_kind::list) ||
                          with.is(value_kind::range) || with.is(value_kind::undefined);
  if (used < given.size() && !is_mapping) fail("too many arguments for a format");
  return own(out);
}

value renderer::arithmetic(node_kind kind, const value& a, const value& b) {
  const auto mismatch = [&]() {
    fail(std::string("the operator ") + symbol(kind) + " does not take values of types " +
         type_name(a) + " and " + type_name(b));
  };
  if (kind == node_kind::modulo && a.is_string()) return format(a, b);
  if (a.is(value_kind::undefined)) fail_undefined(a);
  if (b.is(value_kind::undefined)) fail_undefined(b);
  const auto is_sequence = [](const value& v) {
    return v.is_string() || v.is(value_kind::list) || v.is(value_kind::tuple);
  };
  if (kind == node_kind::add && a.kind() == b.kind() &&
      (a.is(value_kind::list) || a.is(value_kind::tuple))) {
    const auto x = a.items();
    const auto y = b.items();
    charge(x.size() + y.size());
    auto* made = pool_.allocate_array<value>(x.size() + y.size());
    std::uninitialized_copy(x.begin(), x.end(), made);
    std::uninitialized_copy(y.begin(), y.end(), made + x.size());
    return value(a.kind(), std::span<const value>(made, x.size() + y.size()));
  }
  if (kind == node_kind::multiply && is_sequence(a) && is_integer(b)) return repeat(a, b);
  if (kind == node_kind::multiply && is_sequence(b) && is_integer(a)) return repeat(b, a);
  if (!is_number(a) || !is_number(b)) mismatch();

  const auto zero = [&]() { fail(std::string("division by zero with ") + symbol(kind)); };
  if (is_integer(a) && is_integer(b) && kind != node_kind::divide) {
    const std::int64_t x = a.integer();
    const std::int64_t y = b.integer();
    std::int64_t result = 0;
    bool overflow = false;
    switch (kind) {
      case node_kind::add:
        overflow = __builtin_add_overflow(x, y, &result);
        break;
      case node_kind::subtract:
        overflow = __builtin_sub_overflow(x, y, &result);
        break;
      case node_kind::multiply:
        overflow = __builtin_mul_overflow(x, y, &result);
        break;
      case node_kind::floor_divide:
      case node_kind::modulo: {
        if (y == 0) zero();
        if (y == -1) {
          // The quotient of the smallest integer would overflow.
          overflow = kind == node_kind::floor_divide &&
                     __builtin_sub_overflow(std::int64_t{0}, x, &result);
          break;
        }
        const std::int64_t rest = x % y;
        const bool adjust = rest != 0 && (rest < 0) != (y < 0);
        result = kind == node_kind::modulo ? rest + (adjust ? y : 0) : x / y - (adjust ? 1 : 0);
        break;
      }
      default: {
        if (y < 0) {
          if (x == 0) zero();
          return value(std::pow(static_cast<double>(x), static_cast<double>(y)));
        }
        result = 1;
        std::int64_t base = x;
        for (std::int64_t left = y; left > 0 && !overflow;) {
          if ((left & 1) != 0) overflow = __builtin_mul_overflow(result, base, &result);
          left >>= 1;
          if (left > 0 && !overflow) overflow = __builtin_mul_overflow(base, base, &base);
        }
      }
    }
    if (overflow) fail(std::string("the result of ") + symbol(kind) + " does not fit 64 bits");
    return value(result);
  }
  if ((a.is(value_kind::big_integer) || b.is(value_kind::big_integer)) && !a.is(value_kind::real) &&
      !b.is(value_kind::real)) {
    fail("arithmetic with integers beyond 64 bits is not supported");
  }
  const double x = to_double(a);
  const double y = to_double(b);
  if (std::isinf(x) && !a.is(value_kind::real)) fail("an integer is too large for a float");
  if (std::isinf(y) && !b.is(value_kind::real)) fail("an integer is too large for a float");
  switch (kind) {
    case node_kind::add:
      return value(x + y);
    case node_kind::subtract:
      return value(x - y);
    case node_kind::multiply:
      return value(x * y);
    case node_kind::divide:
      if (y == 0) zero();
      if (is_integer(a) && is_integer(b)) {
        // A long double holds both exactly, where a double would be rounded before the division.
        return value(static_cast<double>(static_cast<long double>(a.integer()) /
                                         static_cast<long double>(b.integer())));
      }
      return value(x / y);
    case node_kind::floor_divide:
      if (y == 0) zero();
      return value(real_floor_divide(x, y));
    case node_kind::modulo:
      if (y == 0) zero();
      return value(real_modulo(x, y));
    default: {
      if (x == 0 && y < 0) zero();
      if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) {
        fail("a power of a negative number is not real");
      }
      const double result = std::pow(x, y);
      if (std::isinf(result) && std::isfinite(x) && std::isfinite(y))
        fail("a power is too large for a float");
      return value(result);
    }
  }
}

// --- Comparisons -----------------------------------------------------------------------------

bool renderer::contains(const value& container, const value& item) {
  switch (container.kind()) {
    case value_kind::string:
      if (!item.is_string()) {
        fail(std::string("in a string, only a string can be searched, found ") + type_name(item));
      }
      charge(container.text().size());
      return container.text().find(item.text()) != std::string_view::npos;
    case value_kind::dict:
      check_hashable(item);
      return find_key(container, item) != nullptr;
    default: {
      item_source source = iterate(container);
      value one;
      while (next(source, one)) {
        step();
        if (equal(one, item)) return true;
      }
      return false;
    }
  }
}

bool renderer::compare_once(compare_code code, const value& a, const value& b) {
  switch (code) {
    case compare_code::eq:
      return equal(a, b);
    case compare_code::ne:
      return !equal(a, b);
    case compare_code::in:
      return contains(b, a);
    case compare_code::not_in:
      return !contains(b, a);
    default:
      break;
  }
  if (a.is(value_kind::undefined)) fail_undefined(a);
  if (b.is(value_kind::undefined)) fail_undefined(b);
  switch (code) {
    case compare_code::lt:
      return less(a, b);
    case compare_code::gt:
      return less(b, a);
    case compare_code::le:
      return less(a, b) || equal(a, b);
    default:
      return less(b, a) || equal(a, b);
  }
}

value renderer::compare(const node& n) {
  value left = evaluate(*n.a);
  for (std::size_t i = 0; i < n.items.size(); ++i) {
    const value right = evaluate(*n.items[i]);
    line_ = n.line;
    if (!compare_once(static_cast<compare_code>(n.codes[i]), left, right)) return value(false);
    left = right;
  }
  return value(true);
}

// --- Slices, items and attributes ------------------------------------------------------------

value renderer::slice(const value& of, const value& start, const value& stop,
                      const value& step_size) {
  if (of.is(value_kind::undefined)) fail_undefined(of);
  const bool is_list =
      of.is(value_kind::list) || of.is(value_kind::tuple) || of.is(value_kind::range);
  if (!is_list && !of.is_string())
    fail(std::string("a value of type ") + type_name(of) + " cannot be sliced");
  const auto size = static_cast<std::int64_t>(length(of));
  const auto bound = [&](const value& b, std::int64_t absent, std::int64_t low, std::int64_t high) {
    if (b.is(value_kind::none)) return absent;
    if (b.is(value_kind::big_integer)) return b.text()[0] == '-' ? low : high;
    if (!is_integer(b))
      fail(std::string("the bounds of a slice must be integers or none, found ") + type_name(b));
    std::int64_t at = b.integer();
    if (at < 0) at += size;
    return std::clamp(at, low, high);
  };
  std::int64_t by = 1;
  if (!step_size.is(value_kind::none)) by = integer_argument(step_size, "the step of a slice");
  if (by == 0) fail("the step of a slice must not be 0");
  by = std::clamp<std::int64_t>(by, -size - 1, size + 1);  // a longer one takes the same items
  const std::int64_t low = by > 0 ? 0 : -1;
  const std::int64_t high = by > 0 ? size : size - 1;
  const std::int64_t first = bound(start, by > 0 ? low : high, low, high);
  const std::int64_t last = bound(stop, by > 0 ? high : low, low, high);
  charge(static_cast<std::size_t>(size));
  if (of.is_string() && by == 1) {
    if (first >= last) return value(std::string_view()).as_markup(of.is_markup());
    const std::string_view text = of.text();
    const auto from = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(last - first);
    if (static_cast<std::size_t>(size) == text.size()) {
      return value(text.substr(from, count)).as_markup(of.is_markup());
    }
    const std::string_view rest = text.substr(byte_of_code_point(text, from));
    return value(rest.substr(0, byte_of_code_point(rest, count))).as_markup(of.is_markup());
  }
  const std::span<const value> items = all_items(of);
  std::vector<value> taken;
  for (std::int64_t i = first; by > 0 ? i < last : i > last; i += by) {
    taken.push_back(items[static_cast<std::size_t>(i)]);
  }
  if (of.is_string()) {
    std::string text;
    for (const value& one : taken) text += one.text();
    return own_like(of, text);
  }
  return value(of.kind(), pool_.list(taken).items());
}

bool renderer::has_method(const value& of, method_code code) const {
  switch (code) {
    case method_code::none:
      return false;
    case method_code::copy:
      return of.is(value_kind::dict) || of.is(value_kind::list);
    case method_code::get:
    case method_code::items:
    case method_code::keys:
    case method_code::values:
      return of.is(value_kind::dict);
    case method_code::count:
    case method_code::index:
      return of.is_string() || of.is(value_kind::list) || of.is(value_kind::tuple) ||
             of.is(value_kind::range);
    case method_code::cycle:
    case method_code::changed:
      return of.is(value_kind::loop);
    default:
      return of.is_string();
  }
}

value renderer::attribute(const value& of, const std::string_view& name, method_code code) {
  if (of.is(value_kind::undefined)) fail_undefined(of);
  if (has_method(of, code)) {
    auto* method =
        new (pool_.allocate(sizeof(method_data), alignof(method_data))) method_data{of, code};
    return value(value_kind::method, method);
  }
  switch (of.kind()) {
    case value_kind::dict:
      if (name == "fromkeys") fail("the method fromkeys is not supported");
      if (const value* found = of.find(name); found != nullptr && !changes_dict(name))
        return *found;
      break;
    case value_kind::space: {
      const auto* space = static_cast<const space_data*>(of.object());
      for (std::uint32_t i = 0; i < space->size; ++i) {
        if (space->entries[i].key.text() == name) return space->entries[i].item;
      }
      break;
    }
    case value_kind::loop:
      return loop_attribute(*const_cast<loop_data*>(static_cast<const loop_data*>(of.object())),
                            name);
    case value_kind::string:
    case value_kind::boolean:
    case value_kind::integer:
    case value_kind::big_integer:
    case value_kind::real:
      if (is_unsupported_method(name)) {
        fail("the attribute " + std::string(name) + " of a value of type " + type_name(of) +
             " is not supported");
      }
      break;
    case value_kind::macro:
    case value_kind::method:
    case value_kind::function:
    case value_kind::view:
    case value_kind::generator:
    case value_kind::range:
      fail("the attribute " + std::string(name) + " of a value of type " + type_name(of) +
           " is not supported");
    default:
      break;
  }
  return undefined_value(&name);
}

value renderer::item(const value& of, const value& key) {
  if (of.is(value_kind::undefined)) fail_undefined(of);
  if (of.is(value_kind::dict)) {
    if (const value* found = find_key(of, key)) return *found;
  } else if (key.is(value_kind::integer) || key.is(value_kind::boolean)) {
    std::int64_t at = key.integer();
    if (of.is_string()) {
      const std::string_view text = of.text();
      const auto size = static_cast<std::int64_t>(length(of));
      if (at < 0) at += size;
      if (at < 0 || at >= size) return undefined_value(nullptr);
      const std::string_view rest =
          text.substr(byte_of_code_point(text, static_cast<std::size_t>(at)));
      return value(rest.substr(0, byte_of_code_point(rest, 1))).as_markup(of.is_markup());
    }
    if (of.is(value_kind::list) || of.is(value_kind::tuple) || of.is(value_kind::range)) {
      const auto size = static_cast<std::int64_t>(of.items().size());
      if (at < 0) at += size;
      if (at < 0 || at >= size) return undefined_value(nullptr);
      return of.items()[static_cast<std::size_t>(at)];
    }
  }
  if (!key.is_string()) return undefined_value(nullptr);
  if (key.text().substr(0, 2) == "__") return undefined_value(nullptr);
  if (of.is(value_kind::dict)) {
    const method_code code = find_method(key.text());
    if (!has_method(of, code)) return undefined_value(nullptr);
  }
  // The string_view must outlive the value.
  auto* name = new (pool_.allocate(sizeof(std::string_view), alignof(std::string_view)))
      std::string_view(key.text());
  return attribute(of, *name, find_method(*name));
}

/// An attribute such as `function.name` of the filters map, selectattr and join.
value renderer::item_by_path(const value& of, const value& path, const value& default_value) {
  value current = of;
  const auto one = [&](const value& key) {
    current = item(current, key);
    if (current.is(value_kind::undefined) && !default_value.is(value_kind::none) &&
        !is_missing(default_value)) {
      current = default_value;
    }
  };
  if (path.is(value_kind::none)) return of;
  if (!path.is_string()) {
    one(path);
    return current;
  }
  std::string_view rest = path.text();
  for (;;) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (!part.empty() && part.size() < 18 &&
        part.find_first_not_of("0123456789") == std::string_view::npos) {
      one(value(static_cast<std::int64_t>(std::strtoll(std::string(part).c_str(), nullptr, 10))));
    } else {
      one(value(part));
    }
    if (end == rest.size()) return current;
    rest.remove_prefix(end + 1);
  }
}

value renderer::loop_attribute(loop_data& of, const std::string_view& name) {
  const auto peek = [&] {
    if (!of.has_after) of.has_after = pull(of, of.after);
    return of.has_after;
  };
  const auto length_of = [&] {
    if (of.length >= 0) return of.length;
    std::vector<value> rest;
    value one;
    while (pull(of, one)) rest.push_back(one);
    of.source = item_source{};
    of.source.items = pool_.list(rest).items();
    of.test = nullptr;
    of.length = static_cast<std::int64_t>(rest.size()) + of.index0 + 1 + (of.has_after ? 1 : 0);
    return of.length;
  };
  if (name == "index0") return value(of.index0);
  if (name == "index") return value(of.index0 + 1);
  if (name == "first") return value(of.index0 == 0);
  if (name == "last") return value(!peek());
  if (name == "length") return value(length_of());
  if (name == "revindex") return value(length_of() - of.index0);
  if (name == "revindex0") return value(length_of() - of.index0 - 1);
  if (name == "depth") return value(std::int64_t{1});
  if (name == "depth0") return value(std::int64_t{0});
  if (name == "previtem") return of.index0 == 0 ? undefined_value(&name) : of.before;
  if (name == "nextitem") return peek() ? of.after : undefined_value(&name);
  return undefined_value(&name);
}

}  // namespace millrace::chat
