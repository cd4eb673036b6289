// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <millrace/chat/value.hpp>

/// Python's text rules: how values are printed, and what methods of str do.
namespace millrace::chat {

/// A problem without a place; the renderer adds the template's name and line.
class value_problem : public std::exception {
 public:
  explicit value_problem(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Appends repr() of a float.
void append_real(double number, std::string& out);
/// Appends str() of a value.
void append_text(const value& of, std::string& out);
/// Appends repr() of a value. Throws value_problem if it is nested too deeply or has an address in
/// it.
void append_repr(const value& of, std::string& out, int depth = 0);

struct json_style {
  bool ensure_ascii = false;
  bool pretty = false;  ///< line ends, and `indent` once per level
  std::string indent = {};
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
/// Appends json.dumps() of a value.
void append_json(const value& of, const json_style& style, std::string& out, int depth = 0);

/// Decodes the code point at `at` and advances `at`. @pre valid UTF-8, at < text.size()
char32_t next_code_point(std::string_view text, std::size_t& at) noexcept;
std::size_t count_code_points(std::string_view text) noexcept;
bool is_ascii(std::string_view text) noexcept;
/// The byte at which code point number `index` begins. @pre index <= count_code_points(text)
std::size_t byte_of_code_point(std::string_view text, std::size_t index) noexcept;

/// str.isspace() for one code point.
bool is_python_space(char32_t c) noexcept;
enum class strip_side { left = 1, right = 2, both = 3 };
std::string_view strip_space(std::string_view text, strip_side side) noexcept;
std::string_view strip_any_of(std::string_view text, std::string_view characters, strip_side side);

/// str.isprintable() for one code point.
bool is_printable(char32_t c) noexcept;
enum class letter_case { upper, lower, title };
/// Appends str.upper() and so on of one code point, without the rule for a final sigma.
void append_cased(char32_t c, letter_case to, std::string& out);
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
/// str.capitalize()
std::string capitalized(std::string_view text);
/// str.title()
std::string titled(std::string_view text);

/// Python's ==. Throws value_problem if the values are nested too deeply.
bool equal(const value& a, const value& b, int depth = 0);
/// Python's < for two values that can be ordered; throws value_problem for others.
bool less(const value& a, const value& b, int depth = 0);
/// Python's bool().
bool truth(const value& of) noexcept;
/// The class of a value, for messages: "str", "dict".
const char* type_name(const value& of) noexcept;
bool is_number(const value& of) noexcept;
double to_double(const value& number);
/// Throws value_problem if the value cannot be the key of a dict.
void check_hashable(const value& key, int depth = 0);
/// The member of a dict with a key of any kind, or null.
const value* find_key(const value& dict, const value& key);

/// An object that namespace() made.
struct space_data {
  dict_entry* entries = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
};

}  // namespace millrace::chat
