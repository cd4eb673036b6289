// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>

#include "renderer.hpp"

namespace millrace::chat {
namespace {

constexpr std::size_t npos = std::string_view::npos;

std::string_view name_of(method_code code) {
  switch (code) {
    case method_code::get:
      return "get";
    case method_code::items:
      return "items";
    case method_code::keys:
      return "keys";
    case method_code::values:
      return "values";
    case method_code::split:
      return "split";
    case method_code::rsplit:
      return "rsplit";
    default:
      return "a method";
  }
}

/// str.splitlines()
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t c = next_code_point(text, at);
    const bool ends = (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace

value renderer::call_method(const value& self, method_code code, arguments given,
                            std::span<const named_argument> named) {
  const auto counts = [&](std::size_t least, std::size_t most) {
    if (given.size() < least || given.size() > most) {
      fail(std::string(name_of(code)) + " got " + std::to_string(given.size()) +
           " arguments, expected " + std::to_string(least) +
           (most == least ? "" : " to " + std::to_string(most)));
    }
  };
  if (self.is_string() && (code == method_code::split || code == method_code::rsplit)) {
    value separator;
    std::int64_t most = -1;
    counts(0, 2);
    if (!given.empty()) separator = given[0];
    if (given.size() == 2) most = integer_argument(given[1], "the second argument of split");
    for (const named_argument& argument : named) {
      if (argument.name == "sep" && given.empty()) {
        separator = argument.given;
      } else if (argument.name == "maxsplit" && given.size() < 2) {
        most = integer_argument(argument.given, "maxsplit");
      } else {
        fail("split has no argument " + std::string(argument.name) + ", or got it twice");
      }
    }
    return split(self, code == method_code::rsplit, separator, most);
  }
  if (!named.empty()) {
    if (self.is_string() && code == method_code::splitlines && given.empty() && named.size() == 1 &&
        named[0].name == "keepends") {
      return call_string_method(self, code, std::span<const value>(&named[0].given, 1));
    }
    fail("the method takes no keyword arguments");
  }
  if (self.is_string()) return call_string_method(self, code, given);
  if (self.is(value_kind::loop)) {
    auto& data = *const_cast<loop_data*>(static_cast<const loop_data*>(self.object()));
    return call_loop_method(data, code, given);
  }
  switch (code) {
    case method_code::copy:
      counts(0, 0);
      return self;  // values never change
    case method_code::count: {
      counts(1, 1);
      charge(self.items().size() * 16);
      const auto found = std::count_if(self.items().begin(), self.items().end(),
                                       [&](const value& one) { return equal(one, given[0]); });
      return value(static_cast<std::int64_t>(found));
    }
    case method_code::index: {
      counts(1, 1);
      charge(self.items().size() * 16);
      for (std::size_t i = 0; i < self.items().size(); ++i) {
        if (equal(self.items()[i], given[0])) return value(static_cast<std::int64_t>(i));
      }
      fail("index: the list has no such item");
    }
    case method_code::get: {
      counts(1, 2);
      check_hashable(given[0]);
      if (const value* found = find_key(self, given[0])) return *found;
      return given.size() == 2 ? given[1] : value();
    }
    default: {  // items, keys, values
      counts(0, 0);
      const auto entries = self.entries();
      charge(entries.size() * 16);
      auto* made = pool_.allocate_array<value>(entries.size());
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (code == method_code::items) {
          const value pair[2] = {entries[i].key, entries[i].item};
          new (made + i) value(value_kind::tuple, pool_.list(pair).items());
        } else {
          new (made + i) value(code == method_code::keys ? entries[i].key : entries[i].item);
        }
      }
      return value(value_kind::view, std::span<const value>(made, entries.size()));
    }
  }
}

value renderer::split(const value& self, bool from_right, const value& separator,
                      std::int64_t most) {
  const std::string_view text = self.text();
  charge(text.size());
  if (most < 0) most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::string_view> parts;
  if (separator.is(value_kind::none)) {
    std::string_view rest = strip_space(text, from_right ? strip_side::right : strip_side::left);
    const auto side = from_right ? strip_side::right : strip_side::left;
    while (!rest.empty() && most-- > 0) {
      // The next word, from either end.
      std::size_t begin = from_right ? rest.size() : 0;
      std::size_t end = begin;
      if (from_right) {
        while (begin > 0) {
          std::size_t at = begin - 1;
          while ((rest[at] & 0xC0) == 0x80) --at;
          std::size_t after = at;
          if (is_python_space(next_code_point(rest, after))) break;
          begin = at;
        }
        parts.push_back(rest.substr(begin));
        rest = strip_space(rest.substr(0, begin), side);
      } else {
        while (end < rest.size()) {
          std::size_t after = end;
          if (is_python_space(next_code_point(rest, after))) break;
          end = after;
        }
        parts.push_back(rest.substr(0, end));
        rest = strip_space(rest.substr(end), side);
      }
    }
    if (!rest.empty()) {
      parts.push_back(strip_space(rest, from_right ? strip_side::left : strip_side::right));
      if (parts.back().empty()) parts.pop_back();
    }
  } else {
    const std::string_view mark = string_argument(separator, "the separator of split");
    if (mark.empty()) fail("the separator of split is empty");
    std::string_view rest = text;
    while (most-- > 0) {
      const std::size_t at = from_right ? rest.rfind(mark) : rest.find(mark);
      if (at == npos) break;
      if (from_right) {
        parts.push_back(rest.substr(at + mark.size()));
        rest = rest.substr(0, at);
      } else {
        parts.push_back(rest.substr(0, at));
        rest.remove_prefix(at + mark.size());
      }
    }
    parts.push_back(rest);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  auto* made = pool_.allocate_array<value>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    new (made + i) value(value(parts[i]).as_markup(self.is_markup()));
  }
  return value(std::span<const value>(made, parts.size()));
}

value renderer::call_loop_method(loop_data& of, method_code code, arguments given) {
  if (code == method_code::cycle) {
    if (given.empty()) fail("loop.cycle needs at least 1 argument");
    return given[static_cast<std::size_t>(of.index0) % given.size()];
  }
  const value now(value_kind::tuple, given);
  if (of.has_changed && equal(of.changed, now)) return value(false);
  of.has_changed = true;
  of.changed = now;
  return value(true);
}

value renderer::call_string_method(const value& self, method_code code, arguments given) {
  const std::string_view text = self.text();
  charge(text.size());
  const auto counts = [&](std::size_t least, std::size_t most) {
    if (given.size() < least || given.size() > most) {
      fail("a method of a string got " + std::to_string(given.size()) + " arguments, expected " +
           std::to_string(least) + (most == least ? "" : " to " + std::to_string(most)));
    }
  };
  const auto like = [&](std::string_view part) { return value(part).as_markup(self.is_markup()); };
  const auto strip = [&](strip_side side) {
    counts(0, 1);
    if (given.empty() || given[0].is(value_kind::none)) return like(strip_space(text, side));
    return like(strip_any_of(text, string_argument(given[0], "the argument of strip"), side));
  };
  /// Whether one of the strings is at the front or the end.
  const auto is_at = [&](bool front) {
    if (given.size() > 1) fail("startswith and endswith with a position are not supported");
    counts(1, 1);
    const auto one = [&](const value& of) {
      const std::string_view part = string_argument(of, "the argument of startswith or endswith");
      return front ? text.substr(0, part.size()) == part
                   : text.size() >= part.size() && text.substr(text.size() - part.size()) == part;
    };
    if (!given[0].is(value_kind::tuple)) return value(one(given[0]));
    for (const value& of : given[0].items()) {
      if (one(of)) return value(true);
    }
    return value(false);
  };
  const auto index_of = [&](std::size_t at) {
    return value(at == npos ? std::int64_t{-1}
                            : static_cast<std::int64_t>(count_code_points(text.substr(0, at))));
  };
  switch (code) {
    case method_code::capitalize:
      counts(0, 0);
      return own_like(self, capitalized(text));
    case method_code::lower:
      counts(0, 0);
      return own_like(self, to_lower(text));
    case method_code::upper:
      counts(0, 0);
      return own_like(self, to_upper(text));
    case method_code::title:
      counts(0, 0);
      return own_like(self, titled(text));
    case method_code::strip:
      return strip(strip_side::both);
    case method_code::lstrip:
      return strip(strip_side::left);
    case method_code::rstrip:
      return strip(strip_side::right);
    case method_code::startswith:
      return is_at(true);
    case method_code::endswith:
      return is_at(false);
    case method_code::removeprefix:
    case method_code::removesuffix: {
      counts(1, 1);
      const std::string_view part =
          string_argument(given[0], "the argument of removeprefix or removesuffix");
      if (part.size() > text.size() || part.empty()) return self;
      if (code == method_code::removeprefix) {
        return text.substr(0, part.size()) == part ? like(text.substr(part.size())) : self;
      }
      const std::string_view before = text.substr(0, text.size() - part.size());
      return text.substr(before.size()) == part ? like(before) : self;
    }
    case method_code::find:
    case method_code::rfind:
    case method_code::index: {
      if (given.size() > 1) fail("find, rfind and index with a position are not supported");
      counts(1, 1);
      const std::string_view part = string_argument(given[0], "the argument of find");
      const std::size_t at = code == method_code::rfind ? text.rfind(part) : text.find(part);
      if (at == npos && code == method_code::index) fail("index: the string has no such part");
      return index_of(at);
    }
    case method_code::count: {
      if (given.size() > 1) fail("count with a position is not supported");
      counts(1, 1);
      const std::string_view part = string_argument(given[0], "the argument of count");
      if (part.empty()) return value(static_cast<std::int64_t>(count_code_points(text)) + 1);
      std::int64_t found = 0;
      for (std::size_t at = text.find(part); at != npos; at = text.find(part, at + part.size()))
        ++found;
      return value(found);
    }
    case method_code::replace: {
      counts(2, 3);
      const std::string_view from = string_argument(given[0], "the first argument of replace");
      const std::string_view to = self.is_markup()
                                      ? escaped(given[1]).text()
                                      : string_argument(given[1], "the second argument of replace");
      std::int64_t most =
          given.size() == 3 ? integer_argument(given[2], "the count of replace") : -1;
      if (most < 0) most = std::numeric_limits<std::int64_t>::max();
      std::string out;
      std::size_t at = 0;
      if (from.empty()) {
        while (most-- > 0) {
          out += to;
          if (at == text.size()) break;
          const std::size_t begin = at;
          (void)next_code_point(text, at);
          out += text.substr(begin, at - begin);
        }
      } else {
        while (most-- > 0) {
          const std::size_t found = text.find(from, at);
          if (found == npos) break;
          out += text.substr(at, found - at);
          out += to;
          at = found + from.size();
          if (out.size() > limits_.memory_bytes) fail("the result of replace is too long");
        }
      }
      out += text.substr(std::min(at, text.size()));
      charge(out.size());
      return own_like(self, out);
    }
    case method_code::join: {
      counts(1, 1);
      std::string out;
      bool first = true;
      for (const value& one : all_items(given[0])) {
        if (!first) out += text;
        first = false;
        if (self.is_markup()) {
          out += escaped(one).text();
        } else {
          if (!one.is_string())
            fail(std::string("join: expected strings, found ") + type_name(one));
          out += one.text();
        }
      }
      charge(out.size());
      return own_like(self, out);
    }
    case method_code::splitlines: {
      counts(0, 1);
      std::vector<value> made;
      for (const std::string_view line : lines_of(text, !given.empty() && truth(given[0]))) {
        made.push_back(like(line));
      }
      return pool_.list(made);
    }
    default:
      fail("a method that strings do not have");
  }
}

value renderer::indent(const value& of, arguments given) {
  const auto argument = [&](std::size_t i) { return i < given.size() && !is_missing(given[i]); };
  std::string space(4, ' ');
  if (argument(0)) {
    if (given[0].is_string()) {
      space = given[0].text();
    } else {
      const std::int64_t width = integer_argument(given[0], "the width of indent");
      if (width > 10'000) fail("the width of indent is more than 10000");
      space.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
    }
  }
  if (!of.is_string()) fail(std::string("indent needs a string, found ") + type_name(of));
  const std::string text = std::string(of.text()) + "\n";
  const auto lines = lines_of(text, false);
  const bool blank = argument(2) && truth(given[2]);
  std::string out;
  if (argument(1) && truth(given[1])) out += space;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += space;
    }
    out += lines[i];
  }
  charge(out.size());
  return own_like(of, out);
}

}  // namespace millrace::chat
