// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/src_code.hpp>

/// `P.src`: the place in the inputs from which each document of `P.bin` comes.
/// Specification: formats/spec/src.md.
///
// Example:
//
//     const millrace::io::file_mapping file("web_text_document.src");
//     const auto src = millrace::formats::parse_src(file.bytes());
//     const auto place = src.at(17);  // the record that document 17 was made from
//     std::cout << src.input_name(place.input) << ':' << place.line << '\n';

///   0   8     magic "MILLSRC\0"
///   8   4     u32 version: 1, or 2 if the places of an input count rows
///   12  4     u32 documents per group, 64
///   16  8     u64 D, number of documents
///   24  8     u64 bytes of the payload
///   32  8     u64 number of inputs
///   40  8     u64 bytes of the names
///   48        the payload: varints, a few bytes per document
///       28*G  the directory: input, line, begin and payload offset of the first document of each
///             of the G groups
///             the inputs, each: u8 unit (only in version 2), u32 length and bytes of its name
namespace millrace::formats {

inline constexpr std::array<unsigned char, 8> src_magic = {'M', 'I', 'L', 'L', 'S', 'R', 'C', 0};
inline constexpr std::uint32_t src_version = 1;
inline constexpr std::uint32_t src_version_of_rows = 2;
inline constexpr std::uint32_t src_group_documents = 64;
inline constexpr std::size_t src_header_bytes = 48;
inline constexpr std::size_t src_group_bytes = 28;

/// What `begin` and `end` of a place count.
enum class src_unit : std::uint8_t {
  bytes = 0,  ///< bytes of the decompressed text
  rows = 1,   ///< rows of a Parquet file; every place has one row
};

/// An input as `.src` lists it.
struct src_input {
  std::string name;  ///< as the user gave it, usually a path; can hold any bytes
  src_unit unit = src_unit::bytes;

  bool operator==(const src_input&) const = default;
};

/// The version of a `.src` with these inputs: the oldest that can hold them.
inline std::uint32_t src_version_of(std::span<const src_input> inputs) {
  const bool has_rows = std::ranges::find(inputs, src_unit::rows, &src_input::unit) != inputs.end();
  return has_rows ? src_version_of_rows : src_version;
}

struct src_header {
  std::uint32_t version = src_version;
  std::uint32_t group_documents = src_group_documents;
  std::uint64_t document_count = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t input_count = 0;
  std::uint64_t names_bytes = 0;
};

/// Lists the header's fields after the magic, in file order. The reader and the writer share this
/// list.
template <class Io, class Header>
requires std::is_same_v<std::remove_const_t<Header>, src_header>
void fields(Io& io, Header& header) {
  io("the version", header.version);
  io("the size of a group", header.group_documents);
  io("the document count", header.document_count);
  io("the size of the payload", header.payload_bytes);
  io("the input count", header.input_count);
  io("the size of the names", header.names_bytes);
}

/// An entry of the directory: the place of the first document in a group, and the byte of the
/// payload at which the group begins.
struct src_group {
  std::uint32_t input = 0;
  std::int64_t line = 1;
  std::uint64_t begin = 0;
  std::uint64_t payload_offset = 0;
};

template <class Io, class Group>
requires std::is_same_v<std::remove_const_t<Group>, src_group>
void fields(Io& io, Group& group) {
  io("an input", group.input);
  io("a line", group.line);
  io("a first byte", group.begin);
  io("a payload offset", group.payload_offset);
}

constexpr std::uint64_t src_group_count(std::uint64_t documents) noexcept {
  return documents / src_group_documents + (documents % src_group_documents != 0 ? 1 : 0);
}

/// A parsed `.src`. Refers to the bytes that it was parsed from, which must outlive it. Any number
/// of threads may read it at once.
class src_view {
 public:
  std::uint64_t document_count() const noexcept { return header_.document_count; }
  std::uint64_t input_count() const noexcept { return names_.size(); }
  std::uint32_t version() const noexcept { return header_.version; }

  /// The name of an input as the user gave it, usually a path. It can hold any bytes.
  ///
  /// @pre input < input_count()
  std::string_view input_name(std::size_t input) const noexcept {
    assert(input < names_.size());
    return names_[input];
  }
  /// What the places of an input count.
  ///
  /// @pre input < input_count()
  src_unit input_unit(std::size_t input) const noexcept {
    assert(input < names_.size());
    return units_.empty() ? src_unit::bytes : units_[input];
  }
  /// Copies of all names and units.
  std::vector<src_input> inputs() const {
    std::vector<src_input> all;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      all.push_back({std::string(names_[i]), input_unit(i)});
    }
    return all;
  }

