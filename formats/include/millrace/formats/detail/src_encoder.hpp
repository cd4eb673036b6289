// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/src.hpp>

namespace millrace::formats {

/// Encodes the payload and the directory of a `.src` from the places of all documents, in order.
/// Not thread-safe.
///
/// A writer starts with a placeholder for the header and streams the payload after it. It keeps the
/// directory in memory or in another file (28 bytes per 64 documents). At the end, it appends the
/// directory and the names, and replaces the placeholder. The bytes depend only on the places, even
/// if the encoder was saved and restored in between.
class src_encoder {
 public:
  /// The complete state of the encoder. To resume in another process, save it together with the
  /// first `payload_bytes` of the payload and the first directory_bytes() of the directory.
  struct state {
    std::uint64_t documents = 0;
    std::uint64_t payload_bytes = 0;
    src_code code;

    std::uint64_t directory_bytes() const noexcept {
      return src_group_count(documents) * src_group_bytes;
    }
  };

  src_encoder() = default;
  explicit src_encoder(const state& saved) noexcept : state_(saved) {}

  /// Appends the next document. Appends some bytes to `payload` and, if the document begins a
  /// group, an entry to `directory`. The caller may empty both between calls.
  ///
  /// @pre place.line >= 1 and place.begin <= place.end < 2^63
  void append(const source_place& place, std::vector<std::byte>& payload,
              std::vector<std::byte>& directory);

  const state& save() const noexcept { return state_; }

 private:
  state state_;
};
static_assert(std::is_trivially_copyable_v<src_encoder::state>);

/// Encodes the first `src_header_bytes` of a `.src`.
///
/// @param inputs_bytes  size of the result of encode_src_inputs(); 0 for a placeholder
std::vector<std::byte> encode_src_header(const src_encoder::state& written,
                                         std::span<const src_input> inputs,
                                         std::uint64_t inputs_bytes);

/// Encodes the names of all inputs, and their units if any of them has rows. They follow the
/// directory.
///
/// @pre no name has 2^32 bytes or more
std::vector<std::byte> encode_src_inputs(std::span<const src_input> inputs);

// ---------------------------------------------------------------------------------------------

inline void src_encoder::append(const source_place& place, std::vector<std::byte>& payload,
                                std::vector<std::byte>& directory) {
  assert(place.line >= 1 && place.begin <= place.end && place.end >> 63 == 0);
  std::array<std::byte, src_code::most_bytes> buffer;
  std::byte* end = nullptr;
  if (state_.documents % src_group_documents == 0) {
    byte_writer writer;
    const src_group group{place.input, place.line, place.begin, state_.payload_bytes};
    fields(writer, group);
    directory.insert(directory.end(), writer.bytes().begin(), writer.bytes().end());
    end = state_.code.put_first(place, buffer.data());
  } else {
    end = state_.code.put(place, buffer.data());
  }
  payload.insert(payload.end(), buffer.data(), end);
  state_.payload_bytes += static_cast<std::uint64_t>(end - buffer.data());
  ++state_.documents;
}

inline std::vector<std::byte> encode_src_header(const src_encoder::state& written,
                                                std::span<const src_input> inputs,
                                                std::uint64_t inputs_bytes) {
  byte_writer writer;
  writer.put(std::as_bytes(std::span(src_magic)));
  const src_header header{src_version_of(inputs), src_group_documents, written.documents,
                          written.payload_bytes,  inputs.size(),       inputs_bytes};
  fields(writer, header);
  return writer.take();
}

inline std::vector<std::byte> encode_src_inputs(std::span<const src_input> inputs) {
  byte_writer writer;
  const bool has_units = src_version_of(inputs) != src_version;
  for (const auto& [name, unit] : inputs) {
    assert(name.size() <= std::numeric_limits<std::uint32_t>::max());
    if (has_units) writer("the unit of an input", static_cast<std::uint8_t>(unit));
    writer("the length of a name", static_cast<std::uint32_t>(name.size()));
    writer.put(std::as_bytes(std::span(name)));
  }
  return writer.take();
}

}  // namespace millrace::formats
