// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>

/// How the tables of a tokenizer are written to a cache file and read again.
///
/// A class lists its members once, in `fields(io, self)`. Both table_writer and table_reader pass
/// themselves as `io`. A list is a count and its elements as they are in memory, so only the same
/// version of the code, on the same kind of machine, can read it; the key of a cache file makes
/// sure of that (cache/tokenizer_cache.hpp).
namespace millrace::tokenizer::detail {

/// A vector, or a view of elements in the memory of a cache file, which is kept elsewhere
/// (tokenizer_parts::memory).
template <class T>
class array_or_view {
 public:
  using value_type = T;

  array_or_view() = default;
  explicit array_or_view(std::size_t size) : own_(size) {}
  static array_or_view view_of(std::span<T> elements) {
    array_or_view view;
    view.view_ = elements;
    return view;
  }

  /// @pre not a view
  std::vector<T>& own() noexcept {
    assert(view_.data() == nullptr);
    return own_;
  }

  const T* data() const noexcept { return view_.data() != nullptr ? view_.data() : own_.data(); }
  std::size_t size() const noexcept { return view_.data() != nullptr ? view_.size() : own_.size(); }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }

 private:
  std::vector<T> own_;
  std::span<const T> view_;
};

/// Lists begin at multiples of this many bytes.
inline constexpr std::size_t table_alignment = 64;

class table_writer {
 public:
  template <formats::plain_number T>
  void operator()(const T& value) {
    out_("", value);
  }
  void operator()(bool value) { (*this)(static_cast<std::uint8_t>(value)); }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(T value) { (*this)(static_cast<std::uint8_t>(value)); }
  void operator()(const std::string& text) { list(std::span(text.data(), text.size())); }
  template <formats::plain_number T, std::size_t Size>
  void operator()(const std::array<T, Size>& numbers) {
    list(std::span<const T>(numbers));
  }
  /// For vectors and for arrays that can be views.
  template <class Array>
  requires std::is_trivially_copyable_v<typename Array::value_type>
  void operator()(const Array& array) {
    list(std::span<const typename Array::value_type>(array.data(), array.size()));
  }

  std::span<const std::byte> bytes() const noexcept { return out_.bytes(); }

 private:
  template <class T>
  void list(std::span<const T> elements) {
    (*this)(std::uint64_t{elements.size()});
    static constexpr std::array<std::byte, table_alignment> padding{};
    const std::size_t past = out_.bytes().size() % table_alignment;
    if (past != 0) out_.put(std::span(padding).first(table_alignment - past));
    out_.put(std::as_bytes(elements));
  }

  formats::byte_writer out_;
};

/// Every function throws format_error if the bytes end too early.
class table_reader {
 public:
  /// @param bytes  begin at a multiple of table_alignment; arrays that can be views will point into
  ///               them
  explicit table_reader(std::span<std::byte> bytes) : bytes_(bytes), in_(bytes) {}

  template <formats::plain_number T>
  void operator()(T& value) {
    in_("a number", value);
  }
  void operator()(bool& value) { value = number<std::uint8_t>() != 0; }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(T& value) { value = static_cast<T>(number<std::uint8_t>()); }
  void operator()(std::string& text) {
    const auto found = list<char>();
    text.assign(found.data(), found.size());
  }
  template <formats::plain_number T, std::size_t Size>
  void operator()(std::array<T, Size>& numbers) {
    const auto found = list<T>();
    if (found.size() != Size) throw format_error(in_.offset(), "a list has another size");
    std::ranges::copy(found, numbers.begin());
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(std::vector<T>& elements) {
    const auto found = list<T>();
    elements.assign(found.begin(), found.end());
  }
  /// For arrays that can be views.
  template <class Array>
  requires requires { Array::view_of(std::span<typename Array::value_type>()); }
  void operator()(Array& array) { array = Array::view_of(list<typename Array::value_type>()); }

  template <class T>
  T number() {
    T value;
    (*this)(value);
    return value;
  }
  std::size_t remaining() const noexcept { return in_.remaining(); }

 private:
  template <class T>
  std::span<T> list() {
    const auto count = number<std::uint64_t>();
    const std::size_t past = in_.offset() % table_alignment;
    if (past != 0) in_.take("padding", table_alignment - past);
    const std::size_t begin = in_.offset();
    if (count > in_.remaining() / sizeof(T)) throw format_error(begin, "a list is too long");
    in_.take("a list", count * sizeof(T));
    return {reinterpret_cast<T*>(bytes_.data() + begin), count};
  }

  std::span<std::byte> bytes_;
  formats::byte_reader in_;
};

}  // namespace millrace::tokenizer::detail
