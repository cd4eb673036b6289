// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>

#include <millrace/formats/detail/utf8.hpp>

#include "python_text.hpp"
#include "syntax.hpp"

namespace millrace::chat {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class lexer {
 public:
  explicit lexer(chat_template::program& into) : into_(into), source_(into.source) {}

  std::vector<token> run() {
    while (at_ < source_.size()) root();
    tokens_.push_back({token_kind::end, line_});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw template_error(into_.name, line_, problem);
  }

  bool looking_at(std::string_view what) const { return source_.substr(at_, what.size()) == what; }
  /// The end of the white space that begins at `at`.
  std::size_t space_end(std::size_t at) const {
    const std::string_view rest = source_.substr(at);
    return at + (rest.size() - strip_space(rest, strip_side::left).size());
  }
  void advance(std::size_t to) {
    line_ += static_cast<std::uint32_t>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                   source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    if (to > at_) line_starting_ = source_[to - 1] == '\n';
    at_ = to;
  }

  /// Adds the text from `at_` to `end`, where a tag with this sign begins, and advances to the tag.
  void data(std::size_t end, char sign, bool is_variable) {
    std::string_view text = source_.substr(at_, end - at_);
    if (sign == '-') {
      text = strip_space(text, strip_side::right);
    } else if (sign != '+' && !is_variable) {
      const std::size_t line_begin = text.rfind('\n') + 1;  // 0 if there is no line end
      if ((line_begin > 0 || line_starting_) &&
          strip_space(text.substr(line_begin), strip_side::left).empty()) {
        text = text.substr(0, line_begin);
      }
    }
    if (!text.empty()) tokens_.push_back({token_kind::data, line_, text});
    advance(end);
  }

  static constexpr std::size_t npos = std::string_view::npos;

  char sign_at(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  /// The end of a tag whose closing bytes, at `at`, may have a sign before and white space after,
  /// or npos.
  std::size_t close(std::size_t at, std::string_view closing, bool plus, bool trim) const {
    const std::string_view rest = source_.substr(at);
    if (plus && rest.substr(0, 1) == "+" && rest.substr(1, 2) == closing) return at + 3;
    if (rest.substr(0, 1) == "-" && rest.substr(1, 2) == closing) return space_end(at + 3);
    if (rest.substr(0, 2) != closing) return npos;
    return at + (trim && rest.substr(2, 1) == "\n" ? 3U : 2U);
  }

  void root() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == npos || tag + 1 == source_.size()) {
        tag = npos;
        break;
      }
      const char kind = source_[tag + 1];
      if (kind == '%' || kind == '{' || kind == '#') break;
    }
    if (tag == npos) {
      tokens_.push_back({token_kind::data, line_, source_.substr(at_)});
      return advance(source_.size());
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    const std::size_t inside = tag + (sign == '\0' ? 2 : 3);
    data(tag, sign, kind == '{');
    if (kind == '#') return comment(inside);
    if (kind == '%' && raw(inside)) return;
    tokens_.push_back({kind == '{' ? token_kind::variable_begin : token_kind::block_begin, line_});
    advance(inside);
    inside_tag(kind == '{');
  }

  void comment(std::size_t inside) {
    std::size_t end = source_.find("#}", inside);
    if (end == npos) fail("a comment does not end, expected #}");
    if (end > inside && (source_[end - 1] == '-' || source_[end - 1] == '+')) --end;
    advance(close(end, "#}", true, true));
  }

  /// Reads a raw block if the block at `inside` is one.
  bool raw(std::size_t inside) {
    std::size_t end = space_end(inside);
    if (source_.substr(end, 3) != "raw") return false;
    end = space_end(end + 3);
    end = close(end, "%}", false, false);
    if (end == npos) return false;
    advance(end);
    for (std::size_t tag = source_.find("{%", end); tag != npos;
         tag = source_.find("{%", tag + 2)) {
      const char sign = sign_at(tag + 2);
      std::size_t close_at = space_end(tag + (sign == '\0' ? 2 : 3));
      if (source_.substr(close_at, 6) != "endraw") continue;
      close_at = close(space_end(close_at + 6), "%}", true, true);
      if (close_at == npos) continue;
      data(tag, sign, false);
      advance(close_at);
      return true;
    }
    fail("a raw block does not end, expected {% endraw %}");
  }