  /// The byte offset of a group's directory entry in the file. Messages show this offset.
  ///
  /// @pre group < src_group_count(document_count())
  std::uint64_t directory_offset(std::uint64_t group) const noexcept {
    return src_header_bytes + payload_.size() + group * src_group_bytes;
  }

  /// The place from which a document comes. Takes constant time: it decodes at most 64 documents.
  /// The `input` of the result is below input_count().
  ///
  /// @pre document < document_count()
  /// @throws format_error  the directory or the payload is invalid.
  source_place at(std::uint64_t document) const;

  /// Decodes all places of a group, in order.
  ///
  /// @return the number of places: 64, or fewer in the last group
  /// @pre group < src_group_count(document_count())
  /// @throws format_error  as at(), or bytes follow the last document of the group.
  std::size_t decode_group(std::uint64_t group,
                           std::span<source_place, src_group_documents> out) const;

 private:
  friend src_view parse_src(std::span<const std::byte> file);
  src_group group(std::uint64_t index) const;
  varint_reader open(std::uint64_t index, src_code& code) const;
  void expect_one_row(const source_place& place, const varint_reader& from) const;

  src_header header_;
  std::span<const std::byte> payload_;
  std::span<const std::byte> directory_;
  std::vector<std::string_view> names_;
  std::vector<src_unit> units_;  // empty in version 1
};

/// Parses a `.src` in O(inputs). Makes the checks listed under "At open" in formats/spec/src.md.
///
/// @throws format_error  the bytes are not a complete `.src`, or contradict each other.
src_view parse_src(std::span<const std::byte> file);

/// Reads the places of all documents from front to back, one group at a time. The view must outlive
/// the cursor.
class src_cursor {
 public:
  explicit src_cursor(const src_view& view) noexcept : view_(&view) {}

  /// The places of the next group, or an empty span after the last group. They are valid until the
  /// next call.
  ///
  /// @throws format_error  as `src_view::decode_group`
  std::span<const source_place> next() {
    if (group_ == src_group_count(view_->document_count())) return {};
    return std::span(places_).first(view_->decode_group(group_++, places_));
  }

 private:
  const src_view* view_;
  std::uint64_t group_ = 0;
  std::array<source_place, src_group_documents> places_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// @param units  receives the unit of each input; null in version 1, which has no units
inline std::vector<std::string_view> parse_src_names(byte_reader& reader, std::uint64_t count,
                                                     std::vector<src_unit>* units) {
  std::vector<std::string_view> names;
  names.reserve(count);
  bool has_rows = units == nullptr;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (units != nullptr) {
      std::uint8_t unit = 0;
      reader("the unit of an input", unit);
      if (unit > static_cast<std::uint8_t>(src_unit::rows)) {
        throw format_error(reader.offset() - 1, "the unit of an input is " + std::to_string(unit) +
                                                    ", expected 0 (bytes) or 1 (rows)");
      }
      units->push_back(static_cast<src_unit>(unit));
      has_rows = has_rows || units->back() == src_unit::rows;
    }
    std::uint32_t size = 0;
    reader("the length of a name", size);
    const auto name = reader.take("a name", size);
    names.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
  }
  if (reader.remaining() != 0) {
    throw format_error(reader.offset(), std::to_string(reader.remaining()) +
                                            " bytes follow the names of the inputs, expected none");
  }
  if (!has_rows) {
    throw format_error(8, "no input is counted in rows, expected .src version 1, found 2");
  }
  return names;
}

inline src_header parse_src_header(byte_reader& reader) {
  const auto magic = reader.take("the magic", src_magic.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (std::to_integer<unsigned char>(magic[i]) != src_magic[i]) {
      throw format_error(i, "not a .src file: expected the magic \"MILLSRC\\0\"");
    }
  }
  src_header header;
  fields(reader, header);
  if (header.version != src_version && header.version != src_version_of_rows) {
    throw format_error(8, "expected .src version 1 or 2, found " + std::to_string(header.version));
  }
  if (header.group_documents != src_group_documents) {
    throw format_error(
        12, "expected groups of 64 documents, found " + std::to_string(header.group_documents));
  }
  return header;
}

