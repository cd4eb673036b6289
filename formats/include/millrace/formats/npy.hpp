// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/npy_header.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

/// numpy's `.npy`, version 1.0, as bytes. Specification: formats/spec/npy.md.
///
// Example:
//
//     const millrace::io::file_mapping file("lengths.npy");
//     const auto array = millrace::formats::parse_npy(file.bytes());
//     const auto lengths = array.elements<std::int32_t>();
//     std::int64_t sum = 0;
//     for (std::size_t i = 0; i < lengths.size(); ++i) sum += lengths[i];

///   0   6   magic "\x93NUMPY"
///   6   1   u8 major version, 1
///   7   1   u8 minor version, 0
///   8   2   u16 H, bytes of header text
///   10  H   a Python dict: {'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }
///   10+H    the elements, row-major, to the end of the file
namespace millrace::formats {

inline constexpr std::array<unsigned char, 6> npy_magic = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/// The size in bytes of an array of this shape. nullopt if the product of the element size and all
/// nonzero dimensions exceeds 2^63 - 1, even if another dimension is 0.
std::optional<std::uint64_t> npy_data_bytes(npy_type type, std::span<const std::uint64_t> shape);

/// A parsed `.npy`. `data` refers to the bytes that it was parsed from, which must outlive it.
struct npy_view {
  npy_type type;
  std::vector<std::uint64_t> shape;  ///< empty for a scalar, which has one element
  std::span<const std::byte> data;   ///< row-major: the last index moves fastest

  /// All elements in file order. To read booleans, ask for std::uint8_t.
  ///
  /// @throws format_error  the file holds another type.
  template <class T>
  unaligned_span<T> elements() const;
};

/// Parses a `.npy` of little-endian numbers. Makes the checks listed in formats/spec/npy.md.
///
/// @throws format_error  the bytes are not a complete `.npy`, contradict each other, or use a
///                       feature that this reader does not support: another version, big-endian
///                       numbers, column-major order, objects.
npy_view parse_npy(std::span<const std::byte> file);

/// Encodes all bytes before the elements, exactly as numpy.save writes them.
///
/// @pre shape.size() <= npy_max_rank, and npy_data_bytes(type, shape) has a value
std::vector<std::byte> encode_npy_header(npy_type type, std::span<const std::uint64_t> shape);

/// Encodes a complete `.npy`, exactly as numpy.save writes it.
///
/// @pre as `encode_npy_header`; data.size() == npy_data_bytes(type, shape)
std::vector<std::byte> encode_npy(npy_type type, std::span<const std::uint64_t> shape,
                                  std::span<const std::byte> data);

template <class T>
std::vector<std::byte> encode_npy(std::span<const T> elements,
                                  std::span<const std::uint64_t> shape) {
  return encode_npy(npy_type_of<std::remove_const_t<T>>(), shape, std::as_bytes(elements));
}

// ---------------------------------------------------------------------------------------------

namespace detail {

struct npy_prefix {
  std::uint8_t major = 1;
  std::uint8_t minor = 0;
  std::uint16_t header_bytes = 0;
};

template <class Io, class Prefix>
requires std::is_same_v<std::remove_const_t<Prefix>, npy_prefix>
void fields(Io& io, Prefix& prefix) {
  io("the version", prefix.major);
  io("the version", prefix.minor);
  io("the header size", prefix.header_bytes);
}

}  // namespace detail

inline std::optional<std::uint64_t> npy_data_bytes(npy_type type,
                                                   std::span<const std::uint64_t> shape) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = type.size_bytes;
  for (const std::uint64_t size : shape) {
    if (size == 0) continue;  // strides are products of the nonzero sizes, and must not wrap
    if (size > most / bytes) return std::nullopt;
    bytes *= size;
  }
  return std::ranges::find(shape, 0U) != shape.end() ? 0 : bytes;
}

template <class T>
unaligned_span<T> npy_view::elements() const {
  const npy_type wanted = npy_type_of<T>();
  const bool bool_as_byte = type == npy_bool && wanted == npy_type_of<std::uint8_t>();
  if (type != wanted && !bool_as_byte) {
    throw format_error(npy_prefix_bytes, "expected elements of dtype '" + npy_descr(wanted) +
                                             "', found '" + npy_descr(type) + "'");
  }
  return unaligned_span<T>(data);
}

inline npy_view parse_npy(std::span<const std::byte> file) {
  byte_reader reader(file);
  const auto magic = reader.take("the magic", npy_magic.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (std::to_integer<unsigned char>(magic[i]) != npy_magic[i]) {
      throw format_error(i, "not an .npy file: expected the magic \"\\x93NUMPY\"");
    }
  }
  detail::npy_prefix prefix;
  fields(reader, prefix);
  if (prefix.major != 1 || prefix.minor != 0) {
    throw format_error(6, "expected .npy version 1.0, found " + std::to_string(prefix.major) + "." +
                              std::to_string(prefix.minor));
  }
  const auto text = reader.take("the header text", prefix.header_bytes);
  npy_header header = parse_npy_header({reinterpret_cast<const char*>(text.data()), text.size()});

  const auto expected = npy_data_bytes(header.type, header.shape);
  if (!expected) {
    throw format_error(header.shape_offset,
                       "expected at most 2^63 - 1 bytes, found more for the shape " +
                           npy_shape_text(header.shape) + " of dtype " + npy_descr(header.type));
  }
  if (reader.remaining() != *expected) {
    throw format_error(reader.offset() + std::min<std::uint64_t>(*expected, reader.remaining()),
                       "the shape takes " + std::to_string(*expected) + " bytes, found " +
                           std::to_string(reader.remaining()) + " after the header");
  }
  return {header.type, std::move(header.shape), reader.take("the elements", *expected)};
}

inline std::vector<std::byte> encode_npy_header(npy_type type,
                                                std::span<const std::uint64_t> shape) {
  assert(shape.size() <= npy_max_rank && npy_data_bytes(type, shape));
  std::string text = "{'descr': '" + npy_descr(type) +
                     "', 'fortran_order': False, 'shape': " + npy_shape_text(shape) + ", }";
  // numpy leaves room for a first size of up to 21 digits, so that an array can grow in place.
  if (!shape.empty()) text.append(21 - std::to_string(shape[0]).size(), ' ');
  // Then append 1 to 64 spaces, so that the elements start at a multiple of 64. numpy never appends
  // 0 spaces.
  text.append(64 - (npy_prefix_bytes + text.size() + 1) % 64, ' ');
  text += '\n';

  byte_writer writer;
  writer.put(std::as_bytes(std::span(npy_magic)));
  const detail::npy_prefix prefix{1, 0, static_cast<std::uint16_t>(text.size())};
  fields(writer, prefix);
  writer.put(std::as_bytes(std::span(text)));
  return writer.take();
}

inline std::vector<std::byte> encode_npy(npy_type type, std::span<const std::uint64_t> shape,
                                         std::span<const std::byte> data) {
  assert(data.size() == npy_data_bytes(type, shape));
  std::vector<std::byte> file = encode_npy_header(type, shape);
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

}  // namespace millrace::formats