  void inside_tag(bool is_variable) {
    std::string open;  // brackets that must be closed
    while (at_ < source_.size()) {
      if (open.empty()) {
        const std::size_t end =
            is_variable ? close(at_, "}}", false, false) : close(at_, "%}", true, true);
        if (end != npos) {
          tokens_.push_back(
              {is_variable ? token_kind::variable_end : token_kind::block_end, line_});
          return advance(end);
        }
      }
      if (const std::size_t end = space_end(at_); end != at_) {
        advance(end);
      } else if (is_digit(source_[at_])) {
        number();
      } else if (is_word(source_[at_])) {
        std::size_t end_of_name = at_;
        while (end_of_name < source_.size() && is_word(source_[end_of_name])) ++end_of_name;
        tokens_.push_back({token_kind::name, line_, source_.substr(at_, end_of_name - at_)});
        advance(end_of_name);
      } else if (source_[at_] == '\'' || source_[at_] == '"') {
        string();
      } else {
        op(open);
      }
    }
    fail(is_variable ? "the template ends inside {{, expected }}"
                     : "the template ends inside {%, expected %}");
  }

  /// Reads digits that may be separated by single underscores. Returns where they end.
  template <class IsDigit>
  std::size_t digits(std::size_t at, IsDigit is_one, std::string& out) const {
    for (;;) {
      if (at < source_.size() && is_one(source_[at])) {
        out += source_[at++];
      } else if (at + 1 < source_.size() && source_[at] == '_' && is_one(source_[at + 1]) &&
                 !out.empty()) {
        ++at;
      } else {
        return at;
      }
    }
  }

  void number() {
    const char base_letter =
        at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
    std::string text;
    if (source_[at_] == '0' && (base_letter == 'b' || base_letter == 'o' || base_letter == 'x')) {
      const int base = base_letter == 'b' ? 2 : base_letter == 'o' ? 8 : 16;
      const auto is_one = [&](char c) {
        const char letter = static_cast<char>(c | 0x20);
        return base == 16 ? is_digit(c) || (letter >= 'a' && letter <= 'f')
                          : c >= '0' && c < '0' + base;
      };
      const std::size_t from = at_ + 2 + (source_.substr(at_ + 2, 1) == "_" ? 1 : 0);
      const std::size_t end = digits(from, is_one, text);
      if (!text.empty()) return add_integer(text, base, end);
    }
    std::size_t end = digits(at_, is_digit, text);
    const bool after_point = at_ > 0 && source_[at_ - 1] == '.';
    std::string real = text;
    std::size_t real_end = end;
    if (!after_point && source_.substr(end, 1) == "." && is_digit(peek(end + 1))) {
      real += '.';
      std::string fraction;
      real_end = digits(end + 1, is_digit, fraction);
      real += fraction;
    }
    if (!after_point && (peek(real_end) | 0x20) == 'e') {
      const std::size_t sign = peek(real_end + 1) == '-' || peek(real_end + 1) == '+' ? 1 : 0;
      if (is_digit(peek(real_end + 1 + sign))) {
        real += 'e';
        if (sign != 0) real += source_[real_end + 1];
        std::string exponent;
        real_end = digits(real_end + 1 + sign, is_digit, exponent);
        real += exponent;
      }
    }
    if (real_end != end) {
      tokens_.push_back({token_kind::number, line_, {}, value(std::strtod(real.c_str(), nullptr))});
      return advance(real_end);
    }
    if (text[0] == '0' && text.find_first_not_of('0') != npos) {
      fail("a decimal integer begins with 0; write it without leading zeros");
    }
    add_integer(text, 10, end);
  }

