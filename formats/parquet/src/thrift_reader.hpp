// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/varint.hpp>

namespace millrace::parquet::detail {

/// Reads structs in Thrift's compact protocol, from bytes that may be damaged or hostile.
///
/// Each element takes at least a byte, so no count can exceed the bytes that are left, and the work
/// is proportional to the size. Unknown fields are skipped; so are known fields of another type.
class thrift_reader {
 public:
  /// Types of fields and of the elements of lists. The values are on disk.
  enum class type : std::uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    int8 = 3,
    int16 = 4,
    int32 = 5,
    int64 = 6,
    float64 = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12,
    uuid = 13,
  };

  /// @param offset  position of the first byte in the file, for messages
  thrift_reader(std::span<const char> bytes, std::uint64_t offset) noexcept
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()), offset_(offset) {}

  /// Reads a struct. Calls `take(number, type)` for each field, which reads the value and returns
  /// true, or returns false so that the value is skipped.
  template <class Take>
  void fields(Take&& take) {
    if (++depth_ > most_depth) fail("its metadata is nested deeper than 64 levels");
    std::int32_t last = 0;
    while (true) {
      const std::uint8_t head = byte();
      const auto kind = static_cast<type>(head & 15);
      if (kind == type::stop) break;
      if (kind > type::uuid) fail("its metadata has a field of an unknown Thrift type");
      const std::int32_t step = head >> 4;
      last = step != 0 ? last + step : int16();
      if (last > std::numeric_limits<std::int16_t>::max()) fail("its metadata has a bad field");
      if (!take(last, kind)) skip(kind);
    }
    --depth_;
  }

  /// Reads the head of a list and calls `each()` for every element. If the elements have another
  /// type, skips the list.
  template <class Each>
  void list(type wanted, Each&& each) {
    const auto [kind, count] = list_head();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (kind == wanted) {
        each();
      } else {
        skip_element(kind);
      }
    }
  }

  std::int8_t int8() { return static_cast<std::int8_t>(byte()); }
  std::int32_t int32() { return number<std::int32_t>(); }
  std::int64_t int64() { return number<std::int64_t>(); }
  std::string_view text() {
    const std::uint64_t size = varint();
    return take(size);
  }

  /// True if the bytes ended inside the struct: more bytes may help.
  bool ended() const noexcept { return ended_; }
  std::size_t consumed() const noexcept { return static_cast<std::size_t>(at_ - begin_); }
  std::uint64_t offset() const noexcept { return offset_ + consumed(); }

  [[noreturn]] void fail(const std::string& problem) const {
    throw format_error(offset(), problem + "; the file is damaged");
  }

 private:
  static constexpr int most_depth = 64;

  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  std::string_view take(std::uint64_t size) {
    if (size > left()) {
      ended_ = true;
      fail("its metadata ends inside a field");
    }
    const std::string_view part(at_, static_cast<std::size_t>(size));
    at_ += size;
    return part;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1).front()); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t next = byte();
      value |= (next & 0x7F) << shift;
      if (next < 0x80) return value;
    }
    fail("its metadata has a number of more than 64 bits");
  }
  template <class T>
  T number() {
    const auto value = static_cast<std::int64_t>(formats::from_zigzag(varint()));
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      fail("its metadata has the number " + std::to_string(value) + ", which is out of range");
    }
    return static_cast<T>(value);
  }
  std::int16_t int16() { return number<std::int16_t>(); }

  std::pair<type, std::uint32_t> list_head() {
    const std::uint8_t head = byte();
    const std::uint64_t count = head >> 4 != 15 ? head >> 4 : varint();
    if (count == 0) return {type::stop, 0};  // some writers give empty lists no type
    return {element_type(head & 15), checked(count)};
  }
  type element_type(int code) const {
    if (code == 0 || code > static_cast<int>(type::uuid)) {
      fail("its metadata has a list of an unknown Thrift type");
    }
    return static_cast<type>(code);
  }
  std::uint32_t checked(std::uint64_t count) {
    if (count > left() || count > std::numeric_limits<std::int32_t>::max()) {
      ended_ = count > left();
      fail("its metadata has a list of " + std::to_string(count) +
           " elements, more than its bytes can hold");
    }
    return static_cast<std::uint32_t>(count);
  }

  void skip(type kind) {
    switch (kind) {
      case type::yes:
      case type::no:
      case type::stop:
        return;
      case type::int8:
        (void)byte();
        return;
      case type::int16:
      case type::int32:
      case type::int64:
        (void)varint();
        return;
      case type::float64:
        (void)take(8);
        return;
      case type::binary:
        (void)text();
        return;
      case type::uuid:
        (void)take(16);
        return;
      case type::structure:
        fields([](std::int32_t, type) { return false; });
        return;
      case type::list:
      case type::set:
        skip_list();
        return;
      case type::map:
        skip_map();
        return;
    }
  }
  // A bool is part of the head of a field, but an element of a list is a byte.
  void skip_element(type kind) {
    if (kind == type::yes || kind == type::no) {
      (void)byte();
    } else {
      skip(kind);
    }
  }
  void skip_list() {
    if (++depth_ > most_depth) fail("its metadata is nested deeper than 64 levels");
    const auto [kind, count] = list_head();
    for (std::uint32_t i = 0; i < count; ++i) skip_element(kind);
    --depth_;
  }
  void skip_map() {
    if (++depth_ > most_depth) fail("its metadata is nested deeper than 64 levels");
    const std::uint32_t count = checked(varint());
    if (count != 0) {
      const std::uint8_t kinds = byte();
      const type key = element_type(kinds >> 4);
      const type value = element_type(kinds & 15);
      for (std::uint32_t i = 0; i < count; ++i) {
        skip_element(key);
        skip_element(value);
      }
    }
    --depth_;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  std::uint64_t offset_;
  int depth_ = 0;
  bool ended_ = false;
};

}  // namespace millrace::parquet::detail
