// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

/// Values that chat templates work on: JSON as Python sees it.
namespace millrace::chat {

struct dict_entry;
struct dict_data;
class value_pool;

/// The kinds of values. Conversations hold those from `none` to `dict`; the others appear only
/// while a template is rendered.
enum class value_kind : std::uint8_t {
  none,
  boolean,
  integer,      ///< fits a std::int64_t
  big_integer,  ///< any other integer, kept as decimal digits
  real,
  string,
  list,
  tuple,
  dict,
  undefined,
  range,
  view,   ///< dict.items(), dict.keys(), dict.values()
  space,  ///< namespace()
  generator,
  macro,
  method,
  function,
  loop,
};

/// A value of 16 bytes: a number, or a view of a text, a list or a dict.
///
/// A value owns nothing. What it views lives in a value_pool, or in any other memory that the
/// caller keeps while the value is used. Values are immutable, so threads may share them.
class value {
 public:
  value() noexcept : kind_(value_kind::none) { as_.integer = 0; }
  explicit value(bool of) noexcept : kind_(value_kind::boolean) { as_.integer = of ? 1 : 0; }
  explicit value(std::int64_t of) noexcept : kind_(value_kind::integer) { as_.integer = of; }
  explicit value(double of) noexcept : kind_(value_kind::real) { as_.real = of; }
  /// A string that views `text`. @pre `text` is valid UTF-8 of less than 4 GiB
  explicit value(std::string_view text) noexcept : value(value_kind::string, text) {}
  explicit value(const char* text) noexcept : value(std::string_view(text)) {}
  /// A list that views `items`. @pre fewer than 2^32 items
  explicit value(std::span<const value> items) noexcept : value(value_kind::list, items) {}

  value_kind kind() const noexcept { return kind_; }
  bool is(value_kind kind) const noexcept { return kind_ == kind; }
  bool is_string() const noexcept { return kind_ == value_kind::string; }

  /// @pre the kind is boolean or integer
  std::int64_t integer() const noexcept { return as_.integer; }
  /// @pre the kind is real
  double real() const noexcept { return as_.real; }
  /// The text of a string, or the digits of a big integer. @pre the kind is one of these
  std::string_view text() const noexcept { return {as_.text, size_}; }
  /// @pre the kind is list, tuple, range or view
  std::span<const value> items() const noexcept { return {as_.items, size_}; }
  /// @pre the kind is dict
  std::span<const dict_entry> entries() const noexcept;
  /// The member of a dict with this key, or null. @pre the kind is dict
  const value* find(std::string_view key) const noexcept;

  // The rest is for the interpreter.
  value(value_kind kind, std::string_view text) noexcept
      : kind_(kind), size_(static_cast<std::uint32_t>(text.size())) {
    as_.text = text.data();
  }
  value(value_kind kind, std::span<const value> items) noexcept
      : kind_(kind), size_(static_cast<std::uint32_t>(items.size())) {
    as_.items = items.data();
  }
  value(value_kind kind, const void* object, std::uint32_t tag = 0) noexcept
      : kind_(kind), size_(tag) {
    as_.object = object;
  }
  /// Whether a string is of the class Markup, which the filter `safe` makes.
  bool is_markup() const noexcept { return markup_; }
  value as_markup(bool markup) const noexcept {
    value copy = *this;
    copy.markup_ = markup;
    return copy;
  }
  const void* object() const noexcept { return as_.object; }
  std::uint32_t tag() const noexcept { return size_; }

 private:
  value_kind kind_;
  bool markup_ = false;
  std::uint32_t size_ = 0;
  union {
    std::int64_t integer;
    double real;
    const char* text;
    const value* items;
    const void* object;
  } as_;
};

struct dict_entry {
  value key;
  value item;
};

/// The members of a dict, in the order in which their keys were first inserted.
struct dict_data {
  const dict_entry* entries = nullptr;
  std::uint32_t size = 0;
  std::uint32_t mask = 0;                ///< of `index`, whose size is a power of two
  const std::uint32_t* index = nullptr;  ///< hash table of entries + 1; null for a small dict
};

inline std::span<const dict_entry> value::entries() const noexcept {
  const auto* dict = static_cast<const dict_data*>(as_.object);
  return {dict->entries, dict->size};
}

/// Memory for values. Everything in it lives until clear() or the destructor.
///
/// Use it from one thread at a time. Moving a pool does not move its memory.
class value_pool {
 public:
  value_pool() = default;
  /// @param limit_bytes  allocations beyond this number of bytes throw
  explicit value_pool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// A string with a copy of `text`. @pre `text` is valid UTF-8
  value string(std::string_view text);
  /// A list with copies of `items`; what they view is not copied.
  value list(std::span<const value> items);
  /// A dict. The last of equal keys counts, at the place of the first. What the values view is not
  /// copied.
  value dict(std::span<const dict_entry> entries);

  /// Frees all values, and keeps some memory for the next ones.
  void clear() noexcept;

  /// @throws error  the limit of this pool is exceeded
  void* allocate(std::size_t size_bytes, std::size_t alignment);
  template <class T>
  T* allocate_array(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }
  /// `left` followed by `right`. Reuses the memory of `left` if that was allocated last.
  std::string_view concatenate(std::string_view left, std::string_view right);

 private:
  struct chunk {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };
  char* grow(std::size_t size_bytes, std::size_t alignment);

  std::vector<chunk> chunks_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::size_t used_bytes_ = 0;  // in all chunks
  std::size_t limit_bytes_ = static_cast<std::size_t>(-1);
};

/// Parses JSON as json.loads() of Python does, with NaN and Infinity and integers of any size. The
/// result views `pool` only, so `text` may be freed.
///
/// @throws format_error  the text is not JSON or not UTF-8, has a lone surrogate, an integer of
/// more
///                       than 4300 digits (Python's limit), or more than 200 nested values
value parse_json(std::string_view text, value_pool& pool);

}  // namespace millrace::chat