  char peek(std::size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  void add_integer(const std::string& text, int base, std::size_t end) {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (parsed.ec != std::errc()) {
      if (base != 10 || text.size() > 4300) fail("an integer is too large: " + text.substr(0, 40));
      const value digits_copy = into_.pool.string(text);
      tokens_.push_back(
          {token_kind::number, line_, {}, value(value_kind::big_integer, digits_copy.text())});
    } else {
      tokens_.push_back({token_kind::number, line_, {}, value(number)});
    }
    advance(end);
  }

  /// A string literal has the escapes of Python.
  void string() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2U : 1U;
    if (end >= source_.size()) fail("a string does not end");
    const std::string_view raw_text = source_.substr(at_ + 1, end - at_ - 1);
    if (raw_text.find('\\') == npos) {
      tokens_.push_back({token_kind::string, line_, {}, value(raw_text)});
      return advance(end + 1);
    }
    std::string text;
    for (std::size_t at = 0; at < raw_text.size();) {
      if (raw_text[at] != '\\') {
        text += raw_text[at++];
        continue;
      }
      const char escape = raw_text[at + 1];
      at += 2;
      constexpr std::string_view names = "abfnrtv\\'\"";
      constexpr std::string_view bytes = "\a\b\f\n\r\t\v\\'\"";
      if (const auto found = names.find(escape); found != npos) {
        text += bytes[found];
      } else if (escape == '\n') {
        // A line that is continued.
      } else if (escape >= '0' && escape <= '7') {
        std::uint32_t point = static_cast<std::uint32_t>(escape - '0');
        for (int i = 0; i < 2 && at < raw_text.size() && raw_text[at] >= '0' && raw_text[at] <= '7';
             ++i) {
          point = point * 8 + static_cast<std::uint32_t>(raw_text[at++] - '0');
        }
        formats::append_utf8(point, text);
      } else if (escape == 'x' || escape == 'u' || escape == 'U') {
        const std::size_t count = escape == 'x' ? 2 : escape == 'u' ? 4 : 8;
        const std::string_view hex = raw_text.substr(at, count);
        std::uint32_t point = 0;
        const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), point, 16);
        if (hex.size() != count || parsed.ptr != hex.data() + count || point > 0x10FFFF) {
          fail(std::string("a string has a bad escape \\") + escape);
        }
        if (point >= 0xD800 && point < 0xE000)
          fail("a string has the escape of a surrogate, which has no UTF-8");
        formats::append_utf8(point, text);
        at += count;
      } else if (escape == 'N') {
        fail("the escape \\N in a string is not supported; write the character itself");
      } else if ((escape & 0x80) != 0) {
        fail(
            "a string has a backslash before a character that is not ASCII; write \\\\ for a "
            "backslash");
      } else {
        text += '\\';
        text += escape;
      }
    }
    tokens_.push_back({token_kind::string, line_, {}, into_.pool.string(text)});
    advance(end + 1);
  }

  void op(std::string& open) {
    constexpr std::array<std::string_view, 6> pairs = {"==", "!=", ">=", "<=", "//", "**"};
    const std::string_view two = source_.substr(at_, 2);
    std::size_t size = 1;
    if (std::find(pairs.begin(), pairs.end(), two) != pairs.end()) {
      size = 2;
    } else if (std::string_view("+-/*%~[](){}><=.:|,;").find(source_[at_]) == npos) {
      std::size_t end = at_;
      (void)next_code_point(source_, end);
      fail("unexpected character " + std::string(source_.substr(at_, end - at_)) + " in a tag");
    }
    const std::string_view text = source_.substr(at_, size);
    if (text == "{" || text == "(" || text == "[") {
      open += text == "{" ? '}' : text == "(" ? ')' : ']';
    } else if (text == "}" || text == ")" || text == "]") {
      if (open.empty()) fail("unexpected " + std::string(text));
      if (open.back() != text[0]) {
        fail("unexpected " + std::string(text) + ", expected " + open.back());
      }
      open.pop_back();
    }
    tokens_.push_back({token_kind::op, line_, text});
    advance(at_ + size);
  }

  chat_template::program& into_;
  std::string_view source_;
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::vector<token> tokenize(chat_template::program& into) {
  return lexer(into).run();
}

}  // namespace millrace::chat