/// Throws unless the counts exactly fill the `room` bytes after the header. Subtracts and divides
/// instead of adding and multiplying, because with a hostile count, a sum or a product could wrap.
inline void check_src_counts(const src_header& header, std::uint64_t room) {
  const auto too_many = [&](std::uint64_t at, std::uint64_t count, const char* what) {
    return format_error(at, "the header counts " + std::to_string(count) + what +
                                ", more than the " + std::to_string(room + src_header_bytes) +
                                " bytes of the file can hold");
  };
  const std::uint64_t documents = header.document_count;
  if (documents > room) throw too_many(16, documents, " documents");
  if (header.payload_bytes > room) {
    throw too_many(24, header.payload_bytes, " bytes of payload");
  }
  if (documents > header.payload_bytes) {
    throw format_error(24, "the payload has " + std::to_string(header.payload_bytes) +
                               " bytes, expected at least one for each of " +
                               std::to_string(documents) + " documents");
  }
  room -= header.payload_bytes;
  const std::uint64_t groups = src_group_count(documents);
  if (groups > room / src_group_bytes) throw too_many(16, documents, " documents");
  room -= groups * src_group_bytes;
  if (header.names_bytes != room) {
    throw format_error(40, "the header counts " + std::to_string(header.names_bytes) +
                               " bytes of names, but the rest of the file has " +
                               std::to_string(room));
  }
  if (header.input_count > room / 4 ||
      header.input_count > std::uint64_t{std::numeric_limits<std::uint32_t>::max()} + 1) {
    throw format_error(32, "the header counts " + std::to_string(header.input_count) +
                               " inputs, more than an input number or the " + std::to_string(room) +
                               " bytes of names can hold");
  }
}

}  // namespace detail

inline src_view parse_src(std::span<const std::byte> file) {
  byte_reader reader(file);
  src_view view;
  view.header_ = detail::parse_src_header(reader);
  detail::check_src_counts(view.header_, reader.remaining());
  view.payload_ = reader.take("the payload", view.header_.payload_bytes);
  view.directory_ =
      reader.take("the directory", src_group_bytes * src_group_count(view.header_.document_count));
  view.names_ =
      detail::parse_src_names(reader, view.header_.input_count,
                              view.header_.version == src_version ? nullptr : &view.units_);
  return view;
}

inline src_group src_view::group(std::uint64_t index) const {
  src_group entry;
  byte_reader reader(directory_.subspan(index * src_group_bytes, src_group_bytes));
  fields(reader, entry);
  const std::uint64_t at = directory_offset(index);
  if (entry.input >= names_.size()) {
    throw format_error(at, "a group begins in input " + std::to_string(entry.input) +
                               ", expected a number below " + std::to_string(names_.size()) +
                               ", the number of inputs");
  }
  if (entry.line < 1) {
    throw format_error(at + 4, "a group begins at line " + std::to_string(entry.line) +
                                   " of its input, expected 1 or more");
  }
  if (entry.payload_offset > payload_.size() || (index == 0 && entry.payload_offset != 0)) {
    throw format_error(at + 20, "a group begins at byte " + std::to_string(entry.payload_offset) +
                                    " of a payload of " + std::to_string(payload_.size()) +
                                    " bytes; the first group must begin at 0");
  }
  return entry;
}

inline varint_reader src_view::open(std::uint64_t index, src_code& code) const {
  const src_group entry = group(index);
  const bool last = index + 1 == src_group_count(header_.document_count);
  const std::uint64_t end = last ? payload_.size() : group(index + 1).payload_offset;
  if (end < entry.payload_offset) {
    throw format_error(directory_offset(index + 1) + 20,
                       "a group begins at byte " + std::to_string(end) +
                           " of the payload, before the previous group");
  }
  varint_reader from(payload_.subspan(entry.payload_offset, end - entry.payload_offset),
                     src_header_bytes + entry.payload_offset);
  code.take_first({entry.input, entry.line, entry.begin, 0}, from);
  expect_one_row(code.place(), from);
  return from;
}

inline void src_view::expect_one_row(const source_place& place, const varint_reader& from) const {
  if (input_unit(place.input) != src_unit::rows || place.end - place.begin == 1) return;
  throw format_error(from.offset(), "a document has the rows " + std::to_string(place.begin) +
                                        " to " + std::to_string(place.end) +
                                        " of its input, expected one row");
}

inline source_place src_view::at(std::uint64_t document) const {
  assert(document < document_count());
  src_code code;
  varint_reader from = open(document / src_group_documents, code);
  for (std::uint64_t i = document % src_group_documents; i != 0; --i) {
    code.take(from, names_.size());
    expect_one_row(code.place(), from);
  }
  return code.place();
}

inline std::size_t src_view::decode_group(std::uint64_t group,
                                          std::span<source_place, src_group_documents> out) const {
  assert(group < src_group_count(document_count()));
  const auto count = static_cast<std::size_t>(
      std::min<std::uint64_t>(src_group_documents, document_count() - group * src_group_documents));
  src_code code;
  varint_reader from = open(group, code);
  out[0] = code.place();
  for (std::size_t i = 1; i < count; ++i) {
    code.take(from, names_.size());
    expect_one_row(code.place(), from);
    out[i] = code.place();
  }
  if (!from.at_end()) {
    throw format_error(from.offset(), "bytes follow the last document of a group");
  }
  return count;
}

}  // namespace millrace::formats
