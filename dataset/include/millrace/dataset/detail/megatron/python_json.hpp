// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// A JSON value that prints exactly as Python's json.dumps does, because Megatron names its caches
/// by the MD5 of that text. As in a Python dict, keys keep their order, and setting an existing key
/// keeps its place.
class MILLRACE_EXPORT python_json {
 public:
  python_json() = default;  // null

  static python_json boolean(bool value) { return scalar(value ? "true" : "false"); }
  static python_json integer(std::int64_t value) { return scalar(std::to_string(value)); }
  /// A number printed like repr() of a Python float.
  static python_json real(double value);
  /// A UTF-8 string, printed in ASCII. Invalid UTF-8 bytes become lone surrogates, as in Python's
  /// file names (PEP 383).
  static python_json string(std::string_view utf8);
  static python_json array(std::vector<python_json> items = {});
  static python_json object() { return python_json(kind::object); }

  /// A value given in its printed form: a number of any size, or NaN.
  static python_json scalar(std::string text);

  /// @pre this value was made by array()
  void push_back(python_json item) { items_.push_back(std::move(item)); }
  /// @pre this value was made by object()
  void set(const python_json& key, python_json value);
  void set(std::string_view key, python_json value) { set(string(key), std::move(value)); }

  bool is_null() const noexcept { return kind_ == kind::scalar && text_ == "null"; }
  bool is_array() const noexcept { return kind_ == kind::array; }
  bool is_object() const noexcept { return kind_ == kind::object; }
  /// The items of an array, or the values of an object in the order of its keys.
  const std::vector<python_json>& items() const noexcept { return items_; }
  /// The value of a key. Null if the key is missing, or if this is not an object.
  const python_json* find(std::string_view key) const;
  /// The text of a string, in UTF-8; nullopt if this is not a string. A lone surrogate is encoded
  /// like any other code point.
  std::optional<std::string> text() const;

  /// json.dumps(value, indent=4), without a final newline.
  std::string dump() const {
    std::string out;
    append_to(out, 0);
    return out;
  }

 private:
  enum class kind : std::uint8_t { scalar, array, object };
  explicit python_json(kind which) : kind_(which) {}
  void append_to(std::string& out, std::size_t depth) const;

  kind kind_ = kind::scalar;
  std::string text_ = "null";      // a scalar in its printed form
  std::vector<std::string> keys_;  // an object's keys in their printed form
  std::vector<python_json> items_;
};

/// Parses a JSON text as json.loads does, in a form that can be printed again. Keeps integers of
/// any size, NaN, Infinity and lone surrogates. If a key occurs several times, its last value wins.
///
/// @throws format_error  the text is not JSON, or is nested deeper than 200 levels.
MILLRACE_EXPORT python_json read_python_json(std::string_view text);

/// The repr() of a Python float: the fewest digits that parse to the same number, with an exponent
/// for numbers below 1e-4 or from 1e16 on. Infinite and NaN values print as in json.dumps: Infinity
/// and NaN.
MILLRACE_EXPORT std::string python_float(double value);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Appends a UTF-16 code unit as json.dumps prints it inside a string.
MILLRACE_EXPORT void append_json_unit(std::string& out, std::uint32_t unit);

}  // namespace detail

/// Returns true if the absolute value of a decimal number is 1 or more. Looks only at the digits
/// and the exponent. So it also works for numbers outside the range of a double, which Python reads
/// as infinity or zero.
///
/// @param number  [+-]digits[.digits][(e|E)[+-]digits], with at least one nonzero digit
MILLRACE_EXPORT bool is_beyond_one(std::string_view number) noexcept;

}  // namespace millrace::dataset
